"""Notices about an answer: which leg was not asked, why nothing was found, and suggestions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from chunksink.search.access import Access
from chunksink.search.legs import REMEDY, Asking, Legs
from chunksink.search.order import Order
from chunksink.search.phrases import for_words, phrases_of
from chunksink.search.question import KEYWORD, LEGS_OF, Question
from chunksink.sinks.document import LISTS
from chunksink.sinks.errors import SinkError
from chunksink.sinks.reader import Filter

_WORD = re.compile(r"\w+")
_EMPTY = "This index has no sources. `chunksink sync` adds those of the chunks."


def notices(
    legs: Legs, question: Question, access: Access, asking: Asking, order: Order, suggestions: Mapping[str, str]
) -> Iterator[str]:
    """A leg that the index does not have is no failure, but changes what hybrid means."""
    if question.mode == "hybrid" and not legs.unavailable:
        if legs.semantic is None:
            yield f"Found by words only: this index has no vectors; {REMEDY}."
        if legs.keyword is None:
            yield f"Found by meaning only: this index has no keyword sink; {REMEDY}."
    phrases = phrases_of(question.text)
    among = " that passes the filters" if question.filters else ""
    nothing = asking.answered and not order.placed
    if phrases and not asking.phrases_held:
        yield f"The hits need not contain {phrases}: phrases need keyword search, which is not available."
    elif phrases and nothing:
        yield f"No text{among} contains {phrases}. Without quotes the words are searched one by one."
    if nothing and not asking.failed:
        yield from _kept_out(legs, question, access)
    for word, near in suggestions.items():
        yield f"No text contains {word!r:.100}. Did you mean {near!r:.100}?"
    if set(_WORD.findall(question.text)) - suggestions.keys() and order.placed and order.lacks(KEYWORD):
        yield f"No text{among} contains these words. The hits are only similar in meaning."


def suggestions_for(legs: Legs, question: Question, access: Access) -> Mapping[str, str]:
    """Maps words that no visible document contains to similar words that some do."""
    if legs.keyword is None or KEYWORD not in LEGS_OF[question.mode]:
        return {}
    try:
        return legs.keyword.reader.corrections(for_words(question.text), access.filters())
    except SinkError:  # reported by its leg
        return {}


def _kept_out(legs: Legs, question: Question, access: Access) -> Iterator[str]:
    """Whether nothing was found because of a filter, or because nothing is visible at all. Only documents that the
    tenant may see are considered."""
    if _sees_nothing(legs, access):
        tenant = access.tenant
        yield _EMPTY if tenant is None else f"The tenant {tenant!r:.100} has no documents in this index."
    elif question.filters and _answers(legs, replace(question, filters=()), access.filters()):
        fields = list(dict.fromkeys(one.field for one in question.filters))
        yield f"No results with the filter of {' and '.join(fields)}. Without it there are results."
        missing = [field for field in fields if _bears_nothing(legs, field, access)]
        if missing:
            yield f"No document has {' or '.join(map(_some, missing))}."


def _some(field: str) -> str:
    return field if field in LISTS else f"a{'n' if field[0] in 'aeiou' else ''} {field}"


def _sees_nothing(legs: Legs, access: Access) -> bool:
    """False if it is unknown, without a keyword leg."""
    if legs.keyword is None:
        return False
    try:
        return not legs.keyword.reader.search("", 1, access.filters())
    except SinkError:
        return False


def _answers(legs: Legs, question: Question, filters: Sequence[Filter]) -> bool:
    return any(legs.begin(question, filters).ask(1).values())


def _bears_nothing(legs: Legs, field: str, access: Access) -> bool:
    if legs.keyword is None:
        return False
    try:
        return not legs.keyword.reader.facets("", [field], access.filters(), limit=1)[field]
    except SinkError:
        return False
