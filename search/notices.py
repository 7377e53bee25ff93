"""What is to be said of an answer beside its hits: what was not asked, and why there is nothing."""

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
_EMPTY = "this index holds no sources; `chunksink sync` brings in what the chunks hold now"


def notices(
    legs: Legs, question: Question, access: Access, asking: Asking, order: Order, meant: Mapping[str, str]
) -> Iterator[str]:
    """A leg that this index was never meant to have is no failure, but changes what hybrid means."""
    if question.mode == "hybrid" and not legs.unavailable:
        if legs.semantic is None:
            yield f"by words only: no build of this index is searched by meaning; {REMEDY}"
        if legs.keyword is None:
            yield f"by meaning only: no build of this index is searched by words; {REMEDY}"
    phrases = phrases_of(question.text)
    among = " of what the filters let through" if question.filters else ""
    nothing = asking.answered and not order.placed
    if phrases and not asking.phrases_held:
        yield f"{phrases} need not stand in the hits: only keyword search finds what stands in quotes, and is not there"
    elif phrases and nothing:
        yield f"nothing{among} holds {phrases}; without quotes the words are looked for one by one"
    if nothing and not asking.failed:
        yield from _kept_out(legs, question, access)
    for word, near in meant.items():
        yield f"nothing holds {word!r:.100}; is {near!r:.100} meant?"
    untold = set(_WORD.findall(question.text)) - meant.keys()
    if untold and order.placed and order.lacks(KEYWORD):
        yield f"no text{among} holds these words; what is shown only resembles them in meaning"


def meant_by(legs: Legs, question: Question, access: Access) -> Mapping[str, str]:
    """By words that stand nowhere those that may be meant: only what whoever asks may see somewhere."""
    if legs.keyword is None or KEYWORD not in LEGS_OF[question.mode]:
        return {}
    try:
        return legs.keyword.reader.corrections(for_words(question.text), access.filters())
    except SinkError:  # its leg says what is wrong with it
        return {}


def _kept_out(legs: Legs, question: Question, access: Access) -> Iterator[str]:
    """Where there is nothing because of a filter, or because there is nothing at all that may be seen. Whatever is
    looked at for this is what the tenant may see."""
    if _sees_nothing(legs, access):
        tenant = access.tenant
        yield _EMPTY if tenant is None else f"nothing is visible to the tenant {tenant!r:.100}"
    elif question.filters and _answers(legs, replace(question, filters=()), access.filters()):
        fields = list(dict.fromkeys(one.field for one in question.filters))
        yield f"nothing that answers passes the filter of {' and '.join(fields)}; without it something is found"
        missing = [field for field in fields if _bears_nothing(legs, field, access)]
        if missing:
            yield f"no document has {' or '.join(map(_some, missing))}"


def _some(field: str) -> str:
    return field if field in LISTS else f"a{'n' if field[0] in 'aeiou' else ''} {field}"


def _sees_nothing(legs: Legs, access: Access) -> bool:
    """Where no words can be asked it is not known."""
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
