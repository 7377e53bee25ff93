"""Adjacent words, phrases and long queries."""

import time
from collections.abc import Mapping

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader, query, text_patterns
from chunksink.sinks.fts.query import MAX_TERMS, parse
from chunksink.sinks.reader import FacetValue
from tests.support.fts import fill

OTHERS = ["run", "dry", "std", "vector", "read", "write"]


@pytest.mark.parametrize(
    ("typed", "apart", "joined"),
    [
        ("--dry-run", "run it, and then run it --dry", "publish with --dry-run: it shows what would go there"),
        ("dry-runs ", "run and run until all is dry", "a dry run of the whole publication, before it is made"),
        ("AT&T", "it doesn't, and we can't", "the phones are by AT&T"),
        ("read vector", "read on: a vector is read, a vector", "of all that can be done, you read vector after vector"),
        ("std::vector", "std has a vector and others, such a vector", "how std::vector grows when it is filled"),
        (
            "a vector is read but not dry",
            "dry vectors are not read, but a vector is",
            "and so a vector is read, but not dry it is",
        ),
    ],
)
def test_adjacent_words_rank_higher(build: FtsBuild, reader: FtsReader, typed: str, apart: str, joined: str) -> None:
    one, other = family("apart", [apart]), family("joined", [joined])
    others = [family(f"d{number}", [f"{OTHERS[number % 6]} is not all of it"]) for number in range(60)]
    build.replace([one, other, *others, *(family(f"e{number}", ["something else"]) for number in range(60))])
    assert [hit.parent_id for hit in reader.search(typed)][:2] == [other.parent_id, one.parent_id]


def test_score_never_exceeds_its_bound(build: FtsBuild, reader: FtsReader) -> None:
    build.replace(
        [family("one", ["dry-run " * 90]), *(family(f"d{number}", ["something " * 90]) for number in range(20))]
    )
    (best, *_) = reader.search("dry-run something ")
    most = reader.max_score("dry-run something ")
    assert most is not None
    assert 0.7 * most < best.score < most


@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        ("a --dry-run", ("dry-run",)),
        ("how a --dry-run of it changes std::vector", ()),  # an additional word among many has little effect
        ("plan.py's", ("plan.py",)),
        ("ls -la ...", ()),
        ("E-417 err_42 v1.2-beta", ()),  # searched as typed
        ('"dry-run"', ()),
    ],
)
def test_phrases_of_a_query_are_recognised(typed: str, joined: tuple[str, ...]) -> None:
    assert parse(typed).joined == joined


TEXTS = {
    "phrase": "a smart pointer owns what it points to",
    "wrapped": "we call it a smart\npointer (of the\nstandard library)",
    "words": "the pointer of a smart compiler",
    "other": "a compiler and a linker",
    "tokyo": "東京都庁の展望台は無料です",
    "kyoto": "京都の展望と展望台、無料は京都だけ",
    "busan": "서울에서\n부산까지 기차",
    "seoul": "부산까지 기차로 서울에서",
    "beside": "使用machine learning的系统",
    "within": "使用machine learnings的系统",
}


@pytest.fixture
def texts(build: FtsBuild) -> dict[str, str]:
    return fill(build, TEXTS)


PHRASES: Mapping[str, set[str]] = {
    '"smart pointer"': {"phrase", "wrapped"},
    '"smart pointer" "standard library" linker': {"wrapped"},
    '"smart pointer" "a compiler"': set(),
    '"the" compiler': {"words", "wrapped"},
    '"展望台は無料"': {"tokyo"},
    '"展望台" 京都': {"tokyo", "kyoto"},
    '"京都の"': {"kyoto"},
    '"都"': {"tokyo", "kyoto"},
    '"서울에서 부산까지"': {"busan"},
    '"machine learning"': {"beside"},
    '"使用machine learning"': {"beside"},
    '"?!" linker': {"other"},
    '"linker': {"other"},
}


@pytest.mark.parametrize("typed", PHRASES)
def test_phrase_query_finds_and_counts_only_matches(reader: FtsReader, texts: dict[str, str], typed: str) -> None:
    assert {texts[hit.id] for hit in reader.search(typed, 100)} == PHRASES[typed]
    counted = reader.facets(typed, ["tags"])["tags"]
    assert counted == [FacetValue(name, 1) for name in sorted(PHRASES[typed])]


def test_query_with_any_number_of_phrases_is_accepted(reader: FtsReader, texts: dict[str, str]) -> None:
    typed = " ".join(f'"{word}"' for word in TEXTS["phrase"].split())
    assert [texts[hit.id] for hit in reader.search(typed)] == ["phrase"]
    assert reader.search(" ".join(f'"n{number}"' for number in range(1500))) == []


FILLER = [f"filler{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(MAX_TERMS + 30)]


def test_rare_word_after_many_others_is_found(build: FtsBuild, reader: FtsReader) -> None:
    rare = family("rare", ["how to make a screenshot"], metadata={"tags": ["rare"]})
    common = [family(f"d{number}", [" ".join(FILLER)], metadata={"tags": ["common"]}) for number in range(3)]
    build.replace([rare, *common])
    for before in (FILLER, [f"nowhere{number}x" for number in range(500)], [f"{word}, {word * 200}" for word in "ab"]):
        typed = " ".join(before) + " screenshot "
        assert rare.parent_id in [hit.parent_id for hit in reader.search(typed)]
        assert "rare" in [value.value for value in reader.facets(typed, ["tags"])["tags"]]
        id = rare.documents[0].id
        assert [piece.text for piece in reader.snippets(typed, [id])[id] if piece.match] == ["screenshot"]
        most = reader.max_score(typed)
        assert most is None or most > 0


def test_rare_short_run_after_many_others_is_found(build: FtsBuild, reader: FtsReader) -> None:
    rare = family("rare", ["東京都庁の展望台"])
    build.replace([rare, family("other", ["something else"])])
    for between in ("", " ", "。"):
        before = between.join(chr(0x5000 + number) for number in range(300))
        assert [hit.parent_id for hit in reader.search(f"{before} 展望台")] == [rare.parent_id]


@pytest.mark.parametrize(
    "sign", ["x", "x-", "-", "#", "1", "1.", "+", "x+", "'", '"', '1"', " ", "猫", "猫x", "::", "x::"]
)
def test_query_time_is_proportional_to_its_length(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_CHARACTERS", 100_000)
    long = sign * (100_000 // len(sign)) + "!"
    began = time.process_time()
    query.parse(long)
    query.parse(f'"{long}"')
    text_patterns.punctuated_words(long)
    assert time.process_time() - began < 10  # quadratic time would take minutes
