"""A chunk that says nothing but headings is shown by the one that follows it: that is where its answer stands.

Chunkers make such ones where a heading is followed by a deeper one, by code or by a table. They are found first of all,
for all of their few words fit. So are chunks of what nobody sees in its source, as front matter, comments, empty
anchors, directives and the names of links, and tables of contents. What only leads to the code or table after it (`Run
this:`) stands at its beginning too, and is shown with it.
"""

import re
from collections.abc import Sequence
from functools import partial

from chunksink.search.access import Access
from chunksink.search.context import fetch
from chunksink.search.legs import Legs
from chunksink.search.phrases import phrases_of
from chunksink.search.question import Question
from chunksink.sinks.document import Document

_UNSEEN = re.compile(
    r"<!--.*?-->|<a\b[^>]*(?:/>|>\s*</a\s*>)"
    # Front matter: its title stands above every hit of its source.
    r"|\A(?P<matter>---|\+\+\+)[ \t]*\n(?=[ \t]*(?:[\w.-]+[ \t]*[:=]|#|\[)).*?^(?P=matter)[ \t]*$"
    # in whose place another file is shown, or a list of contents, or since when something is there
    r"|^[ \t]*(?:\[!INCLUDE\s*\[[^]\n]*\]\([^)\n]*\)\]|:::\w[^\n]*:::|-{1,2}8<-{1,2}[ \t]+[\"'][^\n]*|\[\[?_?TOC_?\]\]?"
    r"|\{\{[<%][ \t]*(?:include|readfile|new-in|deprecated-in|toc)\b[^}\n]*\}\}|\{\{#\w*include\b[^}\n]*\}\}"
    r"|\{%-?[ \t]*include\w*[ \t][^}\n]*\}|\.\.[ \t]+(?:literal)?include::[^\n]*|\{\*[ \t][^*\n]*\*\})[ \t]*$"
    r"|^:::[ \t]+\w+(?:\.\w+)+[ \t]*(?:\n[ \t]+[^\n]*)*$"  # documentation of code, with its options
    r"|^import\s(?:[\w*{][^;'\"]{0,500}?\sfrom\s+)?[\"'][^\"'\n]+[\"'];?[ \t]*$"  # of MDX
    r"|^[ \t]*(?P<fence>`{3,}|~{3,})[^`\n]*\n\s*(?P=fence)[ \t]*$"
    r"|^[ \t]*(?P<tree>`{3,}|~{3,})\{toctree\}.*?^[ \t]*(?P=tree)[ \t]*$|^\([\w.:-]+\)=[ \t]*$"
    r"|^ {0,3}\[(?!\^)[^][\n]+\]:[ \t]*\S+(?:[ \t]+(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?[ \t]*$"
    r"|^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[[^][\n]*\]\(#[^()\s]*\)[ \t]*$",  # of a table of contents
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s.*)?|\s*[=*_-]{2,}\s*")
_LEADS_ON = (":", "\uff1a")
_MOST_LEADING = 1000
_MOST_STEPS = 10
"""So many bare ones in a row are walked past; each step asks an engine."""


def is_bare(document: Document, *, unseen: bool = True) -> bool:
    """Whether there is nothing to read in it but headings and, where they count, what nobody sees in the source."""
    text = _without_unseen(document.text) if unseen else document.text
    lines = [line for line in text.splitlines() if line.strip()]
    if not document.headings:  # without a place in an outline `# x` may be a comment of some code
        return bool(document.text) and not lines
    return bool(document.text) and all(_HEADING.fullmatch(line) or line.strip() in document.headings for line in lines)


def _without_unseen(text: str) -> str:
    """Twice: a fence may hold nothing but the place of another file."""
    return _UNSEEN.sub("", _UNSEEN.sub("", text))


def shown_by(legs: Legs, access: Access, question: Question, documents: Sequence[Document]) -> dict[str, Document]:
    """By the id of each of these documents the one that it is shown by, mostly itself: of a bare one that after it, or
    where its section ends with it, as with a comment, that before it."""
    # What stands in a heading stands in the headings of what follows too, also in quotes; what nobody sees does not.
    bare = partial(is_bare, unseen=not phrases_of(question.text))
    shown = _led_on(legs, access, question, {document.id: document for document in documents})
    for way in (_next_id, _previous_id):
        walking = {id: one for id, one in shown.items() if bare(one)}
        known = dict(shown)
        for _ in range(_MOST_STEPS if walking else 0):  # one step for all of them at a time
            wanted = {id: one.parent_id for one in walking.values() if (id := way(one)) and id not in known}
            known |= fetch(legs, access, wanted) if wanted else {}
            reached = {id: known.get(way(one) or "") for id, one in walking.items()}
            fitting = {id: one for id, one in reached.items() if one and _may_stand_for(shown[id], one, question)}
            shown |= {id: one for id, one in fitting.items() if not bare(one)}
            walking = {id: one for id, one in fitting.items() if bare(one)}
    return shown


def _led_on(legs: Legs, access: Access, question: Question, shown: dict[str, Document]) -> dict[str, Document]:
    """With what follows in place of what leads to it, and is repeated there as a whole."""
    leading = {id: said for id, one in shown.items() if one.next_id and (said := _leading(one))}
    wanted = {str(shown[id].next_id): shown[id].parent_id for id in leading if shown[id].next_id not in shown}
    known = shown | (fetch(legs, access, wanted) if wanted else {})
    following = {id: known.get(str(shown[id].next_id)) for id in leading}
    return shown | {
        id: other
        for id, other in following.items()
        if other and other.text.startswith(leading[id]) and _may_stand_for(shown[id], other, question)
    }


def _leading(document: Document) -> str:
    """What it says below its headings, where that leads on to something; "" where it does not."""
    text = document.text.rstrip()
    if len(text) > _MOST_LEADING or not text.endswith(_LEADS_ON):
        return ""
    lines = text.splitlines()
    while lines and (not lines[0].strip() or _HEADING.fullmatch(lines[0]) or lines[0].strip() in document.headings):
        del lines[0]
    return "\n".join(lines)


def _next_id(document: Document) -> str | None:
    return document.next_id


def _previous_id(document: Document) -> str | None:
    return document.previous_id


def _may_stand_for(bare: Document, other: Document, question: Question) -> bool:
    """What stands in the same section or below it, and passes what was asked for."""
    return (
        other.parent_id == bare.parent_id
        and other.headings[: len(bare.headings)] == bare.headings
        and all(condition.passes(other) for condition in question.filters)
    )
