"""Chunks that are canonical already: they pass through as they are."""

import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import chunk_object_hash
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.examine import examine_line
from chunksink.chunkbus.identity import parent_id, source_name
from chunksink.producers.bridges.foreign import Context
from chunksink.producers.errors import RecordRefused
from chunksink.producers.records.drafts import Draft, id_for_tenant
from chunksink.producers.records.keeping import keep_original, tenant_of


def pass_on(_: Record, data: bytes, context: Context) -> Draft:
    """The chunk unchanged, but for the tenant and the time that a run gives to chunks without one.

    Without a time of its own its family would rank by its partition's, which every other file of that raises.
    """
    chunk, problems = examine_line(data)
    for problem in problems:
        if chunk is None or problem.severity is findings.Severity.ERROR:
            raise RecordRefused(problem.code, problem.detail)
    record: Record = orjson.loads(data)
    own_tenant = tenant_of(record)
    tenant = own_tenant or context.making.tenant
    if tenant != own_tenant:
        record = _give_tenant(record, tenant)
    if record.get("created_at") is None:
        record = _rehash({**record, "created_at": context.making.created_at})
    index, count = record.get("chunk_index"), record.get("chunk_count")
    return Draft(
        name=source_name(record) or record["document_id"],
        parent=parent_id(record),
        tenant=tenant,
        version=chunk.provenance.version() if chunk is not None else (),
        document_id=record["document_id"],
        text=record["text"],
        provenance=record["provenance"],
        fields={},
        chunk_id=record["chunk_id"],
        count=count,
        order=(index is None, index or 0),
        given=record,
    )


def _give_tenant(record: Record, tenant: str | None) -> Record:
    given = {**record, "tenant_id": tenant, "chunk_id": id_for_tenant(record["chunk_id"], tenant)}
    keep_original(given, "chunk_id", record["chunk_id"])
    return _rehash(given)


def _rehash(record: Record) -> Record:
    if "chunk_object_hash" not in (record.get("hashes") or {}):
        return record
    return {**record, "hashes": {**record["hashes"], "chunk_object_hash": chunk_object_hash(record)}}
