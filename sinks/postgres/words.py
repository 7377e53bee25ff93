"""Words of texts and queries in the form in which PostgreSQL indexes them.

PostgreSQL's own parser keeps paths and addresses as single words, and texts without spaces too. So texts are split
here: into words without punctuation and accents, and into pairs of characters for scripts without spaces.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from chunksink.sinks.document import Document
from chunksink.sinks.fts.letters import fold
from chunksink.sinks.fts.query import MAX_TERMS, TOKEN, Query, is_spaceless

SEARCHED = {
    "A": ("title",),
    "B": ("headings", "filename", "tags"),
    "C": ("authors", "source_folder", "document_id", "fields_text"),
    "D": ("text",),
}
"""The searched fields by PostgreSQL's weight."""
WEIGHTS = (0.7, 0.7, 0.8, 1.0)
"""The weights of D, C, B and A, in PostgreSQL's order."""
_MAX_LENGTH = 200
"""Characters. Longer words are cut into pieces: PostgreSQL leaves out those of more than 2,046 bytes."""
_ASCII_WORD = re.compile(f"[0-9a-z]{{1,{_MAX_LENGTH}}}")
_OF_PREFIX = 0.5
"""The weight of longer words that begin with the last word of the query. It is below 1, because the last word may be
complete."""


def indexed(document: Document) -> list[str]:
    """The words of each weight, with spaces between them."""
    values = ([getattr(document, name) for name in names] for names in SEARCHED.values())
    return [" ".join(word for text in texts(of_weight) for word in split(text)) for of_weight in values]


def texts(values: Iterable[str | Sequence[str] | None]) -> list[str]:
    """The texts of some fields."""
    return [text for value in values if value for text in ([value] if isinstance(value, str) else value)]


def split(text: str) -> list[str]:
    """The words of a text. For a run of a script without spaces: all pairs of neighbours, and its last character."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    words: list[str] = []
    for token in TOKEN.findall(folded(text)):
        step, size = (1, 2) if is_spaceless(token) else (_MAX_LENGTH, _MAX_LENGTH)
        words += [token[place : place + size] for place in range(0, len(token), step)]
    return words


def folded(text: str) -> str:
    """In lower case and without accents, with some letters replaced."""
    if text.isascii():
        return text.lower()
    parts = unicodedata.normalize("NFKD", fold(text).casefold())
    return unicodedata.normalize("NFC", "".join(char for char in parts if not unicodedata.combining(char)))


def terms(query: Query) -> dict[str, float]:
    """The terms of a query in the syntax of to_tsquery, with their factors. The last word may be incomplete."""
    found = {expression: 1.0 for word in query.words if (expression := adjacent(word))}
    for run in query.runs:
        pairs = [part for part in split(run) if len(part) > 1]
        found |= dict.fromkeys(map(_quoted, pairs) if pairs else [together(run)], 1.0)
    first = dict(list(found.items())[:MAX_TERMS])
    return first | ({longer: _OF_PREFIX} if (longer := _beginning(query.prefix)) else {})


def every(query: Query) -> str:
    """All words and runs, in the syntax of to_tsquery; empty if there are none."""
    words = [(word == query.prefix and _beginning(word)) or adjacent(word) for word in query.words]
    return " & ".join(filter(None, [*words, *map(together, query.runs)]))


def adjacent(term: str) -> str:
    """The words of a term, adjacent and in this order; in any order if it contains a script without spaces."""
    if is_spaceless(folded(term)):
        return together(term)
    return " <-> ".join(map(_quoted, split(term)))


def _beginning(term: str) -> str:
    """As `adjacent`, but the last word may be the beginning of a longer one. Empty for a script without spaces, and for
    a term without words."""
    return "" if is_spaceless(folded(term)) or not split(term) else adjacent(term) + ":*"


def together(text: str) -> str:
    """All words of a text, in any order."""
    parts: list[str] = []
    for token in TOKEN.findall(folded(text)):
        words = split(token)
        if len(words) == 1:
            parts.append(_quoted(token) + (":*" if is_spaceless(token) else ""))
        else:  # without the last character: it is a word in the index only at the end of a run
            parts += map(_quoted, words[:-1])
    return f"({' & '.join(parts)})" if parts else ""


def _quoted(word: str) -> str:
    return f"'{word}'"  # a word has letters and digits only
