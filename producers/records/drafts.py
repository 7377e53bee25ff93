"""A record on its way to a chunk: what it says is placed, what depends on its siblings is not yet known."""

from dataclasses import dataclass
from typing import Any

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import canonical_text, json_hash
from chunksink.chunkbus.chunk import Record, new_chunk
from chunksink.chunkbus.errors import NotCanonical
from chunksink.chunkbus.examine import examine_line
from chunksink.chunkbus.identity import family_key
from chunksink.producers.errors import RecordRefused
from chunksink.producers.produced import Making

ORIGINAL = "original"
"""The field of a chunk that keeps what its contract has no place for, or computes anew."""

_HEAD = 256


@dataclass(frozen=True)
class Draft:
    """One chunk of a family, before its siblings are known.

    `version` tells versions of one source apart; the last in the file counts. `order` says where it stands among its
    siblings. With `count` the family is whole or left out; where `index` is None the order alone numbers it.
    `given` is a chunk that is passed on as it is. `excuse` (code, reason, is it a failure?) keeps it out by rule.
    """

    name: str
    parent: str
    tenant: str | None
    version: tuple[Any, ...]
    document_id: str
    text: str
    provenance: Record
    fields: Record
    chunk_id: str | None = None
    index: int | None = None
    count: int | None = None
    order: tuple[Any, ...] = ()
    given: Record | None = None
    excuse: tuple[str, str, bool] | None = None

    @property
    def family(self) -> str:
        return family_key(self.parent, self.tenant)

    def finish(self, index: int, count: int, making: Making) -> Record:
        """The chunk at its place. Raises RecordRefused where no partition would take it."""
        if self.given is not None:
            return check(self.given)
        fields: Record = {"parent_id": self.parent, "chunk_index": index, "chunk_count": count, **self.fields}
        stated = {"chunk_index": self.index, "chunk_count": self.count}
        moved = {name: value for name, value in stated.items() if value is not None and value != fields[name]}
        if moved:
            fields[ORIGINAL] = {**moved, **fields.get(ORIGINAL, {})}
        if self.tenant is not None:
            fields["tenant_id"] = self.tenant
        fields["producer"] = making.producer
        return make_chunk(
            document_id=self.document_id,
            text=self.text,
            provenance=self.provenance,
            span_key=index if self.index is None else self.index,  # siblings that are refused move no id
            created_at=making.created_at,
            chunk_id=self.chunk_id,
            fields=fields,
        )


def make_chunk(
    *,
    document_id: str,
    text: str,
    provenance: Record,
    span_key: str | int,
    created_at: str,
    fields: Record,
    chunk_id: str | None = None,
) -> Record:
    """What `new_chunk` makes of these. Raises RecordRefused where no partition would take it."""
    try:
        record = new_chunk(
            document_id=document_id,
            text=text,
            provenance=provenance,
            span_key=span_key,
            created_at=created_at,
            chunk_id=chunk_id,
            fields=fields,
        )
    except NotCanonical as error:
        raise RecordRefused(findings.JSON_PARSE, str(error)) from error
    return check(record)


def check(record: Record) -> Record:
    """The record, if a partition's writer takes it; it would end the whole run where it does not."""
    try:
        line = orjson.dumps(record)
    except orjson.JSONEncodeError as error:
        raise RecordRefused(findings.JSON_PARSE, f"not a value that JSON can carry: {error}") from error
    _, problems = examine_line(line)
    for problem in problems:
        if problem.severity is findings.Severity.ERROR:
            raise RecordRefused(problem.code, problem.detail)
    return record


def says_something(text: str) -> bool:
    """Whether its canonical text is more than nothing; nearly always its head shows it."""
    return bool(canonical_text(text[:_HEAD]) or canonical_text(text))


def id_for_tenant(chunk_id: str, tenant: str | None) -> str:
    """The id, where its formula knows no tenant: two tenants with the same source must not share ids."""
    return chunk_id if tenant is None else json_hash([tenant, chunk_id])
