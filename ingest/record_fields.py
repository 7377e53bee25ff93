"""Turns the fields of a JSON record into a chunk: unknown fields are kept, ids are computed."""

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex, json_hash
from chunksink.chunkbus.chunk import Canonicalizer, Chunk, Parser, Provenance, Record, Source, Span, new_chunk
from chunksink.chunkbus.errors import NotCanonical
from chunksink.chunkbus.identity import own_field
from chunksink.chunkbus.record_checks import examine_line
from chunksink.ingest.codes import TENANT_MISMATCH
from chunksink.ingest.errors import RecordRefused

ORIGINAL = "original"
"""The field of a chunk for values that the contract has no field for, or computes itself."""

_GROUPS: dict[str, dict[str, Any]] = {
    "source": {field.name: field.type for field in msgspec.structs.fields(Source)},
    "span": {field.name: field.type for field in msgspec.structs.fields(Span)},
    **{name: {} for name in ("metadata", "canonicalization", "quality")},
}
_COMPUTED = frozenset(Chunk.__struct_fields__) - _GROUPS.keys() - {"tokens"} | {ORIGINAL}


def keep(rest: Mapping[str, Any]) -> Record:
    """The fields of a record that its format has not used, as fields of a chunk.

    Values that the contract has no place for, or computes itself, go into `original`. Vectors are left out.
    """
    fields: Record = {}
    original: Record = {}
    for name, value in without_vectors(rest).items():
        if name in _GROUPS and isinstance(value, dict):
            fields[name] = {key: item for key, item in value.items() if _fits(item, _GROUPS[name].get(key, Any))}
            if clashing := {key: item for key, item in value.items() if key not in fields[name]}:
                original[name] = clashing
        elif name in _COMPUTED or (name in _GROUPS and value is not None):
            original[name] = value
        else:
            fields[name] = value
    return {**fields, ORIGINAL: original} if original else fields


def add_original(fields: Record, **values: Any) -> None:
    """Adds the values to `original`, without None and empty groups."""
    if added := {name: value for name, value in values.items() if value not in (None, {})}:
        before = fields.get(ORIGINAL, {})
        fields[ORIGINAL] = {**(before if isinstance(before, dict) else {ORIGINAL: before}), **added}


def without_vectors(rest: Mapping[str, Any]) -> Record:
    """The fields without the vectors of `embedding`; other values, such as the model's name, are kept."""
    fields = dict(rest)
    embedding = fields.get("embedding")
    if isinstance(embedding, dict):
        fields["embedding"] = {name: value for name, value in embedding.items() if name not in ("vector", "vectors")}
    elif isinstance(embedding, list):
        del fields["embedding"]
    return fields


def read_as(type_: type[msgspec.Struct], record: Record) -> Any:
    """The record converted to this type. Raises RecordRefused."""
    try:
        return msgspec.convert(record, type_)
    except msgspec.ValidationError as error:
        missing = "missing required field" in str(error)
        raise RecordRefused(findings.FIELD_MISSING if missing else findings.WRONG_TYPE, str(error)) from error


def tenant_of(record: Mapping[str, Any]) -> str | None:
    """The tenant that the record names. Raises RecordRefused if it is not a string: other types would be ignored."""
    metadata = record.get("metadata")
    for group in (record, metadata if isinstance(metadata, dict) else {}):
        if not isinstance(group.get("tenant_id", ""), str | None):
            raise RecordRefused(findings.WRONG_TYPE, f"tenant_id is not a string: {group['tenant_id']!r:.60}")
    return own_field(record, "tenant_id")


def refuse_other_tenant(tenant: str | None, run_tenant: str | None) -> None:
    """Raises RecordRefused if a record is not of the run's tenant: one tenant's file must not write into another."""
    if run_tenant is not None and tenant != run_tenant:
        reason = f"its tenant_id is {tenant!r:.80}, but --tenant is {run_tenant!r:.80}"
        raise RecordRefused(TENANT_MISMATCH, f"{reason}. If its producer may write for every tenant, omit --tenant")


def first_string(record: Mapping[str, Any], *paths: str) -> str | None:
    """The first non-empty string at one of these dotted paths."""
    for path in paths:
        value: Any = record
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return None


def checksum_of(*candidates: str | None) -> str | None:
    """The first sha256 among them, as a chunk stores it."""
    digits = next(filter(None, map(bare_hex, candidates)), None)
    return f"sha256:{digits}" if digits else None


def new_provenance(
    source: tuple[str, str], checksum: str | None, parser: tuple[str, str], canonicalizer: tuple[str, str]
) -> Record:
    return {
        source[0]: source[1],
        **({"source_checksum": checksum} if checksum else {}),
        "parser": dict(zip(Parser.__struct_fields__, parser, strict=True)),
        "canonicalizer": dict(zip(Canonicalizer.__struct_fields__, canonicalizer, strict=True)),
        "inputs": [],
    }


def make_provenance(
    theirs: Any,
    *,
    source: tuple[str, str],
    checksum: str | None,
    parser: tuple[str, str],
    canonicalizer: tuple[str, str],
    uri: str,
) -> tuple[Record, Any]:
    """Returns the provenance of a chunk, and the values of the record's provenance (`theirs`) that it replaces (None if
    there are none). It keeps a valid parser, and fields that the contract does not define.

    `source` is the field (`source_uri` or `source_ref`) and the name. `parser` is used if the record names none.
    """
    own: Record = theirs if isinstance(theirs, dict) else {}
    flat = {name: own.get(name) for name in Parser.__struct_fields__}
    stated_parser = next((pair for pair in (own.get("parser"), flat) if _fits(pair, Parser)), None)
    provenance = new_provenance(source, checksum, parser, canonicalizer)
    provenance["inputs"] = [{"source_uri": uri}]
    if stated_parser:
        provenance["parser"] = stated_parser
    known = Provenance.__struct_fields__
    provenance.update({name: value for name, value in own.items() if name not in known})
    if theirs is not None and not isinstance(theirs, dict):
        return provenance, theirs
    replaced = {name: value for name, value in own.items() if name in known and provenance.get(name, ...) != value}
    return provenance, replaced or None


def make_chunk(**parts: Any) -> Record:
    """A new chunk. Raises RecordRefused if it would be invalid in a partition."""
    try:
        return check(new_chunk(**parts))
    except NotCanonical as error:
        raise RecordRefused(findings.JSON_PARSE, str(error)) from error


def check(record: Record) -> Record:
    """The chunk, if it is valid. Raises RecordRefused."""
    to_line(record)
    return record


def to_line(record: Record) -> bytes:
    """The chunk as a line of a partition, without the line break. Raises RecordRefused if it is invalid; writing such
    a line would stop the run."""
    try:
        line = orjson.dumps(record)
    except orjson.JSONEncodeError as error:
        raise RecordRefused(findings.JSON_PARSE, f"JSON cannot represent it: {error}") from error
    _, problems = examine_line(line)
    for problem in problems:
        if problem.severity is findings.Severity.ERROR:
            raise RecordRefused(problem.code, problem.detail)
    return line


def id_for_tenant(chunk_id: str, tenant: str | None) -> str:
    """The id, combined with the tenant if there is one: the formula of the id does not contain the tenant, and two
    tenants with the same source must not share ids."""
    return chunk_id if tenant is None else json_hash([tenant, chunk_id])


def _fits(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True
