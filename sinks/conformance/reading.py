"""Tests of readers: the guarantees that searches rely on in every engine."""

import math
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import pytest

from chunksink.sinks.capabilities import SupportsPatterns, SupportsReader, capability
from chunksink.sinks.conformance.samples import DIMENSIONS, FIELDS, family, fill, marker, vector
from chunksink.sinks.document import Family
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.reader import FacetValue, FamiliesOf, Filter, Hit, KeywordReader, Sort, VectorReader

FAMILIES = [
    family(
        "docs/a.md",
        ["red apple", "green apple"],
        tenant_id="t1",
        metadata={"tags": ["fruit", "sweet"], "year": 2001, "project": "apollo", "priority": 2, "labels": ["x", "y z"]},
    ),
    family(
        "docs/b.md",
        ["red car"],
        tenant_id="t1",
        metadata={"tags": ["machine"], "year": 2002, "authors": "Ada", "priority": 10, "open": True, "labels": "y"},
    ),
    family(
        "docs/c.pdf",
        ["red apple"],
        tenant_id="t2",
        metadata={"tags": ["fruit"], "project": "gemini", "due": "2026-01-31", "priority": 1.5, "open": False},
    ),
    family("docs/d.pdf", ["blue car"], metadata={"year": 2003, "project": "Apollo"}, content_truncated=True),
]
OF_T1 = [Filter("tenant_key", any_of=(str(FAMILIES[0].documents[0].tenant_key),))]
"""Limits a search to the tenant that owns the first two families."""
OTHERS = [
    *(family(f"docs/{n}.md", ["red apple car", "machine learning"], tenant_id="t2") for n in range(9)),
    family("docs/rare.md", ["blue zebra", "grean grean greeen"], tenant_id="t2", metadata={"title": "zebra"}),
]
"""Another tenant's families. They make rare words frequent, and add words that the first tenant lacks."""
FAMILY_OF = {document.id: one.parent_id for one in FAMILIES for document in one.documents}
ALL = [document.id for one in FAMILIES for document in one.documents]

FILTERED: list[tuple[list[Filter], list[int]]] = [
    ([], [0, 1, 2, 3]),
    ([Filter("parent_id", any_of=(FAMILIES[1].parent_id, FAMILIES[3].parent_id))], [1, 3]),
    (OF_T1, [0, 1]),
    ([Filter("tags", any_of=("fruit",))], [0, 2]),
    ([Filter("tags", any_of=("sweet", "machine"))], [0, 1]),
    ([Filter("authors", any_of=("Ada",))], [1]),
    ([Filter("extension", any_of=("pdf",)), Filter("tags", any_of=("fruit",))], [2]),
    ([Filter("year", at_least=2002)], [1, 3]),
    ([Filter("year", at_least=2002, at_most=2002)], [1]),
    ([Filter("year", any_of=(2001, 2003))], [0, 3]),
    ([Filter("content_truncated", any_of=(True,))], [3]),
    ([Filter("tags", any_of=("Fruit",))], []),
    ([Filter("tags", any_of=("FRUIT", "machine"))], [1]),
    ([Filter("tags", any_of=())], []),
    ([Filter("tags", any_of=("fruit' OR 1=1 --",))], []),
    ([Filter("extension", any_of=())], []),
    ([Filter("year", at_least=-(2**52), at_most=2**53 - 1)], [0, 1, 3]),
    ([Filter("fields.project", any_of=("apollo",))], [0]),
    ([Filter("fields.project", any_of=("apollo", "gemini"))], [0, 2]),
    ([Filter("fields.project", any_of=())], []),
    ([Filter("fields.priority", any_of=(2, 1.5))], [0, 2]),
    ([Filter("fields.priority", at_least=1.75)], [0, 1]),
    ([Filter("fields.priority", at_least=math.nextafter(2, math.inf))], [1]),
    ([Filter("fields.priority", at_most=math.nextafter(2, -math.inf))], [2]),
    ([Filter("fields.priority", at_least=1.5, at_most=2)], [0, 2]),
    ([Filter("fields.due", at_least=1769817600, at_most=1769817600)], [2]),
    ([Filter("fields.due", at_least=1769817601)], []),
    ([Filter("fields.open", any_of=(True,))], [1]),
    ([Filter("fields.open", any_of=(True, False))], [1, 2]),
    ([Filter("fields.labels", any_of=("y z",), is_list=True)], [0]),
    ([Filter("fields.labels", any_of=("y", "x"), is_list=True)], [0, 1]),
    ([Filter("fields.labels", any_of=(), is_list=True)], []),
    ([Filter("fields.unknown", any_of=("x",))], []),
    ([Filter("fields.unknown", at_least=1)], []),
]
SYNTAX = '" "" "red ( NOT * red* - ^ { text: \\ \0 % \' ͺͺ ㈠㈡ "ͺ-ͺ"'


