"""Scripts without spaces: short runs, and adjoining words of other scripts."""

import re

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.statements import idf
from chunksink.sinks.reader import FacetValue, Filter, Sort
from tests.support.fts import fill, marked

CHINESE = [f"在中国{chr(0x4E00 + number)}的人" for number in range(200)]
KOREAN = [f"서울{chr(0xAC00 + 28 * number)} 사람" for number in range(100)]


def write(build: FtsBuild, texts: list[str], **metadata: object) -> None:
    build.replace([family(text.encode().hex(), [text], metadata=metadata) for text in texts])


def test_every_text_with_a_short_run_is_found(build: FtsBuild, reader: FtsReader) -> None:
    write(build, CHINESE, tags=["zh"])
    write(build, KOREAN, tags=["ko"])
    write(build, ["中 国 apart"], tags=["no"])
    for typed, texts in (("中国", CHINESE), ("中", [*CHINESE, "apart"]), ("서울", KOREAN), ("서울 사람", KOREAN)):
        hits = reader.search(typed, 1000)
        assert len(hits) == len({hit.id for hit in hits}) == len(texts)
        assert len(reader.search(typed, 30)) == 30
        assert len(reader.search(typed, 1000, [Filter("tags", any_of=("zh",))])) == (200 if texts is not KOREAN else 0)
    assert reader.facets("中国", ["tags"]) == {"tags": [FacetValue("zh", 200)]}
    assert reader.facets("서울", ["tags"]) == {"tags": [FacetValue("ko", 100)]}
    found = [hit.id for hit in reader.search("中国", 1000)]
    assert reader.snippets("中国", found).keys() == set(found)


def test_short_run_beside_words_and_longer_runs_is_found(build: FtsBuild, reader: FtsReader) -> None:
    both = [f"{text} harbour" for text in CHINESE[:60]]
    write(build, both + CHINESE[60:])
    write(build, ["harbour alone", "harbour中国alone"])
    hits = reader.search("中国 harbour", 1000)
    texts = [document.text for document in reader.get([hit.id for hit in hits])]
    assert set(texts[:61]) == {*both, "harbour中国alone"}, "what holds both comes first"
    assert len(texts) == len(CHINESE) + 2
    assert [document.text for document in reader.get([hit.id for hit in reader.search("在中国一 的", 1)])] == [both[0]]
    assert len(reader.search("中国的中国", 1000)) == len(CHINESE) + 1, (
        "where the whole run is nowhere, its pairs are found"
    )


def test_rarer_and_more_frequent_runs_weigh_more(build: FtsBuild, reader: FtsReader) -> None:
    write(build, ["中国", "中国 山 中国 山 中国", "山山", *[f"山{chr(0x4E10 + number)}" for number in range(30)]])
    write(build, ["其他"], title="中国")
    texts = [document.text for document in reader.get([hit.id for hit in reader.search("中国", 10)])]
    assert texts == ["其他", "中国 山 中国 山 中国", "中国"]
    texts = [document.text for document in reader.get([hit.id for hit in reader.search("中国 山", 4)])]
    assert texts[:3] == ["中国 山 中国 山 中国", "其他", "中国"]


def test_last_character_of_a_block_is_a_query(build: FtsBuild, reader: FtsReader) -> None:
    write(build, ["\ud7ff", "\ud7fb古", "\U000323af"])
    for typed in ("\ud7fb", "\U000323af", "\ud7ff"):
        assert len(reader.search(typed)) == 1
        reader.facets(typed, ["tags"])


BESIDE = {
    "framework": "使用Spring框架的personLocation与parties",
    "structure": "Spring里的ring结构,Spring框架",
    "beside": "手机iPhone很好",
    "beside, longer": "手机iPhones和iPhone15",
    "prefixed": "动物zebras很多",
    "korean": "서울KTX열차",
    "thai": "ใช้redisใน",
    "english": "a Spring of personLocations",
    "rules": "生成AIの利用規程\n5G対応",
    "size": "用紙はA4サイズ",
    "date": "創立記念日は10月3日です",
    "other date": "会议于3月10日举行",
    "wide date": "保守は３月１日に実施",
    "seconds": "ボタンを10秒間押す",
    "chapter": "第12章では廃棄",
    "wide name": "型番ＡＢＣ－１２３４を使う",
    "telephone": "電話は０２－１２３４－５６７８",
    "mail": "EMAILで送る。DETAILも",
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    return fill(build, BESIDE)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("ring", {"structure": ["ring"]}),
        ("cat", {}),
        ("location parties ", {"framework": ["parties"]}),
        ("iphone ", {"beside": ["iPhone"]}),
        ("iPhone15 ", {"beside, longer": ["iPhone15"]}),
        ("zeb", {"prefixed": ["zeb"]}),
        ("zeb ", {}),
        ("ktx", {"korean": ["KTX"]}),
        ("redis ", {"thai": ["redis"]}),
        ("ring 框架 ", {"structure": ["ring", "框架"], "framework": ["框架"]}),
        ("AI", {"rules": ["AI"]}),
        ("ai ", {"rules": ["AI"]}),
        ("5G ", {"rules": ["5G"]}),
        ("ＡＩ ", {"rules": ["AI"]}),
        ("A4 ", {"size": ["A4"]}),
        ("ABC-1234 ", {"wide name": ["ＡＢＣ－１２３４"]}),
        ("「AI」、（5G）？", {"rules": ["AI", "5G"]}),
    ],
)
def test_word_ends_at_another_script(
    reader: FtsReader, texts: dict[str, str], typed: str, found: dict[str, list[str]]
) -> None:
    hits = reader.search(typed, 100)
    assert {texts[hit.id] for hit in hits} == found.keys()
    assert reader.facets(typed, ["tags"])["tags"] == [FacetValue(name, 1) for name in sorted(found)]
    shown = reader.snippets(typed, list(texts))
    assert {texts[id]: marked(pieces) for id, pieces in shown.items()} == found
    for id, pieces in shown.items():
        assert "".join(piece.text for piece in pieces) == BESIDE[texts[id]]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("10月3日", "date"),
        ("１０月３日", "date"),
        ("3月10日", "other date"),
        ("3月1日", "wide date"),
        ("10秒", "seconds"),
        ("第12章", "chapter"),
        ("A4サイズ", "size"),
        ("10月3日の創立記念日", "date"),
    ],
)
def test_words_joined_to_runs_rank_above_their_parts(
    reader: FtsReader, texts: dict[str, str], typed: str, first: str
) -> None:
    assert texts[reader.search(typed)[0].id] == first


