"""No search input is an error; changed index settings are reported with the remedy."""

from collections.abc import Iterator
from typing import Any

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.errors import Refused
from chunksink.sinks.meilisearch import MeilisearchReader, MeilisearchSink
from chunksink.sinks.reader import Filter
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import ALPHA, BETA, Server, build_id_of, build_of, served


@pytest.fixture(scope="module")
def server(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    yield from served(meilisearch_server)


@pytest.fixture(scope="module")
def sink(server: Server) -> Iterator[MeilisearchSink]:
    sink = server.sink()
    yield sink
    sink.close()


@pytest.fixture(scope="module")
def zebras(sink: MeilisearchSink) -> MeilisearchReader:
    """Equal numbers of `EN` and `en`, which Meilisearch does not distinguish."""
    written = [
        family(f"{name}{n}", ["a zebra", "the zebra again"], metadata={"language": name})
        for n in range(20)
        for name in ("EN", "en")
    ]
    other = family("other", ["costs $100", "start 🚀 now", "© nobody"], metadata={"language": "de"})
    return sink.reader(build_id_of(build_of(sink, [*written, other])))


@pytest.mark.parametrize("typed", ["-zebra", "\u202ezebra", "\u200bzebra", "~zebra", "- -^zebra", '-"a zebra"'])
def test_no_symbol_before_a_word_is_an_operator(zebras: MeilisearchReader, typed: str) -> None:
    assert len(zebras.search(typed, 100)) == 40
    assert sum(one.families for one in zebras.facets(typed, ["extension", "language"])["language"]) == 40
    hit = zebras.search(typed, 1)[0]
    assert zebras.snippets(typed, [hit.id])


def test_missing_identifiers_are_requested_at_once(sink: MeilisearchSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """More requests follow only if the first hit differs in case from a filter."""
    texts = {"EN": ["ERR-1150 max_size", "ERR-1150"], "en": ["min_size"]}
    families = [family(name, each, metadata={"language": name}) for name, each in texts.items()]
    reader, requests = sink.reader(build_id_of(build_of(sink, families))), list[str]()
    send = reader._connection.send

    def noted(path: str, body: Any) -> Any:
        requests.append(path)
        return send(path, body)

    monkeypatch.setattr(reader._connection, "send", noted)
    assert reader.missing_identifiers("ERR-1150 max_size ERR-1151 min_size ") == ["ERR-1151"]
    assert len(requests) == 1
    one_case = [Filter("language", any_of=("en",))]
    assert reader.missing_identifiers("ERR-1150 max_size min_size ", one_case) == ["ERR-1150", "max_size"]
    assert reader.missing_identifiers("nothing else ") == []


@pytest.mark.parametrize("title", ["t" * 469, "x" + "한" * 80, "é" * 300, "a" + "ﷺ" * 20], ids="t한éﷺ")
def test_long_title_is_found_by_its_whole_text(sink: MeilisearchSink, title: str) -> None:
    """Meilisearch cuts stored values, but not the values of filters."""
    reader = sink.reader(build_id_of(build_of(sink, [family("long", ["a zebra"], metadata={"title": title})])))
    assert len(reader.search("", 10, [Filter("title", any_of=(title,))])) == 1
    assert reader.search("", 10, [Filter("title", any_of=(f"{title} 2",))]) == []


@pytest.mark.parametrize(
    "typed", ["?!", "…", "+", "-", "'", '"', '""', '"!"', "·", "_", "*", "\u202e", "\u2012", "^ ~"]
)
def test_query_without_searchable_text_finds_nothing(zebras: MeilisearchReader, typed: str) -> None:
    assert zebras.search(typed, 100) == []
    assert zebras.facets(typed, ["language"]) == {"language": []}


def test_words_between_signs_are_found(sink: MeilisearchSink) -> None:
    text = "<p>the <b>ostrich</b> runs <br>fast  alpha=bravo charlie|delta foo->foxtrot ~tango~ ₹5000 --mode=slow"
    reader = sink.reader(build_id_of(build_of(sink, [family("signs", [text])])))
    for word in ("ostrich", "fast", "bravo", "delta", "foxtrot", "tango", "5000", "slow"):
        assert len(reader.search(word, 10)) == 1, word


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ('"夏季休業"', "holidays"),
        ('"機密情報"', "secret"),
        ('"機密情報" 規程', "secret"),
        ('"机密信息"', "chinese"),
        ("2026年8月15日", "holidays"),
    ],
)
def test_japanese_and_chinese_phrases_and_dates_are_found(sink: MeilisearchSink, typed: str, first: str) -> None:
    """Meilisearch takes a query without kana for Chinese, and divides it into other words than a Japanese text."""
    texts = {
        "other": "毎月の年次報告は日曜日です",
        "holidays": "2026年8月15日は夏季休業です。",
        "secret": "規程を定めました。機密情報は入力しないこと。",
        "chinese": "使用AI工具时请勿输入机密信息。",
    }
    families = [family(name, [text], metadata={"language": "x"}) for name, text in texts.items()]
    reader = sink.reader(build_id_of(build_of(sink, families)))
    hit = reader.search(typed, 10)[0]
    assert [one.text for one in reader.get([hit.id])] == [texts[first]]
    assert reader.snippets(typed, [hit.id])
    assert reader.facets(typed, ["language"])["language"]


@pytest.mark.parametrize(("typed", "hits"), [("🚀", 1), ("$100", 1), ("©", 1), ("🐈", 0), ("", 41)])
def test_query_with_searchable_text_is_recognised(zebras: MeilisearchReader, typed: str, hits: int) -> None:
    assert len(zebras.search(typed, 100)) == hits


@pytest.mark.parametrize("typed", ["", "zebra"])
@pytest.mark.parametrize("limit", [1, 20, 100])
@pytest.mark.parametrize("every", [True, False])
def test_filter_value_matches_exactly(zebras: MeilisearchReader, typed: str, limit: int, every: bool) -> None:
    for language in ("en", "EN"):
        hits = zebras.search(typed, limit, [Filter("language", any_of=(language,))], every=every)
        assert {document.language for document in zebras.get([hit.id for hit in hits])} == {language}
        assert len(hits) == min(limit, 40) or len({hit.parent_id for hit in hits}) == 20
    assert zebras.search(typed, limit, [Filter("language", any_of=("eN",))], every=every) == []


@pytest.mark.parametrize("left", [[], ["tags"], [{"attributePatterns": ["parent_id"]}]])
def test_settings_without_our_filters_name_the_remedy(left: list[Any], server: Server, sink: MeilisearchSink) -> None:
    build = build_of(sink, [family("a", ALPHA), family("b", BETA)])
    build_id = build_id_of(build)
    server.do("PATCH", f"/indexes/{build._name}/settings", json={"filterableAttributes": left})
    remedy = "chunksink settings apply` or `chunksink sync`"
    if left != [{"attributePatterns": ["parent_id"]}]:  # writing needs no more
        build.replace([family("a", BETA, version="2")])
        with pytest.raises(Refused, match=remedy):
            build.flush()
        build.delete([family("b", BETA).parent_id])
        with pytest.raises(Refused, match=remedy):
            build.flush()
    with pytest.raises(Refused, match=remedy):
        sink.reader(build_id).search("beta", 10, [Filter("extension", any_of=("md",))])
    with pytest.raises(Refused, match=remedy):
        sink.reader(build_id).facets("beta", ["extension"])
    assert "filterableAttributes" in sink.update_settings(build_id).names
    build.replace([family("a", BETA, version="2")])
    assert build.flush() == []
