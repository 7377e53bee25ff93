"""The documents around a hit, and replacements for hits without content of their own.

A heading becomes a chunk of its own if a deeper heading, code or a table follows. Such chunks rank high, because all of
their few words match, but the next chunk has the answer. The same applies to front matter, to comments, and to lines
that only introduce the next chunk (`Run this:`), if the next chunk repeats them.
"""

import re
from collections.abc import Mapping, Sequence

from chunksink.chunkbus.canonical import canonical_text
from chunksink.search.access import Access
from chunksink.search.answer import Surrounded
from chunksink.search.legs import Legs
from chunksink.search.phrases import keyword_query, phrases_of
from chunksink.search.question import Question
from chunksink.sinks.document import Document
from chunksink.sinks.errors import SinkError
from chunksink.sinks.fields import sink_id

Around = tuple[tuple[Document, ...], tuple[Document, ...]]
"""The documents before and after one document."""

_HIDDEN = re.compile(
    r"<!--.*?-->|<a\b[^>]*(?:/>|>\s*</a\s*>)"  # comments and empty anchors
    r"|^\.\. _[^\n]+:[ \t]*$"  # labels of reStructuredText
    r"|\A(?P<fence>---|\+\+\+)[ \t]*\n(?=[ \t]*(?:[\w.-]+[ \t]*[:=]|#|\[)).*?^(?P=fence)[ \t]*$",  # front matter
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s.*)?|\s*[=*_-]{2,}\s*")
_INTRODUCTION_ENDS = (":", "\uff1a")
_MAX_INTRODUCTION = 1000
"""Characters. A longer text is content, even if its last line introduces the next chunk."""
_MAX_STEPS = 10
"""How many chunks without content are skipped. Each step asks an engine."""


def fetch(legs: Legs, access: Access, sources: Mapping[str, str]) -> dict[str, Document]:
    """The documents that exist and that `access` may see. `sources` maps document ids to sources."""
    found: dict[str, Document] = {}
    without_text: dict[str, Document] = {}
    for reader in legs.readers():
        missing = [id for id in sources if id not in found]
        if not missing:
            break
        try:
            documents = reader.get(missing)
        except SinkError:  # reported by its leg; the other reader may have the document
            continue
        found |= {document.id: document for document in documents if document.text}
        without_text |= {document.id: document for document in documents if not document.text}
    missing = [id for id in sources if id not in found]
    if missing:
        stored = {id: document.parent_id for id, document in without_text.items()}
        unread = {id: stored.get(id, sources[id]) for id in missing}
        found |= {document.id: document for document in legs.from_chunks(unread)}
    return {id: document for id, document in (without_text | found).items() if access.admits(document)}


def get(legs: Legs, access: Access, chunk_id: str, distance: int = 0, query: str = "") -> Surrounded | None:
    """One document by its `chunk_id` or `id`; None if there is none that `access` may see. With a `query`, the result
    has the words that match it."""
    sources = dict.fromkeys((sink_id(chunk_id), chunk_id), "")  # it may be either id; the source is not known
    found = next(iter(fetch(legs, access, sources).values()), None)
    if found is None:
        return None
    before, after = neighbours(legs, access, [found], distance)[found.id]
    return Surrounded(found, before, after, _matches(legs, access, query, [*before, found, *after]))


def _matches(legs: Legs, access: Access, query: str, documents: Sequence[Document]) -> tuple[str, ...]:
    if legs.keyword is None or not query.strip():
        return ()
    ids = [document.id for document in documents]
    try:
        text, visible = canonical_text(query), access.filters()
        spelling = legs.keyword.reader.corrections(keyword_query(text), visible)
        snippets = legs.keyword.reader.snippets(keyword_query(text, spelling), ids, visible)
    except SinkError:  # the passage is still readable without marked words
        return ()
    return tuple({piece.text: None for pieces in snippets.values() for piece in pieces if piece.match})


def neighbours(legs: Legs, access: Access, documents: Sequence[Document], distance: int) -> dict[str, Around]:
    """Up to `distance` documents before and after each document, in the order of the source.

    All documents take each step together, so each step is one request to an engine.
    """
    fetched = {document.id: document for document in documents}
    sides = {document.id: ([document], [document]) for document in documents}
    for _ in range(distance):
        ends = [(one, sides[one.id][0][-1].previous_id, sides[one.id][1][-1].next_id) for one in documents]
        sources = {id: one.parent_id for one, *ids in ends for id in ids if id and id not in fetched}
        fetched |= fetch(legs, access, sources)
        for before, after in sides.values():
            _append_neighbour(before, fetched.get(before[-1].previous_id or ""))
            _append_neighbour(after, fetched.get(after[-1].next_id or ""))
    return {id: (tuple(reversed(before[1:])), tuple(after[1:])) for id, (before, after) in sides.items()}


def _append_neighbour(side: list[Document], found: Document | None) -> None:
    """Append a neighbour, unless it is there already or belongs to another source. A stored link may be old: its id may
    now belong to a chunk of another source."""
    if found is not None and found.parent_id == side[0].parent_id and all(found.id != one.id for one in side):
        side.append(found)


def replacements(legs: Legs, access: Access, question: Question, documents: Sequence[Document]) -> dict[str, Document]:
    """Maps the id of each document to the document to show for it: usually itself.

    A document with only headings is replaced by the next. So is one with only an introduction, if the next document
    repeats it.
    """
    # With a quoted phrase, hidden text such as a comment counts as content: the phrase may be there.
    keep_hidden = bool(phrases_of(question.text))
    shown = {document.id: document for document in documents}
    fetched = dict(shown)
    pending = dict(shown)
    for _ in range(_MAX_STEPS):  # all documents take each step together
        introductions = {id: _introduction(one, keep_hidden=keep_hidden) for id, one in pending.items()}
        pending = {id: one for id, one in pending.items() if one.next_id and introductions[id] is not None}
        sources = {str(one.next_id): one.parent_id for one in pending.values() if one.next_id not in fetched}
        fetched |= fetch(legs, access, sources) if sources else {}
        following = {id: fetched.get(str(one.next_id)) for id, one in pending.items()}
        pending = {
            id: one
            for id, one in following.items()
            if one and one.text.startswith(introductions[id] or "") and _may_replace(shown[id], one, question)
        }
        if not pending:
            break
        shown |= {id: one for id, one in pending.items() if _introduction(one, keep_hidden=keep_hidden) != ""}
    return shown


def _introduction(document: Document, *, keep_hidden: bool) -> str | None:
    """The text below the headings if it ends like an introduction, "" if there is no text below them, else None."""
    text = (document.text if keep_hidden else _HIDDEN.sub("", document.text)).rstrip()
    if not document.text or len(text) > _MAX_INTRODUCTION:
        return None
    lines = text.splitlines()
    # If the document has no headings, `# x` may be a comment in code.
    while lines and (not lines[0].strip() or (document.headings and _is_heading(lines[0], document))):
        del lines[0]
    return "\n".join(lines) if not lines or text.endswith(_INTRODUCTION_ENDS) else None


def _is_heading(line: str, document: Document) -> bool:
    return _HEADING.fullmatch(line) is not None or line.strip() in document.headings


def _may_replace(one: Document, other: Document, question: Question) -> bool:
    """Whether `other` is in the same section or below it, and passes the filters. Every section is below the first
    heading: Word's styles *Title* and *Heading 1* have the same level."""
    return (
        other.parent_id == one.parent_id
        and (one.chunk_index == 0 or other.headings[: len(one.headings)] == one.headings)
        and all(condition.passes(other) for condition in question.filters)
    )
