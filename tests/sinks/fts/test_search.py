"""Results, ranking and snippets of the embedded keyword sink beyond the suite."""

import math
import sqlite3
import threading
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.query import parse
from tests.support.fts import fill, marked

TEXTS = {
    "fox": "The quick brown foxes were jumping over many configurations.",
    "cache": "Caching keeps what was computed; caches are never shared.",
    "cafe": "Un cafe\u0301 à la crème, s'il vous plaît.",
    "code": "Error ERR_42 is raised in rebuild/plan.py by C++ and .NET code",
    "tokyo": "東京都庁の展望台は無料です",
    "kyoto": "京都の寺は静かです",
    "thai": "ประเทศไทยมีอาหารอร่อยมาก",
    "seoul": "서울에서 부산까지 KTX 열차를 탔다",
    "phone": "iPhone手机的机器学习算法很好",
    "supplementary": "古い字 𠮷野家 です",
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    """The texts in the index. Maps ids to names."""
    return fill(build, TEXTS)


VOWELS = {"day": "आज का दिन", "gift": "दान करना", "leg": "ಕಾಲು", "stick": "ಕೋಲು", "fish": "மீன்", "deer": "மான்"}


@pytest.mark.parametrize(
    ("query", "name"),
    [("दिन", "day"), ("दान", "gift"), ('"दान"', "gift"), ("ಕಾಲು", "leg"), ("மீன்", "fish"), ("மான்", "deer")],
)
def test_vowel_signs_are_parts_of_words(build: FtsBuild, reader: FtsReader, query: str, name: str) -> None:
    names = fill(build, VOWELS)
    hits = [hit.id for hit in reader.search(query, 3)]
    assert [names[hit] for hit in hits] == [name]
    assert [piece.text for piece in reader.snippets(query, hits)[hits[0]] if piece.match] == [query.strip('"')]


def test_long_word_with_vowel_signs_is_parsed_at_once() -> None:
    """An ambiguous expression for letters would take forever."""
    assert parse("कि" * 2_000).words == ("कि" * 2_000,)


def test_correction_changes_one_letter_of_a_short_word(build: FtsBuild, reader: FtsReader) -> None:
    fill(build, {"plan": "die künftigen Aufgaben", "mail": "we receive many accommodations", "list": "ordered"})
    assert reader.corrections("kündigen ordre ") == {}
    assert reader.corrections("plink mials ordered ") == {}, "two errors in a short word"
    assert reader.corrections("recieve acomodations ") == {"recieve": "receive", "acomodations": "accommodations"}


def test_identifier_in_another_spelling_is_not_missing(build: FtsBuild, reader: FtsReader) -> None:
    fill(build, {"road": "E52 and XR-9", "wide": "错误ERR-1150。", "version": "v3.11.2", "many": "x"})
    assert reader.missing_identifiers("E-52? XR9 'ERR-1150' ERR1150 3.11.2 ") == ["ERR1150"]
    assert reader.missing_identifiers("road 3.11") == reader.missing_identifiers("code ERR-11") == []
    assert reader.missing_identifiers("code ERR-11 ") == ["ERR-11"], "the last word may be incomplete, others not"
    assert reader.missing_identifiers('"ERR-1299" in 2024 x7') == [], "phrases, years and short words"
    assert len(reader.missing_identifiers(" ".join(f"pid{number}" for number in range(1000)))) < 10


@pytest.mark.parametrize(
    "typed",
    [
        "main.py:120 ",
        "max_size=300 ",
        "ERR-1150,SHA-256 ",
        "ERR-1150/SHA-256 ",
        "10.0.0.1:8080 ",
        "load_config(path=3) ",
    ],
)
def test_parts_of_an_identifier_may_be_apart(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    text = "load_config() reads a path. In src/app/main.py max_size is 300. SHA-256 of ERR-1150; port 8080 of 10.0.0.1"
    fill(build, {"parts": text})
    assert reader.missing_identifiers(typed) == []
    assert reader.missing_identifiers(f"{typed} ERR-1151 नाम_2 ") == ["ERR-1151", "नाम_2"]


def test_similar_word_with_another_meaning_is_no_correction(build: FtsBuild, reader: FtsReader) -> None:
    fill(build, {"disk": "fragmentation of the memory", "text": "marking the instance"})
    assert reader.corrections("fermentation marketing insurance ") == {}
    assert reader.corrections("fragmantetion markng instnace ") == {
        "fragmantetion": "fragmentation",
        "markng": "marking",
        "instnace": "instance",
    }


def test_compound_has_both_of_its_words(build: FtsBuild, reader: FtsReader) -> None:
    fill(build, {"lichens": "Die Flechtenkartierung begann", "map": "eine Kartierung der Wege", "wall": "Flechten"})
    assert reader.max_score("Flechten Kartierung ") is None, "so the best hit counts as a full match"
    assert reader.max_score("Flechten Kartierung Regen ") is not None


@pytest.mark.parametrize(
    ("query", "first", "match"),
    [
        ("jump", "fox", "jumping"),
        ("cached", "cache", "Caching"),
        ("café", "cafe", "cafe\u0301"),
        ('"brown foxes"', "fox", "brown foxes"),
        ("err_42", "code", "ERR_42"),
        ("config", "fox", "configurations"),
        ("東京", "tokyo", "東京"),
        ("京都の寺", "kyoto", "京都の寺"),
        ("です", "tokyo", "です"),
        ("อาหาร", "thai", "อาหาร"),
        ("부산 KTX", "seoul", "KTX"),
        ("机器学习的技术", "phone", "机器学习"),
        ("𠮷野", "supplementary", "𠮷野"),
        ("東京 zebra", "tokyo", "東京"),
        ("zebra iphone", "phone", "iPhone"),
        ("AND OR NOT", "code", "and"),
    ],
)
def test_query_finds_document(reader: FtsReader, texts: dict[str, str], query: str, first: str, match: str) -> None:
    hits = reader.search(query, 3)
    assert hits, "nothing found"
    found = {texts[hit.id]: hit for hit in hits}
    assert first in (list(found)[:2] if query == "です" else list(found)[:1])
    shown = reader.snippets(query, [found[first].id])[found[first].id]
    assert any(match.startswith(piece) or piece.startswith(match) for piece in marked(shown)), shown
    assert "".join(piece.text for piece in shown).strip("…") in TEXTS[first]


@pytest.mark.parametrize("query", ["zebra", '"foxes brown"', "大阪", "ฝน", "!!!", "😀", '"'])
def test_query_finds_nothing(reader: FtsReader, texts: dict[str, str], query: str) -> None:
    assert reader.search(query) == []


@pytest.mark.parametrize("character", ["台", "東", "す"])
def test_single_character_is_found_anywhere(reader: FtsReader, texts: dict[str, str], character: str) -> None:
    found = {texts[hit.id] for hit in reader.search(character)}
    assert found == {name for name, text in TEXTS.items() if character in text}


def test_all_words_rank_above_some_and_title_above_text(build: FtsBuild, reader: FtsReader) -> None:
    both = family("both", ["a long text about many other things, one of them a harbour, another one a bridge " * 3])
    often = family("often", ["bridge bridge bridge"])
    titled = family("titled", ["of stone"], metadata={"title": "The bridge"})
    once = family("once", ["a text of some length, as they are, that names a bridge"])
    build.replace([often, both, titled, once])
    order = [hit.parent_id for hit in reader.search("harbour bridge")]
    assert order[0] == both.parent_id
    found = [hit.parent_id for hit in reader.search("bridge")]
    assert found.index(titled.parent_id) < found.index(once.parent_id)
    scores = [hit.score for hit in reader.search("harbour bridge")]
    assert scores == sorted(scores, reverse=True)


def test_scores_equal_bm25(build: FtsBuild, reader: FtsReader) -> None:
    """Computed by hand for the words of a long query: k1 = 1.2 and b = 0.75 over all searched parts of a document."""
    texts = ["harbour bridge over water", "harbour boat", *(f"other text number {number}" for number in range(9))]
    build.replace([family(f"d{number}", [text]) for number, text in enumerate(texts)])
    query = "the harbour or bridge with boat and water"
    hits = reader.search(query, 20)
    path = Path(str(reader._path))
    with sqlite3.connect(path) as other:
        lengths = {row: 0 for (row,) in other.execute("SELECT row FROM documents")}
        other.execute("CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, documents_fts, instance)")
        held: dict[int, list[str]] = {row: [] for row in lengths}
        for row, term in other.execute("SELECT doc, term FROM places"):
            held[row].append(term)
        ids = dict(other.execute("SELECT row, id FROM documents").fetchall())
    other.close()
    mean = sum(map(len, held.values())) / len(held)
    expected = {}
    for row, terms in held.items():
        score = 0.0
        for word in ("harbour", "bridg", "boat", "water"):
            holding = sum(word in of_row for of_row in held.values())
            idf = math.log((len(held) - holding + 0.5) / (holding + 0.5))
            times = terms.count(word)
            score += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * len(terms) / mean))
        if score:
            expected[ids[row]] = score
    assert {hit.id: hit.score for hit in hits} == pytest.approx(expected)
    most = reader.max_score(query)
    assert most is not None
    assert max(expected.values()) < most


