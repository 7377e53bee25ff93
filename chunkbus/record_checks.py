"""Checks one line of a chunks file and returns the typed chunk, or every reason why it is refused."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

import msgspec
import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex
from chunksink.chunkbus.chunk import CHUNK_VERSION, NAMES, Chunk, Provenance, Record, Span
from chunksink.chunkbus.diagnosis import diagnose_fields, diagnose_json, parse_time, proves_unique_keys
from chunksink.chunkbus.findings import Problem, Severity

MAX_LINE_BYTES = 8 * 2**20

_REQUIRED = (
    "schema_version",
    "chunk_id",
    "document_id",
    "text",
    "provenance",
    "provenance.inputs",
    "provenance.parser.parser_name",
    "provenance.parser.parser_version",
    "provenance.canonicalizer.canonicalizer_name",
    "provenance.canonicalizer.canonicalizer_version",
)
_decode = msgspec.json.Decoder(Chunk).decode
_encode_into = msgspec.json.Encoder().encode_into
_written = bytearray()  # reused for every line; safe with threads, because only equal bytes are accepted
_loads = orjson.loads
# Some parsers refuse numbers of 300 digits. Sampling every hundredth byte finds three digits in a row in such a number.
_long_number = re.compile(rb"[0-9]{3}").search
_DEEP_BYTES = 1800  # a shorter line cannot be nested too deeply for any parser
_CLEAN: tuple[Problem, ...] = ()
_LARGEST = 2**53 - 1  # the largest integer that is exact in every JSON parser; indexes omit larger ones


class RecordCheck(Protocol):
    """Further checks of a chunk that is valid."""

    def problems(self, record: Record) -> Iterable[Problem]: ...


@dataclass(frozen=True)
class Rules:
    """What the configuration adds to the contract."""

    require_source_checksum: bool = False
    fields: RecordCheck | None = None


CONTRACT = Rules()


def examine_line(line: bytes, rules: Rules = CONTRACT) -> tuple[Chunk | None, tuple[Problem, ...]]:
    """The chunk on a line (without its line break) and its problems; None instead of a chunk that cannot be trusted."""
    if len(line) > MAX_LINE_BYTES:
        return None, (Problem(findings.LINE_TOO_LONG, f"is longer than {MAX_LINE_BYTES // 2**20} MiB"),)
    try:
        chunk = _decode(line)
        # If encoding the chunk reproduces the line, no key occurs twice and there are no unknown fields.
        # This is the case for lines of our writer.
        _encode_into(chunk, _written)
        is_long = len(line) - len(chunk.text) > _DEEP_BYTES
        if _written != line or _long_number(line[::100]) or (is_long and _may_be_deep(line)):
            record = _loads(line)
            if not proves_unique_keys(line, record):
                problem = diagnose_json(line)
                if problem is not None:
                    return None, (problem,)
    except (ValueError, RecursionError) as error:  # parsers raise no other errors for a bad line
        return None, _diagnose(line, str(error))
    if chunk.schema_version != CHUNK_VERSION:
        return None, _diagnose(line, "unsupported schema_version")
    problems = _examine_chunk(chunk, rules.require_source_checksum)
    if rules.fields is not None:
        problems += tuple(rules.fields.problems(_loads(line)))
    return chunk, problems


def _fields_with_nul(chunk: Chunk) -> tuple[str, ...]:
    """Text and identity fields that contain U+0000; some engines truncate a text there."""
    metadata = chunk.metadata or {}
    fields = {
        "text": chunk.text,
        "chunk_id": chunk.chunk_id,
        "document_id": chunk.document_id,
        "parent_id": chunk.parent_id,
        "tenant_id": chunk.tenant_id,
        "the source's name": chunk.provenance.source(),
        **{f"metadata.{name}": metadata.get(name) for name in NAMES},
    }
    return tuple(name for name, value in fields.items() if isinstance(value, str) and "\0" in value)


def _may_be_deep(line: bytes) -> bool:
    """False only if every parser accepts the line's nesting."""
    return line.count(b"{") + line.count(b"[") > _DEEP_BYTES // 2


def _diagnose(line: bytes, refusal: str) -> tuple[Problem, ...]:
    """All reasons that can be found, else the parser's own message."""
    problem = diagnose_json(line)
    if problem is not None:
        return (problem,)
    return tuple(diagnose_fields(_loads(line), _REQUIRED, Chunk)) or (Problem(findings.JSON_PARSE, refusal),)


def _examine_chunk(chunk: Chunk, require_source_checksum: bool) -> tuple[Problem, ...]:
    hashes = chunk.hashes
    stored = hashes.text_hash if hashes is not None else None
    if (
        (stored is None or stored == "sha256:" + sha256(chunk.text.encode()).hexdigest())
        and _has_origin(chunk.provenance)
        and _may_be_checksum(chunk.provenance.source_checksum, require_source_checksum)
        and "\0" not in chunk.text
        and "\0" not in chunk.chunk_id
        and "\0" not in chunk.document_id
        and (chunk.parent_id is None or "\0" not in chunk.parent_id)
        and (chunk.tenant_id is None or "\0" not in chunk.tenant_id)
        and (chunk.created_at is None or _is_time(chunk.created_at))
        and (chunk.chunk_index is None or chunk.chunk_index <= _LARGEST)
        and (chunk.span is None or not _impossible_ranges(chunk.span))
        and (chunk.metadata is None or _owner_is_text(chunk.metadata))
    ):
        return _CLEAN
    return tuple(_find_problems(chunk, stored, require_source_checksum))