def ids(numbers: list[int]) -> set[str]:
    return {document.id for number in numbers for document in FAMILIES[number].documents}


def open_reader(connect: Any, families: list[Family]) -> Iterator[Any]:
    sink, signed = connect(), marker()
    build = sink.create(signed, DIMENSIONS)
    fill(build, families)
    build.close()
    readable = capability(sink, SupportsReader)
    assert readable is not None, "the sink has no method reader(build_id)"
    reader = readable.reader(signed.build_id)
    assert reader.marker() == signed
    yield reader
    reader.close()
    reader.close()
    sink.drop(signed.build_id)
    sink.close()


def families_of(known: Mapping[str, str]) -> FamiliesOf:
    return lambda ids: {id: known[id] for id in ids if id in known}


def ways_to_find(reader: Any, id: str, *, by_vector: bool) -> list[bool]:
    """Whether each method of the reader finds the document with the text "red apple"."""
    found = [bool(reader.get([id]))]
    if by_vector and capability(reader, VectorReader) is not None:
        found.append(id in {hit.id for hit in reader.query(vector("red apple"))})
    if capability(reader, KeywordReader) is not None:
        found.append(id in {hit.id for hit in reader.search("red apple")})
    return found


class ReaderConformance:
    @pytest.fixture
    def reader(self, connect: Any) -> Iterator[Any]:
        yield from open_reader(connect, FAMILIES)

    def test_get_returns_documents_in_the_requested_order(self, reader: Any) -> None:
        asked = [ALL[3], "nobody", ALL[0], ALL[3]]
        found = reader.get(asked)
        assert [document.id for document in found] == [ALL[3], ALL[0], ALL[3]]
        assert found[1] == FAMILIES[0].documents[0]
        assert reader.get([]) == []

    def test_refresh_shows_later_writes(self, connect: Any) -> None:
        signed, late = marker(), family("late.md", ["red apple"])
        with closing(connect()) as sink:
            with closing(sink.create(signed, DIMENSIONS)) as build:
                fill(build, FAMILIES)
                with closing(sink.reader(signed.build_id)) as reader:
                    ask = partial(ways_to_find, reader, late.documents[0].id, by_vector=sink.wants_vectors)
                    assert not any(ask())
                    fill(build, [late])
                    reader.refresh()
                    assert all(ask())
            sink.drop(signed.build_id)


