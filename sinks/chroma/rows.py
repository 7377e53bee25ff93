"""A document as Chroma keeps it: flat metadata beside the text. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from chunksink.sinks.contract import NO_PARENT, Stored
from chunksink.sinks.document import LISTS, NAMES, Document, Vectors, document_hash, hashes_of_content
from chunksink.sinks.payload import batches, portions
from chunksink.sinks.reader import Filter

# Lists must be said always: a new row can inherit those of a deleted collection (chroma-core/chroma#7594).
_BLANK_LISTS: dict[str, Any] = dict.fromkeys(LISTS)

Where = dict[str, Any] | None
"""A condition of Chroma's."""
Page = Mapping[str, Any]
"""What `Collection.get` has found."""

_FLOAT_BYTES = 6  # of a vector in a request: base64 of float32, rounded up
_KEYS = 500  # families in one condition
_ROW_BYTES = 1500  # names and hashes of a row


def metadata(document: Document, old: Iterable[str]) -> dict[str, Any]:
    """The fields beside id and text, for a row that may have had the `old` ones: what vanished would stay in it."""
    fields = document.fields()
    del fields["id"], fields["text"]
    for name in LISTS:
        if name in fields:
            fields[name] = list(fields[name])
    said = _BLANK_LISTS | fields
    return said | dict.fromkeys(sorted(name for name in old if name not in said))  # the same however often it is sent


def document(id: str, held: Mapping[str, Any] | None, text: str | None) -> Document | None:
    """What was stored; None where the row was not written by a sink."""
    return Document.if_ours({**(held or {}), "id": id, "text": text or ""})


def stored(id: str, held: Mapping[str, Any] | None, text: str | None, vector: Vectors | None, content: bool) -> Stored:
    """What somebody else has put a field into was not written by us: to replace its family takes the field away."""
    held = held or {}
    found = document(id, held, text) if content and NAMES.issuperset(held) else None
    hashes = {name: _string(held.get(name)) for name in ("parent_id", "document_hash", "text_hash")}
    if found is not None and text is not None:
        hashes["document_hash"], hashes["text_hash"] = hashes_of_content(found)
    elif found is not None:  # without the text its hash is taken as it is
        hashes["document_hash"] = document_hash(found.fields())
    return Stored(id=id, **hashes, document=found, vector=vector)


def read(
    page: Callable[[int, int, bool, bool, Where], Page],
    most: int,
    *,
    content: bool,
    vectors: bool = False,
    parent_ids: Sequence[str] | None = None,
) -> Iterator[Stored]:
    """All documents of a build, or those of some families; `page` gives at most so many of them, from an offset on."""
    for where in [None] if parent_ids is None else of_families(parent_ids):
        offset = 0
        while True:
            found = page(offset, most, content, vectors, where)
            yield from _documents_in(found, content)
            if len(found["ids"]) < most:
                break
            offset += most


def _documents_in(page: Page, content: bool) -> Iterator[Stored]:
    texts, vectors = page["documents"], page["embeddings"]
    for position, id in enumerate(page["ids"]):
        text = texts[position] if texts is not None else None
        vector = as_vector(vectors[position]) if vectors is not None else None
        yield stored(id, page["metadatas"][position], text, vector, content)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else NO_PARENT


def slices(documents: Sequence[Document], dimensions: int, most: int, most_bytes: int) -> Iterator[slice]:
    """Runs that one request can carry, by number and by bytes."""
    more = dimensions * _FLOAT_BYTES + _ROW_BYTES
    sizes = [len(one.text.encode()) + more for one in documents]
    return portions(sizes, most, most_bytes)


def of_families(parent_ids: Sequence[str]) -> Iterator[Where]:
    for some in batches([parent_id for parent_id in parent_ids if parent_id != NO_PARENT], _KEYS):
        yield {"parent_id": {"$in": list(some)}}


def where(filters: Sequence[Filter]) -> Where:
    """The filters as Chroma's `where`; None for none."""
    conditions: list[dict[str, Any]] = []
    for condition in filters:
        if condition.any_of is not None:
            conditions.append(_any_of(condition.field, condition.any_of))
        if condition.at_least is not None:
            conditions.append({condition.field: {"$gte": condition.at_least}})
        if condition.at_most is not None:
            conditions.append({condition.field: {"$lte": condition.at_most}})
    return _joined("$and", conditions) if conditions else None


def _any_of(field: str, values: Sequence[str | int | bool]) -> dict[str, Any]:
    if field in LISTS:
        return _joined("$or", [{field: {"$contains": value}} for value in values])
    return _joined("$or", [{field: {"$in": list(values)}}] if values else [])


def _joined(operator: str, conditions: list[dict[str, Any]]) -> dict[str, Any]:
    if not conditions:
        return {"parent_id": {"$in": [""]}}  # one of no values: nothing passes, for every document has a parent
    return conditions[0] if len(conditions) == 1 else {operator: conditions}


def as_vector(found: Any) -> Vectors:
    return np.asarray(found, dtype=np.float32)
