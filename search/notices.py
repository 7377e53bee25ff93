"""Notices about an answer: which leg was not asked, why nothing was found, and suggestions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from chunksink.search.access import Access
from chunksink.search.legs import REMEDY, LegQueries, Legs
from chunksink.search.order import Order
from chunksink.search.phrases import phrases_of
from chunksink.search.question import KEYWORD, LEGS_OF, Question
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import CUSTOM
from chunksink.sinks.errors import SinkError
from chunksink.sinks.reader import Filter, KeywordReader

T = TypeVar("T")

_WORD = re.compile(r"\w+")
_EMPTY = "This index has no sources. `chunksink sync` adds them."


def notices(
    legs: Legs, question: Question, access: Access, queries: LegQueries, order: Order, missing: Sequence[str]
) -> Iterator[str]:
    """The sentences for one answer. A leg that the index does not have is not an error: a notice mentions it. `missing`
    are the identifiers in the query that no text contains."""
    if question.mode == "hybrid" and not legs.unavailable:
        if legs.semantic is None:
            yield f"Found by words only: this index has no sink with vectors; {REMEDY}."
        if legs.keyword is None:
            yield f"Found by meaning only: this index has no keyword sink; {REMEDY}."
    if later := [name for field in question.facets if (name := field.removeprefix(CUSTOM)) in legs.lacking]:
        yield f"No facets for {', '.join(later)} yet: [fields] has changed. Run `chunksink sync`."
    if order.not_reranked is not None:
        yield "The hits were not reranked, because the reranker failed."
    phrases = phrases_of(question.text)
    among = " that passes the filters" if question.filters else ""
    empty = queries.answered and not order.placed
    if phrases and not queries.phrases_enforced:
        yield f"Some hits may lack {phrases}: phrases need keyword search, which is not available."
    elif phrases and empty:
        yield f"No text{among} contains {phrases}. Without quotes the words are searched one by one."
    explained = list(_reasons(legs, question, access)) if empty and not queries.failed else []
    yield from explained
    for word, other in question.spelling.items():
        is_replaced = word not in _WORD.findall(question.words)  # a misspelt word in a phrase is not replaced
        remedy = f"Searched for {other!r:.100} instead." if is_replaced else f"Did you mean {other!r:.100}?"
        yield f"No text contains {word!r:.100}. {remedy}"
    if _WORD.search(question.text) and order.placed and order.is_empty(KEYWORD):
        yield f"No text{among} contains these words. The hits are only similar in meaning."
    elif missing and not explained:
        yield f"No text{among} contains {' or '.join(f'{one!r:.100}' for one in missing)}."


def suggestions_for(legs: Legs, question: Question, access: Access) -> Mapping[str, str]:
    """Maps words that no visible document contains to similar words that some do."""
    if KEYWORD not in LEGS_OF[question.mode]:
        return {}
    return _ask(legs, lambda reader: reader.corrections(question.words, access.filters()), {})


def missing_identifiers(legs: Legs, question: Question, filters: Sequence[Filter]) -> Sequence[str]:
    """The words with digits or underscores that no document that passes the filters has."""
    if question.mode == "semantic":
        return ()
    return _ask(legs, lambda reader: reader.missing_identifiers(question.words, filters), ())


def _reasons(legs: Legs, question: Question, access: Access) -> Iterator[str]:
    """Why there are no hits: nothing is visible, or filters exclude all hits. It ignores other tenants' documents."""
    visible = access.filters()
    if _ask(legs, lambda reader: not reader.search("", 1, visible), False):
        tenant = access.tenant
        yield _EMPTY if tenant is None else f"The tenant {tenant!r:.100} has no documents in this index."
    elif question.filters and any(legs.begin(replace(question, filters=()), visible).ask(1).values()):
        fields = {one.field: one for one in question.filters}
        unused = [one for field, one in fields.items() if _ask(legs, partial(_is_unused, field, visible), False)]
        reason = f": no document has {' or '.join(map(_with_article, unused))}" if unused else ""
        filters = "the filter" if len(fields) == 1 else "the filters"
        conditions = [_condition(one, legs.fields) for one in question.filters]
        yield f"No results with {' and '.join(conditions)}{reason}."
        yield f"Without {filters} there are results."
        if any(one.field == "path" and one.any_of for one in question.filters):
            yield "To find all files of a folder, use a pattern, such as path=docs/*."


def _ask(legs: Legs, ask: Callable[[KeywordReader], T], default: T) -> T:
    """Ask the keyword leg; `default` if there is none, or if it fails. The leg itself reports its failure."""
    try:
        return default if legs.keyword is None else ask(legs.keyword.reader)
    except SinkError:
        return default


def _is_unused(field: str, visible: tuple[Filter, ...], reader: KeywordReader) -> bool:
    return not reader.facets("", [field], visible, limit=1)[field]


def _condition(one: Filter, fields: FieldSet) -> str:
    name = one.custom or one.field
    bounds = ((">=", one.at_least), ("<=", one.at_most))
    shown = [f"{name}{operator}{fields.display_value(name, bound)}" for operator, bound in bounds if bound is not None]
    return " and ".join(shown) or f"the given {name}"  # without the values, which may be very long


def _with_article(one: Filter) -> str:
    name = one.custom or one.field
    return name if one.is_list else f"a{'n' if name[0] in 'aeiou' else ''} {name}"