def test_numbers_joined_to_runs_are_whole(build: FtsBuild, reader: FtsReader) -> None:
    """A short text with a longer number would score higher."""
    names = fill(build, {"long": "1月3日に新年会を実施します。会場は本社の食堂です。", "short": "11月3日に休業"})
    write(build, [f"保証期間は{number}年間です" for number in range(20)])
    assert [names[hit.id] for hit in reader.search("1月3日", 2)] == ["long", "short"]


def test_document_that_lacks_one_of_few_runs_scores_less(build: FtsBuild, reader: FtsReader) -> None:
    write(build, ["第1回", "次第", *[f"{number}番" for number in range(20)]])
    best = reader.search("第12章")[0]
    assert best.score == pytest.approx(0.5 * 0.85 * (idf(22, 2) + idf(22, 1))), "the words are missing, too"


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("AI", ["rules"]),
        ("ＡＩ", ["rules"]),
        ("5G 利用", ["rules"]),
        ("10月3日", ["date", "other date"]),
        ("3月1日", ["date", "other date", "wide date"]),
        ("abc 型番", ["wide name"]),
    ],
)
def test_sorted_search_finds_words_beside_another_script(
    reader: FtsReader, texts: dict[str, str], typed: str, found: list[str]
) -> None:
    assert sorted(texts[hit.id] for hit in reader.search(typed, sort=Sort("year"))) == found


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ('"AI"', {"rules"}),
        ('"ＡＩ"', {"rules"}),
        ('"ABC"', {"wide name"}),
        ('"３月１日"', {"wide date"}),
        ('"3月1日"', {"wide date"}),
    ],
)
def test_phrase_is_found_in_all_widths(reader: FtsReader, texts: dict[str, str], typed: str, found: set[str]) -> None:
    assert {texts[hit.id] for hit in reader.search(typed)} == found


def test_match_in_the_text_is_marked_if_the_title_has_the_word_too(build: FtsBuild, reader: FtsReader) -> None:
    one = family("rules", ["生成AIの利用規程"], title="AI rules")
    build.replace([one])
    [id] = [document.id for document in one.documents]
    assert marked(reader.snippets("AI", [id])[id]) == ["AI"]


def test_snippet_is_around_the_word_itself(build: FtsBuild, reader: FtsReader) -> None:
    long = family("long", ["Spring" + "的" * 300 + "ring" + "的" * 300])
    build.replace([long])
    [id] = [document.id for document in long.documents]
    assert marked(reader.snippets("ring ", [id])[id]) == ["ring"]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("路由器重启", "修复了‹路由器›反复‹重启›的问题"),
        ("取り除く", "ほこりを‹取り除›いて"),
        ("배터리를", "‹배터리›가 부풀거나"),
        ("1150", "ERR-‹1150›表示通信失败"),
        ("設定ファイル ABC-1234", "‹ABC-1234›の‹設定ファイル›は"),
        ("แบตเตอรี่", "อะแดป‹เตอร์›ที่เปลี่ยน"),
        ("แบตเตอรี", "ชาร์จ‹แบตเตอรี่›ใน"),
        ("ที่สุด", "รีเซ็ต‹ที่›ด้าน"),
        ("Wi-Fi", "‹Wi›-‹Fi›に接続できない"),
        ("AI Spring", "‹Spring›と生成‹AI›の違い"),
    ],
)
def test_marks_end_where_the_found_characters_end(build: FtsBuild, reader: FtsReader, typed: str, shown: str) -> None:
    texts = fill(build, {"text": re.sub("[‹›]", "", shown)})
    [found] = reader.snippets(typed, list(texts)).values()
    assert "".join(f"‹{piece.text}›" if piece.match else piece.text for piece in found) == shown