def test_document_that_lacks_one_of_few_words_scores_less(build: FtsBuild, reader: FtsReader) -> None:
    filler = [f"other text number {number}" for number in range(20)]
    both, often = family("both", ["harbour and bridge in a text of some length"]), family("often", ["bridge bridge"])
    build.replace([both, often, *(family(f"d{number}", [text]) for number, text in enumerate(filler))])
    alone = reader.search("bridge", 5)
    few = {hit.parent_id: hit.score for hit in reader.search("harbour bridge ", 5)}
    assert few[often.parent_id] == pytest.approx(0.85 * alone[0].score)
    assert few[both.parent_id] > few[often.parent_id]


def test_prefix_match_counts_half_and_never_twice(build: FtsBuild, reader: FtsReader) -> None:
    texts = {"whole": "a cat here", "longer": "a catalogue here", "other": "nothing of it"}
    families = {name: family(name, [text]) for name, text in texts.items()}
    build.replace([*families.values(), *(family(f"d{number}", ["something else"]) for number in range(20))])
    begun = {hit.parent_id: hit.score for hit in reader.search("cat", 5)}
    ended = {hit.parent_id: hit.score for hit in reader.search("cat ", 5)}
    whole, longer = families["whole"].parent_id, families["longer"].parent_id
    assert list(begun) == [whole, longer]
    assert list(ended) == [whole]
    assert begun[whole] == ended[whole]
    assert begun[longer] < 0.6 * begun[whole]


