"""Facets: the values of fields among all matching documents, each with the number of sources that have it.

The keyword index counts everything it finds. A semantic search matches every document, so all are counted; with quoted
phrases, all that contain them. Hybrid and engine mode also count the sources that only other legs found, each once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from chunksink.search.access import Access
from chunksink.search.legs import LegQueries, Legs
from chunksink.search.order import LegResults
from chunksink.search.phrases import phrases_of
from chunksink.search.question import KEYWORD, Question
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import CUSTOM
from chunksink.sinks.errors import InvalidFilter, SinkError
from chunksink.sinks.reader import FacetValue, Filter, KeywordReader, Value

IN_EVERY_DOCUMENT = "schema_version"
"""A field that every document has, so the counts of its values add up to the number of sources."""


def count(
    legs: Legs, question: Question, access: Access, queries: LegQueries, results: LegResults
) -> dict[str, list[FacetValue]]:
    """Counts each field without the filters on that field, so that its other values can still be chosen.

    Custom fields that the index does not have yet are left out.
    """
    question = replace(question, facets=tuple(_indexed_fields(legs, question.facets)))
    if not question.facets or legs.keyword is None or KEYWORD in queries.failed:
        return {}
    reader = legs.keyword.reader
    counted: dict[str, list[FacetValue]] = {}
    try:
        for fields, conditions in _by_filters(question):
            filters = (*conditions, *access.filters())
            counted |= reader.facets(_words(question), fields, filters)
            if question.mode in ("hybrid", "engine") and (
                sources := _other_sources(reader, _words(question), filters, results)
            ):
                added = reader.facets("", fields, filters, among=sources)
                counted |= {field: _summed(counted[field], added[field]) for field in fields}
    except InvalidFilter:
        raise
    except SinkError as error:
        queries.failed[KEYWORD] = str(error)
        return {}
    return {field.removeprefix(CUSTOM): _shown(field, counted[field], legs.fields) for field in question.facets}


def contents(legs: Legs, access: Access, fields: Sequence[str], limit: int) -> Mapping[str, list[FacetValue]]:
    """The most frequent values of these fields among all documents that `access` may see; empty without a keyword
    index."""
    if legs.keyword is None or access.denied:
        return {}
    counted = legs.keyword.reader.facets("", _indexed_fields(legs, fields), access.filters(), limit)
    return {field.removeprefix(CUSTOM): _shown(field, values, legs.fields) for field, values in counted.items()}


def _indexed_fields(legs: Legs, fields: Sequence[str]) -> list[str]:
    return [field for field in fields if field.removeprefix(CUSTOM) not in legs.lacking]


def _shown(field: str, counted: Sequence[FacetValue], fields: FieldSet) -> list[FacetValue]:
    if not field.startswith(CUSTOM):
        return list(counted)
    return [FacetValue(fields.display_value(field.removeprefix(CUSTOM), one.value), one.families) for one in counted]


def _words(question: Question) -> str:
    """The words that a counted document must contain."""
    return phrases_of(question.text).query if question.mode == "semantic" else question.words


def _by_filters(question: Question) -> list[tuple[list[str], tuple[Filter, ...]]]:
    """The fields to count, grouped by the filters that apply to them."""
    filtered = {one.field for one in question.filters}
    apart = [field for field in question.facets if field in filtered]
    together = [field for field in question.facets if field not in filtered]
    groups = [([field], tuple(one for one in question.filters if one.field != field)) for field in apart]
    return ([(together, question.filters)] if together else []) + groups


def _other_sources(reader: KeywordReader, text: str, filters: Sequence[Filter], results: LegResults) -> tuple[str, ...]:
    """The sources that only other legs find."""
    by_words = {hit.parent_id for hit in results.hits.get(KEYWORD, ())}
    sources = dict.fromkeys(hit.parent_id for hits in results.hits.values() for hit in hits)
    others = [source for source in sources if source not in by_words]
    if others and not (KEYWORD in results.hits and results.exhausts(KEYWORD)):
        # Keyword search may find some of them further down.
        counted = reader.facets(text, ["parent_id"], filters, limit=len(others), among=others)
        further = {one.value for one in counted["parent_id"]}
        others = [source for source in others if source not in further]
    return tuple(others)


def _summed(counted: Sequence[FacetValue], added: Sequence[FacetValue]) -> list[FacetValue]:
    families: dict[Value, int] = {one.value: one.families for one in counted}
    for one in added:
        families[one.value] = families.get(one.value, 0) + one.families
    values = [FacetValue(value, number) for value, number in families.items()]
    return sorted(values, key=lambda one: (-one.families, one.value))
