"""The documents of a search beside their hits: fetched by id, from whichever sink has them, else from the chunks."""

from collections.abc import Mapping, Sequence

from chunksink.search.access import Access
from chunksink.search.legs import Legs
from chunksink.search.passage import Surrounded
from chunksink.sinks.document import Document
from chunksink.sinks.errors import SinkError
from chunksink.sinks.fields import sink_id

Around = tuple[tuple[Document, ...], tuple[Document, ...]]
"""The documents before one and those after it."""


def fetch(legs: Legs, access: Access, wanted: Mapping[str, str]) -> dict[str, Document]:
    """Of these documents (id to source) those that are there and may be seen; one gone everywhere is left out."""
    found: dict[str, Document] = {}
    without_text: dict[str, Document] = {}
    for reader in legs.readers():
        missing = [id for id in wanted if id not in found]
        if not missing:
            break
        try:
            known = reader.get(missing)
        except SinkError:  # the other one may have it; what is wrong here was or will be said by its leg
            continue
        found |= {document.id: document for document in known if document.text}
        without_text |= {document.id: document for document in known if not document.text}
    missing = [id for id in wanted if id not in found]
    if missing:
        sources = {id: without_text[id].parent_id if id in without_text else wanted[id] for id in missing}
        found |= {document.id: document for document in legs.from_chunks(sources)}
    return {id: document for id, document in (without_text | found).items() if access.admits(document)}


def get(legs: Legs, access: Access, chunk_id: str, distance: int = 0) -> Surrounded | None:
    """One document by the id of its chunk, or by its own; None where it is not there or may not be seen."""
    wanted = dict.fromkeys((sink_id(chunk_id), chunk_id), "")
    found = next(iter(fetch(legs, access, wanted).values()), None)
    if found is None:
        return None
    return Surrounded(found, *neighbours(legs, access, [found], distance)[found.id])


def neighbours(legs: Legs, access: Access, documents: Sequence[Document], distance: int) -> dict[str, Around]:
    """For each document so many before and after it in its source, in the order of the source.

    One step for all of them at a time, so that an engine is asked as often as the distance is long.
    """
    known = {document.id: document for document in documents}
    sides = {document.id: ([document], [document]) for document in documents}
    for _ in range(distance):
        wanted = {id: one.parent_id for one in documents for id in _next_ids(*sides[one.id]) if id not in known}
        known |= fetch(legs, access, wanted)
        for before, after in sides.values():
            _grow(before, known.get(before[-1].previous_id or ""))
            _grow(after, known.get(after[-1].next_id or ""))
    return {id: (tuple(reversed(before[1:])), tuple(after[1:])) for id, (before, after) in sides.items()}


def _next_ids(before: list[Document], after: list[Document]) -> list[str]:
    return [id for id in (before[-1].previous_id, after[-1].next_id) if id]


def _grow(side: list[Document], found: Document | None) -> None:
    """A neighbour is one of the same source: an id that has moved to another one leads astray."""
    if found is not None and found.parent_id == side[0].parent_id and all(found.id != one.id for one in side):
        side.append(found)
