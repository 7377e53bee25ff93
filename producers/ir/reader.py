"""IR records to chunks: a record is one indexable unit, so it becomes one chunk, under the id that it has.

`docs/seams.md` lists where each field goes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import derive_document_id
from chunksink.producers.errors import (
    EXTRACTION_FAILED,
    EXTRACTION_SKIPPED,
    IDENTITY_MISMATCH,
    SOURCE_EMPTY,
    RecordRefused,
)
from chunksink.producers.ir.identity import check_identity, fits_facet, source_folder_token
from chunksink.producers.ir.schema import IR_VERSION, IrRecord
from chunksink.producers.produced import Item, Making
from chunksink.producers.records.drafts import ORIGINAL, Draft, id_for_tenant, says_something
from chunksink.producers.records.gather import gather
from chunksink.producers.records.keeping import keep, keep_original, make_provenance, read_as, tenant_of

# Raise it with any change of where a field goes.
_RULES_VERSION = "1"


@dataclass(frozen=True)
class IrReader:
    """Reads JSONL of canonical documents, or a folder with one JSON file a record."""

    @property
    def parser(self) -> tuple[str, str]:
        return ("canonical-document", IR_VERSION)

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return ("chunksink-ir", _RULES_VERSION)

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        """Families in the order of their last records. A family is whole or left out, for records state its size."""
        return gather(path, uri, making, lambda record, _: self._draft(record, uri, making), is_ir)

    def _draft(self, record: Record, uri: str, making: Making) -> Draft:
        ir = _check(record)
        source = ir.source.path
        own_tenant = tenant_of(record)
        tenant = own_tenant or making.tenant
        checksum = f"sha256:{ir.content_hash}"
        provenance, displaced = make_provenance(
            record["provenance"],
            source=("source_uri", source),
            checksum=checksum,
            parser=(ir.provenance.extractor_name, ir.provenance.extractor_version),
            canonicalizer=self.canonicalizer,
            uri=uri,
        )
        text = ir.content.content_text or ""
        return Draft(
            name=source,
            parent=ir.parent_id,
            tenant=tenant,
            version=(ir.content_hash, ir.chunk_count),
            document_id=derive_document_id(source, checksum, tenant=tenant),
            text=text,
            provenance=provenance,
            fields=_fields(record, displaced, tenant),
            chunk_id=id_for_tenant(ir.id, tenant),
            index=ir.chunk_index,
            count=ir.chunk_count,
            order=(ir.chunk_index,),
            excuse=_excuse(ir, text),
        )


def is_ir(record: Record, *, is_alone: bool = False) -> bool:
    """Whether a record is none of another form; alone, one that lacks something is told so."""
    content = record.get("content")
    return isinstance(content, dict) and (is_alone or "content_text" in content)


def _check(record: Record) -> IrRecord:
    """The record's typed view, after everything that it says about itself was found true."""
    version = record.get("schema_version")
    if version is not None and version != IR_VERSION:
        raise RecordRefused(findings.UNSUPPORTED_VERSION, f"schema_version is {version!r:.80}, not {IR_VERSION!r}")
    ir: IrRecord = read_as(IrRecord, record)
    if ir.chunk_index >= ir.chunk_count:
        raise RecordRefused(
            IDENTITY_MISMATCH, f"chunk_index is {ir.chunk_index} of a chunk_count of {ir.chunk_count}; it counts from 0"
        )
    canonical = record["source"].get("canonical_path")
    path = canonical if isinstance(canonical, str) else ir.source.path
    check_identity(path, ir.id, ir.parent_id, ir.content_hash, ir.chunk_index)
    return ir


def _fields(record: Record, displaced: Any, tenant: str | None) -> Record:
    """What the chunk carries beside identity, text and provenance."""
    placed = {"id", "parent_id", "chunk_index", "chunk_count", "content_hash", "provenance", "tenant_id"}
    rest = {name: value for name, value in record.items() if name not in placed}
    rest["content"] = {name: value for name, value in record["content"].items() if name != "content_text"}
    rest["source"], stated = _with_folder(record["source"])
    fields = keep(rest)
    if tenant is not None:
        keep_original(fields, "id", record["id"])
    if displaced is not None:
        keep_original(fields, "provenance", displaced)
    if stated is not None:
        keep_original(fields, "source", {**fields.get(ORIGINAL, {}).get("source", {}), "source_folder": stated})
    return fields


def _with_folder(source: Record) -> tuple[Record, str | None]:
    """The source with a folder that engines can filter by, and the stated one where it gave way."""
    stated = source.get("source_folder")
    if stated and fits_facet(stated):
        return source, None
    token = source_folder_token(source["path"])
    return {**source, "source_folder": token}, stated or None


def _excuse(ir: IrRecord, text: str) -> tuple[str, str, bool] | None:
    """Why the record is counted and not indexed."""
    if ir.status == "failed":
        return EXTRACTION_FAILED, f"{ir.source.path}: {_said(ir.errors) or 'its extraction failed'}", True
    if ir.status == "skipped":
        return EXTRACTION_SKIPPED, f"{ir.source.path}: {_said(ir.warnings) or 'it was skipped'}", False
    if not says_something(text):
        return SOURCE_EMPTY, f"{ir.source.path}: its content_text is empty", False
    return None


def _said(diagnostics: list[Any] | None) -> str:
    return "; ".join(f"{_words(diagnostic):.200}" for diagnostic in (diagnostics or [])[:3])


def _words(diagnostic: Any) -> str:
    """Of an object what it calls so, else its fields; in the order in which they stand."""
    if not isinstance(diagnostic, dict):
        return str(diagnostic)
    said = [str(diagnostic[name]) for name in ("code", "message") if diagnostic.get(name)]
    return ": ".join(said) or ", ".join(f"{name} {value}" for name, value in diagnostic.items())
