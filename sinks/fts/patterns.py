"""Where the words of a query stand in a text. Trigrams find them within longer words too, and only the text tells.

A Latin word beside Han characters has no space around it and is no word of its own for FTS5: 手机iPhone. Trigrams have
it, as they have it in what it is only a part of (Spring for ring): what they find counts where its pattern is.
"""

import re
from itertools import chain, pairwise, zip_longest

from chunksink.sinks.fts.scripts import SPACED, TOKEN, is_spaceless
from chunksink.sinks.fts.spellings import widths
from chunksink.sinks.fts.typed import Query

BREAK = "\udfff"
"""A sign that no text holds."""


def attached(query: Query) -> list[str]:
    """The words that may be found among trigrams."""
    return [form for word in query.words if len(word) > 2 for form in widths(word)]


def of_attached(query: Query) -> list[str]:
    """The pattern of each of them."""
    return [pattern(word, begun=_is_begun(word, query)) for word in attached(query)]


def pattern(term: str, *, begun: bool = False) -> str:
    """For a text in small letters: where the term stands in it, and not within a longer word, whatever signs are
    between its words. The last one may be only `begun`."""
    tokens = TOKEN.findall(term.lower())
    told = [re.escape(token) for token in tokens]
    if not tokens:
        return re.escape(term.lower())
    if not is_spaceless(tokens[0]):  # looked back at from behind it: a pattern that begins with letters is quicker
        told[0] += f"(?<!{SPACED}{told[0]})"
    if not is_spaceless(tokens[-1]) and not begun:
        told[-1] += f"(?!{SPACED})"
    between = [rf"[\W_]{'*' if is_spaceless(one + other) else '+'}" for one, other in pairwise(tokens)]
    return "".join(chain(*zip_longest(told, between, fillvalue="")))


def apart(text: str, query: Query) -> str:
    """The text with `BREAK` in whatever looks like an attached word and is only a part of a longer one."""
    for word in attached(query):
        told = re.escape(word)
        after = "" if _is_begun(word, query) else f"|{told}(?={SPACED})"
        text = re.sub(f"(?<={SPACED}){told}{after}", _broken, text, flags=re.IGNORECASE)
    return text


def _broken(found: re.Match[str]) -> str:
    return found[0][0] + BREAK + found[0][1:]


def _is_begun(word: str, query: Query) -> bool:
    return word in widths(query.begun)
