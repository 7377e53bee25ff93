"""Documents as Chroma rows (an id, flat metadata, a text), and filters as its conditions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chunksink.sinks.contract import NO_PARENT, Stored
from chunksink.sinks.document import CUSTOM, LISTS, NAMES, Document, Vectors, document_hash
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.payload import batches, slices_by_size
from chunksink.sinks.reader import Filter, Value

# All list fields are sent, empty ones as None: otherwise a new row can inherit lists of a deleted collection
# (chroma-core/chroma#7594).
_BLANK_LISTS: dict[str, Any] = dict.fromkeys((*LISTS, "fields"))

Where = dict[str, Any] | None
"""Chroma's form of a condition."""
Page = Mapping[str, Any]
"""A result of `Collection.get`."""

_FLOAT_BYTES = 6  # per number of a vector in a request: base64 of float32, rounded up
_KEYS = 500  # families per condition
_ROW_BYTES = 1500  # names and hashes of a row


def metadata(document: Document, old: Iterable[str]) -> dict[str, Any]:
    """The fields except id and text. `old` fields of the row that the document lacks are set to None, because Chroma
    would keep them."""
    fields = document.as_dict()
    del fields["id"], fields["text"]
    for name in LISTS:
        if name in fields:
            fields[name] = list(fields[name])
    sent = _BLANK_LISTS | fields | _flat(document.fields)
    # Sorted, so that a repeated call sends the same request.
    return sent | dict.fromkeys(sorted(name for name in old if name not in sent))


def vector_inputs(document: Document) -> dict[str, Any]:
    """The fields that decide a vector, and the family. While they are unchanged, the vector need not be sent again."""
    of_vector = {name: getattr(document, name) for name in ("parent_id", "text_hash", "title")}
    return of_vector | {"headings": list(document.headings) or None}


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Custom fields as metadata. Numbers are floats, because Chroma does not compare whole numbers with fractions. The
    members of all lists are in one list, `fields`, as NAME=MEMBER, because `_BLANK_LISTS` must name every list.
    """
    members = [f"{name}={member}" for name, value in fields.items() if isinstance(value, list) for member in value]
    single = {f"{CUSTOM}{name}": _operand(value) for name, value in fields.items() if not isinstance(value, list)}
    return {"fields": members or None, **single}


def _nested(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of `_flat`."""
    found: dict[str, Any] = {}
    for key, value in metadata.items():
        if key.startswith(CUSTOM):
            is_whole = isinstance(value, float) and value.is_integer()
            found[key.removeprefix(CUSTOM)] = int(value) if is_whole else value
    for member in metadata.get("fields") or ():
        name, _, value = member.partition("=")
        found.setdefault(name, []).append(value)
    return dict(sorted(found.items()))


def _operand(value: Any) -> Any:
    return float(value) if type(value) is int else value


def document(id: str, metadata: Mapping[str, Any] | None, text: str | None) -> Document | None:
    """The stored document; None if no sink has written the row."""
    own = metadata or {}
    return Document.if_ours({**own, "id": id, "text": text or "", "fields": _nested(own)})


def stored(
    id: str, metadata: Mapping[str, Any] | None, text: str | None, vector: Vectors | None, content: bool
) -> Stored:
    """A row with an unknown field counts as not ours, so that replacing its family removes the field."""
    metadata = metadata or {}
    known = all(name in NAMES or name.startswith(CUSTOM) for name in metadata)
    ours = document(id, metadata, text) if content and known else None
    found = Stored.of_fields(id, metadata, ours, vector)
    if found.document is None or text is not None:
        return found
    stored_hash = found.document.text_hash  # the text is not stored
    return replace(found, document_hash=document_hash(found.document.as_dict()), text_hash=stored_hash)


def read(
    page: Callable[[int, int, bool, bool, Where], Page],
    max_rows: int,
    *,
    content: bool,
    vectors: bool = False,
    parent_ids: Sequence[str] | None = None,
) -> Iterator[Stored]:
    """All documents of a build, or those of some families. `page` returns at most `max_rows` of them from an offset."""
    for where in [None] if parent_ids is None else conditions_for_families(parent_ids):
        offset = 0
        while True:
            rows = page(offset, max_rows, content, vectors, where)
            yield from _documents_in(rows, content)
            if len(rows["ids"]) < max_rows:
                break
            offset += max_rows


def _documents_in(page: Page, content: bool) -> Iterator[Stored]:
    texts, vectors = page["documents"], page["embeddings"]
    for position, id in enumerate(page["ids"]):
        text = texts[position] if texts is not None else None
        vector = as_vector(vectors[position]) if vectors is not None else None
        yield stored(id, page["metadatas"][position], text, vector, content)


def request_slices(documents: Sequence[Document], dimensions: int, max_rows: int, max_bytes: int) -> Iterator[slice]:
    """Slices that fit into one request, by number and by bytes."""
    more = dimensions * _FLOAT_BYTES + _ROW_BYTES
    sizes = [len(one.text.encode()) + more for one in documents]
    return slices_by_size(sizes, max_rows, max_bytes)


def conditions_for_families(parent_ids: Sequence[str]) -> Iterator[Where]:
    for some in batches([parent_id for parent_id in parent_ids if parent_id != NO_PARENT], _KEYS):
        yield {"parent_id": {"$in": list(some)}}


def where(filters: Sequence[Filter]) -> Where:
    """The filters as Chroma's `where`; None if there are none."""
    conditions: list[dict[str, Any]] = []
    for condition in filters:
        if condition.any_of is not None:
            conditions.append(_any_of(condition, condition.any_of))
        if condition.like is not None:
            raise InvalidFilter(f"Chroma cannot filter {condition.field} by patterns")
        if condition.at_least is not None:
            conditions.append({condition.field: _bound(condition, "$gt", condition.at_least)})
        if condition.at_most is not None:
            conditions.append({condition.field: _bound(condition, "$lt", condition.at_most)})
    return _joined("$and", conditions) if conditions else None


def _bound(condition: Filter, operator: str, bound: float) -> dict[str, Any]:
    """Custom numbers have 15 digits, and Chroma changes bounds with more. So a bound is rounded. If rounding moves it
    out of the range, the rounded bound is excluded."""
    if not condition.custom:
        return {f"{operator}e": int(bound)}
    rounded = float(f"{bound:.15g}")
    is_outside = rounded < bound if operator == "$gt" else rounded > bound
    return {operator if is_outside else f"{operator}e": rounded}


def _any_of(condition: Filter, values: Sequence[Value]) -> dict[str, Any]:
    if condition.is_list:
        field, name = ("fields", f"{condition.custom}=") if condition.custom else (condition.field, "")
        return _joined("$or", [{field: {"$contains": f"{name}{value}"}} for value in values])
    operands = [_operand(value) for value in values] if condition.custom else list(values)
    return _joined("$or", [{condition.field: {"$in": operands}}] if values else [])


def _joined(operator: str, conditions: list[dict[str, Any]]) -> dict[str, Any]:
    if not conditions:
        return {"parent_id": {"$in": [""]}}  # no values: nothing passes, because every document has a parent
    return conditions[0] if len(conditions) == 1 else {operator: conditions}


def as_vector(numbers: Any) -> Vectors:
    return np.asarray(numbers, dtype=np.float32)