def test_compound_words_are_found_split_and_names_whole(build: FtsBuild, reader: FtsReader) -> None:
    layer = family("layer", ["the layer at the boundary"])
    right, wrong = family("right", ["error E-417 again"]), family("wrong", ["417 times in section E"])
    build.replace([layer, wrong, right, *(family(f"d{number}", ["something else"]) for number in range(20))])
    assert [hit.parent_id for hit in reader.search("boundary-layer")] == [layer.parent_id]
    assert [hit.parent_id for hit in reader.search("E-417")] == [right.parent_id, wrong.parent_id]


def test_stop_words_find_nothing_beside_others(build: FtsBuild, reader: FtsReader) -> None:
    mine, yours = family("mine", ["what is mine"]), family("yours", ["a puppy of yours"])
    build.replace([mine, yours, *(family(f"d{number}", ["something else"]) for number in range(20))])
    assert [hit.parent_id for hit in reader.search("what is my puppy?")] == [yours.parent_id]
    assert [hit.parent_id for hit in reader.search("what is")] == [mine.parent_id], "nothing else is left"


def test_snippet_is_plain_text(build: FtsBuild, reader: FtsReader) -> None:
    nasty = "<b>bold</b> \x02inside\x03 <script>alert('needle')</script> " + "and so on " * 100
    build.replace([family("a", [nasty]), family("b", ["東京<script>" + "の" * 500])])
    for query in ("needle", "東京"):
        [hit] = reader.search(query)
        pieces = reader.snippets(query, [hit.id])[hit.id]
        shown = "".join(piece.text for piece in pieces)
        assert "<script>" in shown
        assert "<mark>" not in shown
        assert query in marked(pieces)


def test_text_is_shown_whole(build: FtsBuild, reader: FtsReader) -> None:
    """A part could miss what semantic search has found, or the rarest word."""
    rows = [f"| ERR-{number} | the printer does not answer | ask |" for number in range(1141, 1158)]
    text = "\n".join(["| code | meaning | remedy |", *rows])
    build.replace([family("a", [text]), family("b", ["remedy and meaning"])])
    [id] = [hit.id for hit in reader.search("ERR-1150 ")]
    for typed in ("ERR-1150 remedy", "ERR-1150 meaning"):
        pieces = reader.snippets(typed, [id])[id]
        assert "".join(piece.text for piece in pieces) == text
        assert "ERR-1150" in marked(pieces)


def test_query_is_split_as_expected() -> None:
    assert parse('red "two words" c++ 東京タワー').words == ("red", "two words", "c")
    assert parse("東京タワー red").runs == ("東京タワー",)
    assert parse("iPhone手机").words == ("iPhone",)
    assert parse("the boundary-layer of Reynolds' plate's edge").words == (
        ("boundary", "layer", "Reynolds", "plate", "edge")
    )
    assert parse("IL-10, err_42 or E-417").words == ("IL-10", "err", "err_42", "417", "E-417")
    assert parse("to be or not").words == ("to", "be", "or", "not"), "nothing else is left"
    assert parse('red "two words" "" "?!" "東京 a"').phrases == ("two words", "東京 a")


