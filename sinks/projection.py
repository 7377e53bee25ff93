"""The projection: from the chunks of a family to the documents that every sink stores.

If the value at one path cannot be read, the next path is tried. A valid chunk never raises.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from chunksink.chunkbus.chunk import Record
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document, document_hash
from chunksink.sinks.fields import PROJECTION, FieldRule, Values, values_by_path

PROJECTION_VERSION = 11
"""Increase it if documents would come out differently: then a sync projects all chunks again and writes what differs.
A change of `title_and_headings` also needs a migration of the catalog, which stores hashes of title and headings."""

_TITLE, _HEADINGS = (rule for rule in PROJECTION if rule.name in ("title", "headings"))
_CONTEXT_PATHS = [(path, *path.rpartition(".")[::2]) for rule in (_TITLE, _HEADINGS) for path in rule.paths]
_ORDER = [rule for rule in PROJECTION if rule.name in ("chunk_id", "id", "chunk_index", "page_start", "char_start")]
_DIGITS = re.compile("([0-9]{1,18})")


def project_family(
    records: Iterable[Record],
    fields: FieldSet = NO_FIELDS,
    *,
    position: int = 0,
    before: str | None = None,
    after: str | None = None,
) -> list[Document]:
    """The documents of one family in order, with neighbours and hashes. The records may come in any order.

    For a part of a family, `position` is the position of its first chunk, and `before` and `after` are the ids of the
    chunks next to the part.
    """
    projected = ((record, _project(record)) for record in records)
    members = sorted((values | fields.project(record, values) for record, values in projected), key=_sort_key)
    ids = [before, *(member["id"] for member in members), after]
    for number, member in enumerate(members):
        if member["chunk_index"] is None:
            member["chunk_index"] = position + number
        member["previous_id"], member["next_id"] = ids[number], ids[number + 2]
        member["document_hash"] = document_hash(_without_none(member))
    parents = sorted({member["parent_id"] for member in members})
    if len(parents) > 1:
        raise ValueError(f"expected chunks of one family, got {len(parents)}: {', '.join(parents[:3])}")
    return [Document(**_without_none(member)) for member in members]


def projection_id(fields: FieldSet) -> str:
    """An id of the rules and the custom fields. If it changes, the documents of the same chunks may differ."""
    return f"{PROJECTION_VERSION}/{fields.digest}"


def fields_in(fields: FieldSet, ids: Iterable[str]) -> FieldSet:
    """The custom fields that are the same in all these builds. `ids` are the projection ids of the builds."""
    prefix = f"{PROJECTION_VERSION}/"
    digests = [id.removeprefix(prefix).split(",") if id.startswith(prefix) else [] for id in ids]
    return FieldSet(tuple(field for field in fields.fields if all(field.digest in each for each in digests)))


def order_in_family(record: Record) -> tuple[Any, ...]:
    """The sort key of the documents of a family."""
    return _sort_key(_project(record, _ORDER))


def title_and_headings(record: Record) -> tuple[str | None, tuple[str, ...]]:
    """The title and headings of the chunk's document, ten times as fast as the projection of the whole document."""
    by_path = {}
    for path, group, name in _CONTEXT_PATHS:
        owner = record.get(group) if group else record
        if isinstance(owner, dict):
            by_path[path] = owner.get(name)
    return _TITLE.value(record, by_path, {}), _HEADINGS.value(record, by_path, {}) or ()


def _project(record: Record, rules: Sequence[FieldRule] = PROJECTION) -> Values:
    fields: Values = {}
    by_path = values_by_path(record)
    for rule in rules:
        fields[rule.name] = rule.value(record, by_path, fields)
    return fields


def _without_none(fields: Values) -> Values:
    return {name: value for name, value in fields.items() if value is not None}


def _sort_key(fields: Values) -> tuple[Any, ...]:
    """By chunk index (missing ones last), then by position in the source, then by `chunk_id`, where 2 is before 10."""
    keys = (fields["chunk_index"], fields["page_start"], fields["char_start"])
    parts = _DIGITS.split(fields["chunk_id"])  # every other part is a number
    by_id = [int(part) if number % 2 else part for number, part in enumerate(parts)]
    return (*((key is None, key or 0) for key in keys), by_id, fields["id"])
