"""What a chunk keeps of a record's fields that its adapter has not placed: nothing is lost, nothing stands in for ours.

A field keeps its name if the chunk contract does not know it, or knows it with that type and leaves it to producers.
What the contract computes, or knows with another type, is kept below `original`. Vectors are not kept: a chunk may
not hold any.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex
from chunksink.chunkbus.chunk import Canonicalizer, Chunk, Parser, Provenance, Record, Source, Span
from chunksink.chunkbus.identity import own_field
from chunksink.producers.errors import RecordRefused
from chunksink.producers.records.drafts import ORIGINAL

_GROUPS: dict[str, dict[str, Any]] = {
    name: {field.name: field.type for field in msgspec.structs.fields(type_)} if type_ else {}
    for name, type_ in (
        ("source", Source),
        ("span", Span),
        ("metadata", None),
        ("canonicalization", None),
        ("quality", None),
    )
}
_COMPUTED = frozenset(Chunk.__struct_fields__) - _GROUPS.keys() - {"tokens"} | {ORIGINAL}


def keep(rest: Mapping[str, Any]) -> Record:
    """The fields of a chunk that the rest of a record becomes."""
    fields: Record = {}
    original: Record = {}
    for name, value in without_vectors(rest).items():
        if name in _COMPUTED:
            original[name] = value
        elif name not in _GROUPS or value is None:
            fields[name] = value
        elif isinstance(value, dict):
            fields[name] = {key: item for key, item in value.items() if _fits(item, _GROUPS[name].get(key, Any))}
            clashing = {key: item for key, item in value.items() if key not in fields[name]}
            if clashing:
                original[name] = clashing
        else:
            original[name] = value
    return {**fields, ORIGINAL: original} if original else fields


def without_vectors(rest: Mapping[str, Any]) -> Record:
    """Without `embedding`, or without the numbers in it where it says more."""
    fields = dict(rest)
    embedding = fields.get("embedding")
    if isinstance(embedding, dict):
        fields["embedding"] = {name: value for name, value in embedding.items() if name not in ("vector", "vectors")}
    elif isinstance(embedding, list):
        del fields["embedding"]
    return fields


def _fits(value: Any, type_: Any) -> bool:
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError:
        return False
    return True


def keep_original(fields: Record, name: str, value: Any) -> None:
    """Adds to what is kept below `original`."""
    before = fields.get(ORIGINAL, {})
    fields[ORIGINAL] = {**(before if isinstance(before, dict) else {ORIGINAL: before}), name: value}


def read_as(type_: type[msgspec.Struct], record: Record) -> Any:
    """The record as the typed view of its form. Raises RecordRefused."""
    try:
        return msgspec.convert(record, type_)
    except msgspec.ValidationError as error:
        missing = "missing required field" in str(error)
        raise RecordRefused(findings.FIELD_MISSING if missing else findings.WRONG_TYPE, str(error)) from error


def tenant_of(record: Mapping[str, Any]) -> str | None:
    """The tenant that the record names; refuses one that is no string, for it would be lost."""
    metadata = record.get("metadata")
    for group in (record, metadata if isinstance(metadata, dict) else {}):
        if not isinstance(group.get("tenant_id", ""), str | None):
            raise RecordRefused(findings.WRONG_TYPE, f"tenant_id is not a string: {group['tenant_id']!r:.60}")
    return own_field(record, "tenant_id")


def first_string(record: Mapping[str, Any], *paths: str) -> str | None:
    """The first of these that is a string and says something."""
    for path in paths:
        value: Any = record
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value
    return None


def checksum_of(*candidates: str | None) -> str | None:
    """The first that is a sha256, as a chunk stores it."""
    digits = next(filter(None, map(bare_hex, candidates)), None)
    return f"sha256:{digits}" if digits else None


def make_provenance(
    theirs: Any,
    *,
    source: tuple[str, str],
    checksum: str | None,
    parser: tuple[str, str],
    canonicalizer: tuple[str, str],
    uri: str,
) -> tuple[Record, Any]:
    """A chunk's provenance with what the record's own adds to it, and what of that had to give way.

    `source` is `source_uri` or `source_ref`, and the name. Who parsed the source is for the record to say.
    """
    own: Record = theirs if isinstance(theirs, dict) else {}
    flat = {name: own.get(name) for name in Parser.__struct_fields__}
    said = next((pair for pair in (own.get("parser"), flat) if _fits(pair, Parser)), None)
    provenance: Record = {
        source[0]: source[1],
        **({"source_checksum": checksum} if checksum else {}),
        "parser": said or dict(zip(Parser.__struct_fields__, parser, strict=True)),
        "canonicalizer": dict(zip(Canonicalizer.__struct_fields__, canonicalizer, strict=True)),
        "inputs": [{"source_uri": uri}],
    }
    known = Provenance.__struct_fields__
    provenance.update({name: value for name, value in own.items() if name not in known})
    if theirs is not None and not isinstance(theirs, dict):
        return provenance, theirs
    gone = {name: value for name, value in own.items() if name in known and provenance.get(name, ...) != value}
    return provenance, gone or None