def _has_origin(provenance: Provenance) -> bool:
    source = provenance.source_uri or provenance.source_ref
    return bool(
        source
        and "\0" not in source
        and (provenance.parser is not None or (provenance.parser_name and provenance.parser_version))
        and (
            provenance.canonicalizer is not None or (provenance.canonicalizer_name and provenance.canonicalizer_version)
        )
    )


@lru_cache(maxsize=64)  # neighbouring chunks mostly share their checksum
def _may_be_checksum(checksum: str | None, is_required: bool) -> bool:
    return bare_hex(checksum) is not None if checksum else not is_required


@lru_cache(maxsize=64)
def _is_time(stamp: str) -> bool:
    try:
        parse_time(stamp)
    except (ValueError, OverflowError):
        return False
    return True


def _find_problems(chunk: Chunk, stored: str | None, require_source_checksum: bool) -> list[Problem]:
    problems = []
    provenance = chunk.provenance
    if not provenance.source():
        problems.append(Problem(findings.FIELD_MISSING, "lacks provenance.source_uri or provenance.source_ref"))
    if not all(provenance.parser_pair()):
        problems.append(Problem(findings.FIELD_MISSING, "lacks provenance.parser {parser_name, parser_version}"))
    if not all(provenance.canonicalizer_pair()):
        missing = "provenance.canonicalizer {canonicalizer_name, canonicalizer_version}"
        problems.append(Problem(findings.FIELD_MISSING, f"lacks {missing}"))
    if require_source_checksum and not provenance.source_checksum:
        problems.append(Problem(findings.SOURCE_CHECKSUM_MISSING, "lacks provenance.source_checksum"))
    if provenance.source_checksum and bare_hex(provenance.source_checksum) is None:
        detail = f"provenance.source_checksum is not sha256:<64 hex digits> but {provenance.source_checksum!r:.80}"
        problems.append(Problem(findings.WRONG_TYPE, detail, Severity.WARNING))
    problems += [Problem(findings.ENCODING, f"{name} contains U+0000") for name in _fields_with_nul(chunk)]
    if chunk.created_at is not None and not _is_time(chunk.created_at):
        problems.append(Problem(findings.WRONG_TYPE, f"created_at is not an ISO 8601 time: {chunk.created_at!r:.60}"))
    for name, value in (chunk.metadata or {}).items():
        if name in NAMES and value is not None and not isinstance(value, str):
            detail = f"metadata.{name}: expected `str | null`, got {value!r:.60}; it identifies the owner of the chunk"
            problems.append(Problem(findings.WRONG_TYPE, detail))
    if stored is not None:
        problems += _check_text_hash(chunk.text, stored)
    impossible = _impossible_ranges(chunk.span) if chunk.span is not None else []
    if chunk.chunk_index is not None and chunk.chunk_index > _LARGEST:
        impossible.append(f"chunk_index is above {_LARGEST}")
    return problems + [Problem(findings.PLACE_IMPOSSIBLE, detail, Severity.WARNING) for detail in impossible]


def _impossible_ranges(span: Span) -> list[str]:
    """Impossible page and character ranges. They are only warnings, because spans are best effort."""
    details = []
    pages, characters = span.pages, span.char_range
    if pages is not None and not _is_range(pages.page_start, pages.page_end):
        details.append(f"span.pages is from {pages.page_start!r:.40} to {pages.page_end!r:.40}")
    if characters is not None and not _is_range(characters.char_start, characters.char_end):
        details.append(f"span.char_range is from {characters.char_start!r:.40} to {characters.char_end!r:.40}")
    return details


def _owner_is_text(metadata: Record) -> bool:
    """False if `tenant_id` or `parent_id` is not text: it would be ignored, and the owner would be wrong."""
    for name in NAMES:
        value = metadata.get(name)
        if value is not None and (not isinstance(value, str) or "\0" in value):
            return False
    return True


def _is_range(start: int | None, end: int | None) -> bool:
    first, last = 0 if start is None else start, _LARGEST if end is None else end
    return 0 <= first <= last <= _LARGEST


def _check_text_hash(text: str, stored: str) -> list[Problem]:
    if not re.fullmatch("(sha256:)?[0-9A-Fa-f]{64}", stored):
        detail = f"hashes.text_hash is not sha256:<64 hex digits> but {stored!r:.80}"
        return [Problem(findings.TEXT_HASH_MISMATCH, detail, Severity.WARNING)]
    actual = sha256(text.encode()).hexdigest()
    if stored.lower().removeprefix("sha256:") != actual:
        return [Problem(findings.TEXT_HASH_MISMATCH, f"hashes.text_hash is {stored}, the text's is sha256:{actual}")]
    return []
