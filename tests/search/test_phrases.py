"""Every hit contains the quoted phrases, in every mode. Rare words rank above similar meanings."""

from dataclasses import replace

import pytest

from chunksink.search import phrases as phrases_
from chunksink.search.access import Access
from chunksink.search.legs import Legs
from chunksink.search.phrases import keyword_query, phrases_of
from chunksink.search.query import search
from chunksink.search.question import FUSIONS, FusionName, Mode, Question
from chunksink.sinks.errors import Transient
from chunksink.sinks.fts.query import parse
from chunksink.sinks.reader import FacetValue, Filter
from tests.search.support import MODES, Failing, family, with_readers
from tests.support.bus import parent_of

CROWD = [f"a cat and a feline, kitten {number}" for number in range(150)]
FAMILIES = [
    family("crowd.md", *CROWD, ids="crowd"),
    family(
        "sea.md",
        "The vessel left the harbour",
        "A boat left a vessel",
        "the harbour left",
        tenant_id="acme",
        metadata={"tags": ["sea"]},
    ),
    family("law.md", "when the ship left\nthe harbour nobody paid a levy", metadata={"tags": ["law"]}),
    family("zebra.md", f"a zebra, of which nothing else is known{' among very many other words' * 12}"),
]
LEFT = {"The vessel left the harbour", "when the ship left\nthe harbour nobody paid a levy"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_hits_contain_the_quoted_phrase(legs: Legs, mode: Mode, fusion: FusionName) -> None:
    for words in ("", " cat", " feline kitten boat"):
        question = Question(f'"left the harbour"{words}', mode=mode, fusion=fusion, collapse=False)
        answer = search(legs, question)
        assert {hit.text for hit in answer} == LEFT
        assert (answer.more, answer.notice) == (False, None)
        assert all(hit.highlights for hit in answer) is (mode != "semantic")
        pages = [search(legs, replace(question, limit=1, offset=offset)) for offset in range(3)]
        assert [hit.chunk_id for page in pages for hit in page] == [hit.chunk_id for hit in answer]


@pytest.mark.parametrize("mode", MODES)
def test_phrase_search_respects_filters_and_tenants(legs: Legs, mode: Mode) -> None:
    question = Question('"left the harbour" cat', mode=mode)
    assert [hit.source_uri for hit in search(legs, question, Access("acme"))] == ["sea.md"]
    only_law = replace(question, filters=(Filter("tags", any_of=("law",)),))
    assert [hit.source_uri for hit in search(legs, only_law)] == ["law.md"]


def test_phrase_hits_are_ordered_by_similarity(legs: Legs) -> None:
    (best, *_) = search(legs, Question('"left" boat', mode="semantic", collapse=False))
    assert best.text == "A boat left a vessel"
    assert best.shares[0].rank == 1


def test_facets_count_phrase_hits(legs: Legs) -> None:
    answer = search(legs, Question('"nobody paid" cat', mode="semantic", facets=("tags",)))
    assert answer.facets["tags"] == [FacetValue("law", 1)]


@pytest.mark.parametrize("mode", MODES)
def test_notice_if_no_text_contains_the_phrase(legs: Legs, mode: Mode) -> None:
    answer = search(legs, Question('"no such phrase" "left the harbour" cat', mode=mode))
    assert (len(answer), answer.more) == (0, False)
    assert '"no such phrase" and "left the harbour"' in (answer.notice or "")
    filtered = Question('"kitten 7"', mode=mode, filters=(Filter("tags", any_of=("law",)),))
    assert '"kitten 7"' in (search(legs, filtered).notice or "")


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
def test_notice_if_phrases_cannot_be_searched(legs: Legs, mode: Mode) -> None:
    phrase = '"left the harbour"'
    alone = replace(legs, keyword=None)
    answer = search(alone, Question('"left the harbour" cat', mode=mode))
    assert len(answer) == 4
    assert phrase in (answer.notice or "")
    down = with_readers(legs, keyword=Failing(Transient("it is out of reach")))
    answer = search(down, Question('"left the harbour" cat', mode=mode))
    assert len(answer) > 0
    assert phrase in (answer.notice or "")
    assert answer.unavailable.keys() == ({"keyword"} if mode == "hybrid" else set())


def test_phrases_found_in_another_build_are_ignored(legs: Legs) -> None:
    assert legs.keyword is not None
    moved = replace(legs, keyword=replace(legs.keyword, build_id="newer"))
    answer = search(moved, Question('"left the harbour"', mode="semantic"))
    assert answer.moved
    assert answer.notice is not None


def test_number_of_compared_phrase_hits_is_limited(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrases_, "MAX_PHRASE_HITS", 20)
    assert len(search(legs, Question('"kitten"', mode="semantic", collapse=False, limit=100))) == 20
    assert len(search(legs, Question('"kitten"', mode="hybrid", collapse=False, limit=200))) == 150


@pytest.mark.parametrize("typed", ['cat "', '""', '"?!"', '" " cat', "cat"])
def test_quotes_without_words_are_no_phrases(legs: Legs, typed: str) -> None:
    assert not phrases_of(typed)
    assert search(legs, Question(typed)).notice is None


@pytest.mark.parametrize("typed", ['"&&"', '"..=" "?!"', '""', '"'])
def test_quotes_around_punctuation_do_not_find_everything(legs: Legs, typed: str) -> None:
    assert len(search(legs, Question(typed, mode="keyword"))) == len(search(legs, Question("&&", mode="keyword"))) == 0


def test_keyword_query_puts_phrases_first() -> None:
    assert keyword_query('a "b c" d "e') == '"b c" a   d  e', "an unpaired quote is ignored"
    assert keyword_query('cat "b c"').endswith("cat  "), "cat is not the last word, which engines treat as a prefix"
    assert keyword_query("cat ") == "cat "
    assert keyword_query('cat "&&"').split() == ["cat", "&&"], "quotes around punctuation are ignored"


@pytest.mark.parametrize("fusion", FUSIONS)
def test_only_passage_with_a_word_comes_first(legs: Legs, fusion: FusionName) -> None:
    """It occurs once in a long text, so it has a third of the best BM25 score. Similar texts lack the word."""
    answer = search(legs, Question("zebra ", fusion=fusion))
    assert answer.hits[0].parent_id == parent_of("zebra.md")
    if fusion == "scores":
        assert answer.hits[0].shares[0].value == 1


@pytest.mark.parametrize(
    ("typed", "phrases"),
    [
        ("„one“ and «two three» 「四つ」", ("one", "two three", "四つ")),
        ("”one” and »two« ＂three＂ 『四つ』", ("one", "two", "three", "四つ")),
        ('say "one  two" or"three" "one  two" "', ("one  two", "three")),
        ("「彼は『はい』と言った」", ("彼は はい と言った",)),
        ("«one “two” three»", ("one  two  three",)),
        ("the dog’s ‘bone’ and 'tail'", ()),
        ("a “left open", ()),
        ("»?!«", ()),
        ('24" vs 27" monitor', ()),
        ('a 5" disk "in words"', ("in words",)),
        ('("first one") "second one"', ("first one", "second one")),
        ('手机"苹果 手机"', ("苹果 手机",)),
        ('"left open', ()),
    ],
)
def test_phrases_of_reads_all_kinds_of_quotes(typed: str, phrases: tuple[str, ...]) -> None:
    assert phrases_of(typed).texts == phrases
    assert parse(keyword_query(typed)).phrases == phrases
    assert not set("“”„«»「」『』") & set(keyword_query(typed))
    assert keyword_query(typed).count('"') == 2 * len(phrases), "an inch mark opens no phrase"