class VectorConformance(ReaderConformance):
    """For sinks whose reader answers `query`."""

    def test_the_reader_is_a_vector_reader(self, reader: Any) -> None:
        assert capability(reader, VectorReader) is not None, "a method of VectorReader is missing"

    def test_query_returns_only_documents_that_pass_the_filters(self, reader: VectorReader) -> None:
        for filters, expected in FILTERED:
            hits = reader.query(vector("red apple"), 10, filters)
            assert {hit.id for hit in hits} == ids(expected), filters

    def test_query_returns_the_nearest_document_first(self, reader: VectorReader) -> None:
        hits = reader.query(vector("blue car"), 3)
        assert hits[0].id == FAMILIES[3].documents[0].id
        assert hits[0].parent_id == FAMILIES[3].parent_id
        assert hits[0].score == pytest.approx(1, abs=1e-4)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert len(hits) == 3
        assert reader.query(vector("blue car") * 1000, 1)[0].score == pytest.approx(1, abs=1e-4)

    def test_scores_are_cosines_even_if_vectors_are_not_normalised(self, connect: Any) -> None:
        longer = [Family(one.documents, np.stack([vector(d.text) * 3 for d in one.documents])) for one in FAMILIES]
        for reader in open_reader(connect, longer):
            asked = vector("blue car")
            (hit,) = reader.query(asked, 1)
            assert (hit.parent_id, hit.score) == (FAMILIES[3].parent_id, pytest.approx(1, abs=1e-4))
            assert reader.similarities(asked, [hit.id]) == {hit.id: pytest.approx(1, abs=1e-4)}

    def test_query_with_known_families_returns_the_same_hits(self, reader: VectorReader) -> None:
        """The caller may know all, some or none of the families; the sink finds the others."""
        hits = reader.query(vector("red apple"), 3)
        of = {hit.id: hit.parent_id for hit in hits}
        for known in (of, dict(list(of.items())[:1]), {}):
            assert reader.query(vector("red apple"), 3, (), families_of(known)) == hits

    def test_query_omits_documents_without_text(self, connect: Any) -> None:
        empty = family("empty.md", ["", "", "red apple", ""])
        for reader in open_reader(connect, [*FAMILIES, empty]):
            everything = {hit.id for hit in reader.query(vector(""), 10)}
            assert everything == {*ALL, empty.documents[2].id}
            nearest = reader.query(vector(""), 2)
            assert len(nearest) == 2
            assert {hit.id for hit in nearest} <= everything

    def test_query_of_a_tenant_depends_only_on_its_documents(self, connect: Any) -> None:
        found = [
            [reader.query(vector(text), limit, OF_T1) for text in ("red apple", "zebra") for limit in (1, 10)]
            for families in (FAMILIES[:2], [*FAMILIES[:2], *OTHERS])
            for reader in open_reader(connect, families)
        ]
        assert found[0] == found[1]

    def test_similarities_equal_the_scores_of_query(self, reader: VectorReader) -> None:
        asked = vector("red apple") * 3
        near = {hit.id: hit.score for hit in reader.query(asked, 3)}
        similarities = reader.similarities(asked, [*near, "nobody", *near])
        assert similarities == {id: pytest.approx(score, abs=1e-4) for id, score in near.items()}
        assert reader.similarities(asked, []) == {}


