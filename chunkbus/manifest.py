"""The manifest of a partition: types, decoding, encoding, checks. A partition without one was never committed."""

from typing import Any

import msgspec
import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex
from chunksink.chunkbus.chunk import Count
from chunksink.chunkbus.diagnosis import diagnose_fields, diagnose_json, first_in_future, is_time, time_in_future
from chunksink.chunkbus.errors import InvalidManifest
from chunksink.chunkbus.findings import Problem

_REQUIRED = (
    "schema_version",
    "partition_key",
    "created_at",
    "producer",
    "producer.name",
    "producer.version",
    "counts",
    "counts.documents",
    "counts.chunks_emitted",
    "counts.failures",
    "checksums",
    "checksums.chunks_file",
    "idempotency",
    "idempotency.skipped",
    "errors",
)


class ManifestProducer(msgspec.Struct):
    name: str
    version: str


class Counts(msgspec.Struct):
    documents: Count
    chunks_emitted: Count
    failures: Count


class Checksums(msgspec.Struct):
    """`chunks_file` is `sha256:<hex>` of the chunks file's bytes."""

    chunks_file: str


class Idempotency(msgspec.Struct):
    skipped: Count


class Tombstone(msgspec.Struct, omit_defaults=True):
    """Retires versions of a source in other partitions, if they are older than `at`, by default the manifest's
    `created_at`.

    `parent_id` retires all these versions. Its value is either the `parent_id` of the source's chunks (for every
    tenant, or only for `tenant_id` if given) or a family key (`identity.family_key`), which includes the tenant.
    `document_id` retires the version with this id and all older ones.
    """

    parent_id: str | None = None
    document_id: str | None = None
    tenant_id: str | None = None
    reason: str | None = None
    at: str | None = None


class Manifest(msgspec.Struct, omit_defaults=True):
    """A partition's counts and checksum, its producer, and how many sources failed or were skipped."""

    schema_version: str
    partition_key: str
    created_at: str
    producer: ManifestProducer
    counts: Counts
    checksums: Checksums
    idempotency: Idempotency
    errors: dict[str, Count]
    input_sources: Any = None
    canonicalization_versions: Any = None
    chunking_policy_id: str | None = None
    tombstones: list[Tombstone] = []


def encode_manifest(manifest: Manifest) -> bytes:
    """Indented JSON, for people to read."""
    return orjson.dumps(msgspec.to_builtins(manifest), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_manifest(data: bytes) -> Manifest:
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidManifest(str(error)) from error


def examine_manifest(key: str, data: bytes) -> list[Problem]:
    """The reasons why these bytes are not a valid manifest of this partition. After bad JSON or bad fields, nothing
    else is checked."""
    problem = diagnose_json(data)
    if problem is not None:
        return [Problem(problem.code, f"the manifest {problem.detail}")]
    record = orjson.loads(data)
    if found := diagnose_fields(record, _REQUIRED, Manifest):
        colon = "" if found[0].code == findings.FIELD_MISSING else ":"  # "lacks ..." continues the sentence
        return [Problem(problem.code, f"the manifest{colon} {problem.detail}") for problem in found]
    problems = []
    manifest = decode_manifest(data)
    if manifest.partition_key != key:
        detail = f"the manifest is for partition {manifest.partition_key!r:.140}"
        problems.append(Problem(findings.MANIFEST_MISMATCH, detail))
    if bare_hex(manifest.checksums.chunks_file) is None:
        detail = f"the manifest's checksums.chunks_file is not sha256:<hex>: {manifest.checksums.chunks_file!r:.80}"
        problems.append(Problem(findings.WRONG_TYPE, detail))
    problems += _examine_time("created_at", manifest.created_at)
    for number, tombstone in enumerate(manifest.tombstones):
        if not tombstone.parent_id and not tombstone.document_id:
            detail = f"the manifest lacks tombstones[{number}].parent_id or tombstones[{number}].document_id"
            problems.append(Problem(findings.FIELD_MISSING, detail))
        if tombstone.tenant_id == "":  # would retire the source for every tenant
            detail = f"the manifest's tombstones[{number}].tenant_id is empty: name the tenant, or leave the field out"
            problems.append(Problem(findings.FIELD_MISSING, detail))
        if tombstone.at is not None:
            problems += _examine_time(f"tombstones[{number}].at", tombstone.at)
    return problems


def examine_times(manifest: Manifest) -> list[Problem]:
    """At most one warning: about the first of the manifest's times that is in the future."""
    stamp = first_in_future([manifest.created_at, *(each.at for each in manifest.tombstones if each.at)])
    name = "created_at" if stamp == manifest.created_at else "tombstones.at"
    return [time_in_future(f"the manifest's {name}", stamp)] if stamp else []


def _examine_time(field: str, stamp: str) -> list[Problem]:
    if is_time(stamp):
        return []
    return [Problem(findings.WRONG_TYPE, f"the manifest's {field} is not an ISO 8601 time: {stamp!r:.60}")]


def committed_checksum(manifest: bytes | None) -> str | None:
    """The bare hex checksum in a manifest; None if it cannot be read."""
    if manifest is None:
        return None
    try:
        return bare_hex(decode_manifest(manifest).checksums.chunks_file)
    except InvalidManifest:
        return None
