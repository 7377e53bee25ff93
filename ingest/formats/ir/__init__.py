"""IR: canonical documents 1.0, which extractors write as JSON records. A record becomes one chunk under its own id,
combined with the tenant if there is one.

`docs/formats/ir.md` lists where each field goes. `reindex` finds outdated records.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import canonical_text, sha256_hex
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id, normalise_source
from chunksink.ingest import codes, record_fields
from chunksink.ingest.errors import RecordRefused
from chunksink.ingest.family_groups import Draft, group_records
from chunksink.ingest.formats.ir.schema import IR_VERSION, IrRecord
from chunksink.ingest.formats.registry import Format, Match
from chunksink.ingest.model import Item, Notice, Source

_PLACED = {"id", "parent_id", "chunk_index", "chunk_count", "content_hash", "provenance", "tenant_id"}
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class IrFormat(Format):
    """Reads canonical documents. A family states its number of chunks, so it is read completely or not at all."""

    name = "ir"
    suffixes = (".jsonl", ".ndjson", ".json")
    parser = ("canonical-document", IR_VERSION)
    canonicalizer = ("chunksink-ir", "1")
    """Increase the version with any change of the field mapping."""

    def match(self, record: Record, *, is_alone: bool = False) -> Match:
        return Match.LIKELY if is_ir(record) else Match.NO

    def read(self, source: Source) -> Iterator[Item]:
        return group_records(source, lambda numbered: self._draft(numbered.record, source), is_ir)

    def _draft(self, record: Record, source: Source) -> Draft:
        ir = _checked(record)
        path = ir.source.path
        tenant = record_fields.tenant_of(record) or source.tenant
        checksum = f"sha256:{ir.content_hash}"
        provenance, replaced = record_fields.make_provenance(
            record["provenance"],
            source=("source_uri", path),
            checksum=checksum,
            parser=(ir.provenance.extractor_name, ir.provenance.extractor_version),
            canonicalizer=self.canonicalizer,
            uri=source.uri,
        )
        return Draft(
            name=path,
            parent=ir.parent_id,
            tenant=tenant,
            version=(ir.content_hash, ir.chunk_count),
            document_id=derive_document_id(path, checksum, tenant=tenant),
            text=ir.content.content_text or "",
            provenance=provenance,
            fields=_fields(record, replaced, tenant),
            chunk_id=record_fields.id_for_tenant(ir.id, tenant),
            index=ir.chunk_index,
            count=ir.chunk_count,
            order=(ir.chunk_index,),
            not_indexed=_why_not_indexed(ir),
        )


def is_ir(record: Record) -> bool:
    """Whether a record has `content.content_text`, which only IR records have."""
    content = record.get("content")
    return isinstance(content, dict) and "content_text" in content


def identity(path: str, content_hash: str, chunk_index: int) -> tuple[str, str]:
    """`parent_id`, which edits do not change, and `id`, by the specification's formulas. `path` is canonical."""
    return sha256_hex(path.encode()), sha256_hex(f"{path}|{content_hash}|{chunk_index}".encode())


def canonical_paths(path: str) -> list[str]:
    """The canonical forms of an absolute path; none for a relative one. A Windows path has two, both in lower
    case: with `\\` and with `/`."""
    if _WINDOWS.match(path):
        backward = normalise_source(path).lower().replace("/", "\\")
        return [backward, backward.replace("\\", "/")]
    return [normalise_source(path)] if path.startswith("/") else []


def _checked(record: Record) -> IrRecord:
    """The record as a typed view. Raises RecordRefused if its types or ids are wrong."""
    version = record.get("schema_version")
    if version is not None and version != IR_VERSION:
        raise RecordRefused(findings.UNSUPPORTED_VERSION, f"schema_version is {version!r:.80}, not {IR_VERSION!r}")
    ir: IrRecord = record_fields.read_as(IrRecord, record)
    if ir.chunk_index >= ir.chunk_count:
        raise RecordRefused(codes.IDENTITY_MISMATCH, f"chunk_index {ir.chunk_index} is not below {ir.chunk_count}")
    stated = record["source"].get("canonical_path")
    paths = canonical_paths(stated if isinstance(stated, str) else ir.source.path)
    ids = [identity(path, ir.content_hash, ir.chunk_index) for path in paths]
    if ids and (ir.parent_id, ir.id) not in ids:
        reason = f"parent_id and id are {ir.parent_id} and {ir.id}, but the path {paths[0]!r:.200} gives {ids[0]}"
        raise RecordRefused(codes.IDENTITY_MISMATCH, reason)
    return ir


def _fields(record: Record, replaced: Any, tenant: str | None) -> Record:
    """The chunk's fields other than identity, text and provenance."""
    rest = {name: value for name, value in record.items() if name not in _PLACED}
    rest["content"] = {name: value for name, value in record["content"].items() if name != "content_text"}
    if not record["source"].get("source_folder"):
        path = record["source"]["path"]
        folder = posixpath.dirname(path.replace("\\", "/") if _WINDOWS.match(path) else path)
        rest["source"] = {**record["source"], "source_folder": folder or None}
    fields = record_fields.keep(rest)
    record_fields.add_original(fields, id=None if tenant is None else record["id"], provenance=replaced)
    return fields


def _why_not_indexed(ir: IrRecord) -> Notice | None:
    path = ir.source.path
    if ir.status == "failed":
        return Notice(codes.EXTRACTION_FAILED, f"{path}: its errors are {ir.errors!r:.400}")
    if ir.status == "skipped":
        return Notice(codes.EXTRACTION_SKIPPED, f"{path}: its warnings are {ir.warnings!r:.400}", is_failure=False)
    if not canonical_text(ir.content.content_text or ""):
        return Notice(codes.SOURCE_EMPTY, f"{path}: its content_text is empty", is_failure=False)
    return None
