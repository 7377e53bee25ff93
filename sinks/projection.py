"""The projection: from the chunks of a family, as their producer wrote them, to the documents that every sink stores.

A value that cannot be read is skipped and the next path asked; nothing is invented, and nothing is raised for chunks
that have the contract's required fields.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.sinks.document import Document, document_hash
from chunksink.sinks.fields import PROJECTION, FieldRule, Values, placed

PROJECTION_VERSION = 5
"""Part of a build's marker: a build of another version is filled anew. Raise it with every change of meaning."""


_ORDER = [rule for rule in PROJECTION if rule.name in ("chunk_id", "id", "chunk_index", "page_start", "char_start")]


def project_family(
    records: Iterable[Record], *, position: int = 0, before: str | None = None, after: str | None = None
) -> list[Document]:
    """The documents of one family, in order, with their neighbours and hashes, whatever the order of the records.

    Of a part of a family: its `position` in the order of the family, and the ids of the documents on either side.
    """
    members = sorted((_project(record) for record in records), key=_place)
    ids = [before, *(fields["id"] for fields in members), after]
    for number, fields in enumerate(members):
        if fields["chunk_index"] is None:
            fields["chunk_index"] = position + number
        fields["previous_id"], fields["next_id"] = ids[number], ids[number + 2]
        fields["document_hash"] = document_hash(_said(fields))
    parents = sorted({fields["parent_id"] for fields in members})
    if len(parents) > 1:
        raise ValueError(f"chunks of {len(parents)} families where one was expected: {', '.join(parents[:3])}")
    return [Document(**_said(fields)) for fields in members]


def order_in_family(record: Record) -> tuple[Any, ...]:
    """What the documents of a family are sorted by."""
    return _place(_project(record, _ORDER))


def _project(record: Record, rules: Sequence[FieldRule] = PROJECTION) -> Values:
    fields: Values = {}
    found = placed(record)
    for rule in rules:
        fields[rule.name] = rule.value(record, found, fields)
    return fields


def _said(fields: Values) -> Values:
    return {name: value for name, value in fields.items() if value is not None}


def _place(fields: Values) -> tuple[Any, ...]:
    """Order in a family: by index, those without one last, by where they lie; the id makes it total."""
    keys = (fields["chunk_index"], fields["page_start"], fields["char_start"])
    return (*((key is None, key or 0) for key in keys), fields["id"])