class KeywordConformance(ReaderConformance):
    """For sinks whose reader answers `search`."""

    one_hit_per_family = False
    """True for an engine that returns only the best document of each family."""

    def test_the_reader_is_a_keyword_reader(self, reader: Any) -> None:
        assert capability(reader, KeywordReader) is not None, "a method of KeywordReader is missing"

    def test_search_returns_only_documents_that_pass_the_filters(self, reader: KeywordReader) -> None:
        for filters, expected in FILTERED:
            self.check(reader.search("", 10, filters), ids(expected), filters)
            self.check(reader.search("apple", 10, filters), ids(expected) & ids([0, 2]), filters)

    def check(self, hits: list[Hit], expected: set[str], filters: list[Filter]) -> None:
        found = [hit.id for hit in hits]
        if not self.one_hit_per_family:
            assert set(found) == expected, filters
            return
        assert set(found) <= expected, filters
        assert sorted(hit.parent_id for hit in hits) == sorted({FAMILY_OF[id] for id in expected}), filters

    def test_search_returns_the_best_match_first(self, reader: KeywordReader) -> None:
        hits = reader.search("blue car", 10)
        assert hits[0].id == FAMILIES[3].documents[0].id
        assert hits[0].parent_id == FAMILIES[3].parent_id
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert reader.search("zebra", 10) == []
        assert len(reader.search("red", 1)) == 1

    def test_search_finds_words_that_no_document_has_together(self, connect: Any) -> None:
        families = [family("a.md", ["the zebra sleeps"]), family("b.md", ["a quince is yellow"])]
        for reader in open_reader(connect, families):
            found = {hit.parent_id for hit in reader.search("zebra quince", 10)}
            assert found == {one.parent_id for one in families}

    def test_a_word_in_the_title_ranks_above_the_same_word_in_the_text(self, connect: Any) -> None:
        named = [("Tides", "The harbour at noon"), ("Harbour", "The tides at noon")]
        families = [family(f"{title}.md", [text], metadata={"title": title}) for title, text in named]
        for reader in open_reader(connect, families):
            assert [hit.parent_id for hit in reader.search("harbour")] == [families[1].parent_id, families[0].parent_id]

    def test_hits_contain_the_words_in_quotes(self, reader: KeywordReader) -> None:
        self.check(reader.search('"red apple"', 10), {ALL[0]} | ids([2]), [])
        assert reader.search('"apple red"', 10) == []

    def test_corrections_are_other_words_that_occur(self, reader: KeywordReader) -> None:
        assert reader.corrections("blue car ") == {}, "both words occur"
        for word, near in reader.corrections("machien lerning ").items():
            assert near != word
            assert reader.search(f"{near} ", 1), near

    def test_missing_identifiers_are_in_no_document_that_passes_the_filters(self, connect: Any) -> None:
        texts = {"t1": "ERR-1150: max_size is 300", "t2": "ERR-1299: min_size is 4711"}
        families = [family(f"{tenant}.md", [text], tenant_id=tenant) for tenant, text in texts.items()]
        for reader in open_reader(connect, families):
            assert reader.missing_identifiers("is ERR-1299 min_size 4711 (ERR-1150) zebra ") == []
            query = "Is ERR-1299, err 1150, min_size or 4711 of ERR-1150 zebra?"
            assert set(reader.missing_identifiers(query, OF_T1)) == {"ERR-1299", "min_size", "4711"}

    def test_answers_of_a_tenant_depend_only_on_its_documents(self, connect: Any) -> None:
        def answers(reader: KeywordReader, query: str) -> list[Any]:
            hits = reader.search(query, 10, OF_T1, every=True)
            return [
                hits,
                reader.search(query, 2, OF_T1),
                reader.snippets(query, [hit.id for hit in hits], OF_T1),
                reader.max_score(query, OF_T1),
                reader.corrections(query, OF_T1),
                reader.facets(query, ["tags", "year", "parent_id"], OF_T1),
            ]

        queries = ("apple", "red apple ", "red zebra", "zebra car apple", "gren ", "machin", "blue")
        found = [
            [answers(reader, query) for query in queries]
            for families in (FAMILIES[:2], [*FAMILIES[:2], *OTHERS])
            for reader in open_reader(connect, families)
        ]
        assert found[0] == found[1]
        assert all(hits for hits, *_ in found[0][:4])

    def test_search_treats_query_syntax_as_text(self, reader: KeywordReader) -> None:
        for typed in ("red AND", *SYNTAX.split(" ")):
            for query in (typed, f"red {typed}", f"{typed}red", f"red {typed} apple"):
                reader.search(query, 5)
                reader.facets(query, ["tags"])
                reader.corrections(query)
            reader.search(typed, 5, sort=Sort("year"))
        found = {hit.id for hit in reader.search("red ; DROP TABLE documents; --", 5)}
        assert found == ids([1, 2]) | {ALL[0]}, "the words between the symbols are searched for"

    def test_get_leaves_out_unknown_ids(self, reader: KeywordReader) -> None:
        assert [one.id for one in reader.get(["\ud800", ALL[0], "a b", "", "x" * 600, "\0", f"{ALL[0]}\n"])] == [ALL[0]]

    def test_search_ignores_half_a_surrogate_pair(self, reader: KeywordReader) -> None:
        for typed in ("apple \ud800", "\udfffapple", "red \ud800apple"):
            assert {hit.parent_id for hit in reader.search(typed)} >= {FAMILIES[2].parent_id}, ascii(typed)
        assert reader.search("\ud800") == []

    def test_facets_count_families(self, reader: KeywordReader) -> None:
        found = reader.facets("apple", ["tags", "year", "content_truncated"])
        assert found["tags"] == [FacetValue("fruit", 2), FacetValue("sweet", 1)]
        assert found["year"] == [FacetValue(2001, 1)]
        assert found["content_truncated"] == []
        assert reader.facets("", ["content_truncated"]) == {"content_truncated": [FacetValue(True, 1)]}
        one = reader.facets("", ["tags", "extension"], OF_T1, limit=1)
        assert one == {"tags": [FacetValue("fruit", 1)], "extension": [FacetValue("md", 2)]}
        with pytest.raises(InvalidFilter):
            reader.facets("", ["text"])

    def test_facets_among_families_count_only_these(self, reader: KeywordReader) -> None:
        among = [FAMILIES[0].parent_id, FAMILIES[1].parent_id, "0" * 64]
        assert reader.facets("apple", ["tags"], among=among)["tags"] == [FacetValue("fruit", 1), FacetValue("sweet", 1)]
        assert reader.facets("", ["year"], OF_T1, among=[FAMILIES[3].parent_id])["year"] == []

    def test_facets_of_custom_fields_count_families(self, reader: KeywordReader) -> None:
        found = reader.facets("", ["fields.labels", "fields.priority", "fields.open", "fields.due", "fields.unknown"])
        counted = {
            field: {FIELDS.display_value(field.removeprefix("fields."), one.value): one.families for one in values}
            for field, values in found.items()
        }
        assert counted == {
            "fields.labels": {"x": 1, "y z": 1, "y": 1},
            "fields.priority": {2: 1, 10: 1, 1.5: 1},
            "fields.open": {True: 1, False: 1},
            "fields.due": {"2026-01-31T00:00:00Z": 1},
            "fields.unknown": {},
        }

    def test_snippets_mark_words_with_accents(self, connect: Any) -> None:
        text = "Die Prüfung im Café"
        for reader in open_reader(connect, [family("docs/accents.md", [text])]):
            for query in ("Prüfung Café ", "prufung cafe "):
                (hit,) = reader.search(query)
                pieces = reader.snippets(query, [hit.id])[hit.id]
                assert [piece.text for piece in pieces if piece.match] == ["Prüfung", "Café"], query
                assert "".join(piece.text for piece in pieces) == text

    def test_facets_count_the_string_null_but_not_missing_values(self, connect: Any) -> None:
        named = {"tags": ["null"], "project": "null", "labels": ["null"]}
        for reader in open_reader(connect, [family("null.md", ["text"], metadata=named), family("other.md", ["text"])]):
            found = reader.facets("", ["tags", "fields.project", "fields.labels", "fields.due"])
            assert found == {
                "tags": [FacetValue("null", 1)],
                "fields.project": [FacetValue("null", 1)],
                "fields.labels": [FacetValue("null", 1)],
                "fields.due": [],
            }

    def test_search_finds_words_in_searchable_custom_fields(self, reader: KeywordReader) -> None:
        assert [hit.parent_id for hit in reader.search("gemini")] == [FAMILIES[2].parent_id]

    def test_search_sorts_by_a_field_and_puts_missing_values_last(self, reader: KeywordReader) -> None:
        def sources(query: str, field: str, *, descending: bool) -> list[str]:
            hits = reader.search(query, 10, sort=Sort(field, descending=descending))
            return list(dict.fromkeys(hit.parent_id for hit in hits))

        a, b, c, d = (one.parent_id for one in FAMILIES)
        assert sources("", "fields.priority", descending=False) == [c, a, b, d]
        assert sources("", "fields.priority", descending=True) == [b, a, c, d]
        assert sources("red apple", "fields.priority", descending=True) == [a, c]
        assert sources("", "year", descending=True) == [d, b, a, c]
        assert sources("!!!", "year", descending=True) == []
        for descending, first in ((False, a), (True, d)):
            (hit,) = reader.search("", 1, sort=Sort("year", descending=descending))
            assert hit.parent_id == first, "`limit` was applied before `sort`"

    def test_sort_does_not_change_which_documents_match_words_in_quotes(self, connect: Any) -> None:
        texts = ("C++ at work", "C# at work", "C at work", "work at C++", "使用C++的系统")
        for reader in open_reader(connect, [family(f"{number}.md", [text]) for number, text in enumerate(texts)]):
            for query in ('"C++"', '"at work"', '"使用C++的"'):
                found, ordered = ({h.id for h in reader.search(query, 10, sort=s)} for s in (None, Sort("year")))
                assert ordered == found, query

    def test_search_by_path_prefix_finds_only_matching_documents(self, reader: KeywordReader) -> None:
        by_path = [Filter("path", like=("docs/a*", "docs/c.pdf*"))]
        self.check(reader.search("", 10, by_path), ids([0, 2]), by_path)
        self.check(reader.search("", 10, [Filter("path", like=("Docs/*", "Docs/a.md"))]), set(), [])
        self.check(reader.search("", 10, [Filter("path", like=("docs/a*", "docs/c.pdf"))]), ids([0, 2]), by_path)
        assert reader.facets("", ["tags"], [Filter("path", like=())]) == {"tags": []}, "no pattern, no document"
        patterns = capability(reader, SupportsPatterns)
        if patterns is not None:
            assert sorted(patterns.sources(by_path, 10)) == sorted([FAMILIES[0].parent_id, FAMILIES[2].parent_id])