@pytest.mark.parametrize(
    ("typed", "prefix"),
    [
        ("red appl", "appl"),
        ("red err_4", "err_4"),
        ("red apple ", ""),
        ("red appl.", ""),
        ('"red appl"', ""),
        ("what cat is it", ""),
        ("it", "it"),
        ("東京", ""),
    ],
)
def test_last_word_may_be_a_prefix(typed: str, prefix: str) -> None:
    assert parse(typed).prefix == prefix


def test_snippet_of_a_long_text_is_around_the_rarest_word(build: FtsBuild, reader: FtsReader) -> None:
    lines = [f"The clockmaker painted clock number {number}." for number in range(3000)]
    book = family("book", ["\n".join([*lines[:2000], "Boats came to the café for education.", *lines[2000:]])])
    build.replace([book])
    ids = [document.id for document in book.documents]
    for typed, found in (("clockmaker 2718", "2718"), ("boat", "Boats"), ("cafe ", "café"), ('"came to"', "came")):
        (pieces,) = reader.snippets(typed, ids).values()
        assert any(found in piece for piece in marked(pieces)), typed
        text = "".join(piece.text for piece in pieces)
        assert (text[0], text[-1], len(text) < 2100) == ("…", "…", True)
    (pieces,) = reader.snippets("clock number 0 ", ids).values()
    assert pieces[0].text != "…"
    assert reader.snippets("cat ", ids) == {}, "no word of its own"


def test_snippet_requires_a_matching_word(build: FtsBuild, reader: FtsReader) -> None:
    """Also for a document that was found by other means."""
    one, other = family("a", ["running shoes"]), family("b", ["boats"])
    build.replace([one, other])
    ids = [one.documents[0].id, other.documents[0].id]
    shown = reader.snippets("run", [*ids, "nowhere", "half \udcff"])
    assert {id: marked(pieces) for id, pieces in shown.items()} == {ids[0]: ["running"]}
    assert reader.snippets("", ids) == reader.snippets("?!", ids) == reader.snippets("run", []) == {}


def test_ended_threads_leave_no_file_open(reader: FtsReader, texts: dict[str, str]) -> None:
    assert texts

    def descriptors() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    reader.search("foxes")
    before = descriptors()
    for _ in range(20):
        thread = threading.Thread(target=reader.search, args=("foxes",))
        thread.start()
        thread.join()
    assert descriptors() == before
    reader.close()
    assert descriptors() < before
    assert reader.search("foxes")  # a reader that still has it gets answers, and leaves nothing behind
    assert descriptors() < before


def test_reader_serves_many_threads(reader: FtsReader, texts: dict[str, str]) -> None:
    answers: list[list[str]] = []

    def ask() -> None:
        answers.extend([hit.id for hit in reader.search("foxes")] for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[next(id for id, name in texts.items() if name == "fox")]] * 80


@pytest.mark.parametrize("typed", ["print", "printe", "printer", "printer ", "the printer jams"])
def test_passages_with_the_word_rank_above_others_of_the_title(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    texts = ["Thanks!", "The printer on the third floor jams every morning, and nobody knows why.", "ok"]
    others = [family(f"d{n}", [f"Message {n} of somebody about something else, of usual length."]) for n in range(20)]
    build.replace([family("ticket", texts, metadata={"title": "Ticket 121: printer"}), *others])
    first, *rest = reader.search(typed, every=True)
    assert (reader.get([first.id])[0].text, len(rest)) == (texts[1], 2)


@pytest.mark.parametrize(
    ("typed", "is_known"),
    [
        ("M8x40 screw ", False),
        ("error in 2.10.10 ", False),
        ("M8x40 0601 screw ", True),  # no document has both
        ("A777 screw ", True),  # occurs in many documents
        ("1998 screw ", True),  # a year
        ("E-418 screw ", True),  # does not occur, although a part of it does
    ],
)
def test_document_with_a_rare_name_scores_highest(
    build: FtsBuild, reader: FtsReader, typed: str, is_known: bool
) -> None:
    texts = [
        "bolt M8x40",
        "part 0601 of a drill",
        "firmware 2.10.10",
        "418 visitors in 1998",
        *(f"news {n} of A777" for n in range(30)),
    ]
    build.replace([family(f"d{number}", [text]) for number, text in enumerate(texts)])
    assert (reader.max_score(typed) is not None) == is_known


def test_more_hits_than_sql_variables_are_returned(build: FtsBuild, reader: FtsReader) -> None:
    most = sqlite3.connect(":memory:").getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    build._connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) "
        "INSERT INTO documents (id, parent_id, text) SELECT 'n' || i, 'p', 'many' FROM n",
        [min(most, 40_000) + 1],
    )
    assert len(reader.search("many", 100_000)) == min(most, 40_000) + 1
