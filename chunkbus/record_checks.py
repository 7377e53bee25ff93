"""Checks one line of a chunks file: the typed chunk, if the line can be decoded, and the problems found."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

import msgspec
import orjson

from chunksink.chunkbus import findings
from chunksink.chunkbus.canonical import bare_hex
from chunksink.chunkbus.chunk import CHUNK_VERSION, FAMILY_FIELDS, Chunk, Record, Span
from chunksink.chunkbus.diagnosis import diagnose_fields, diagnose_json, is_time, proves_unique_keys
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
# Reused for every line. If another thread overwrites it, it differs from the line, and the slower check follows.
_written = bytearray()
_loads = orjson.loads
# Some parsers refuse numbers of 300 digits. If every hundredth byte of the line is sampled, such a number covers three
# samples. So a line whose samples never have three digits in a row contains no such number.
_long_number = re.compile(rb"[0-9]{3}").search
# Every parser reads 900 levels, and each level takes two bytes, its brackets. So lines that are shorter than this
# without their text are not checked for nesting.
_DEEP_BYTES = 1800
_MAX_INTEGER = 2**53 - 1  # the largest integer that every JSON parser reads exactly; larger ones are not indexed


class RecordCheck(Protocol):
    """Further checks of a decoded chunk."""

    def problems(self, record: Record) -> Iterable[Problem]: ...


@dataclass(frozen=True)
class Rules:
    """What the configuration adds to the contract."""

    require_source_checksum: bool = False
    fields: RecordCheck | None = None


CONTRACT = Rules()


def examine_line(line: bytes, rules: Rules = CONTRACT) -> tuple[Chunk | None, tuple[Problem, ...]]:
    """The chunk on a line (without its line break), and its problems, which may be errors. None if the line is too
    long, is not clean JSON, or does not fit the contract's types and version."""
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
    if line.rfind(b"\\u0000") >= 0:  # four times as fast as `in`, which looks for the frequent `0` first
        problems += [Problem(findings.ENCODING, f"{name} contains U+0000") for name in _fields_with_nul(chunk)]
    if rules.fields is not None:
        problems += rules.fields.problems(_loads(line))
    return chunk, tuple(problems)


def _fields_with_nul(chunk: Chunk) -> list[str]:
    """Text and identity fields that contain U+0000; some engines truncate a text there."""
    fields: list[tuple[str, object]] = [
        ("text", chunk.text),
        ("chunk_id", chunk.chunk_id),
        ("document_id", chunk.document_id),
        ("parent_id", chunk.parent_id),
        ("tenant_id", chunk.tenant_id),
        ("the source's name", chunk.provenance.source()),
    ]
    if chunk.metadata is not None:
        fields += [(f"metadata.{name}", chunk.metadata.get(name)) for name in FAMILY_FIELDS]
    return [name for name, value in fields if isinstance(value, str) and "\0" in value]


def _may_be_deep(line: bytes) -> bool:
    """False only if every parser accepts the line's nesting."""
    return line.count(b"{") + line.count(b"[") > _DEEP_BYTES // 2


def _diagnose(line: bytes, refusal: str) -> tuple[Problem, ...]:
    """All reasons that can be found, else the parser's own message."""
    problem = diagnose_json(line)
    if problem is not None:
        return (problem,)
    return tuple(diagnose_fields(_loads(line), _REQUIRED, Chunk)) or (Problem(findings.JSON_PARSE, refusal),)


def _examine_chunk(chunk: Chunk, require_source_checksum: bool) -> list[Problem]:
    problems = []
    provenance, metadata, checksum = chunk.provenance, chunk.metadata, chunk.provenance.source_checksum
    if not provenance.source():
        problems.append(Problem(findings.FIELD_MISSING, "lacks provenance.source_uri or provenance.source_ref"))
    if provenance.parser is None and not (provenance.parser_name and provenance.parser_version):
        problems.append(Problem(findings.FIELD_MISSING, "lacks provenance.parser {parser_name, parser_version}"))
    if provenance.canonicalizer is None and not (provenance.canonicalizer_name and provenance.canonicalizer_version):
        missing = "provenance.canonicalizer {canonicalizer_name, canonicalizer_version}"
        problems.append(Problem(findings.FIELD_MISSING, f"lacks {missing}"))
    if require_source_checksum and not checksum:
        problems.append(Problem(findings.SOURCE_CHECKSUM_MISSING, "lacks provenance.source_checksum"))
    if checksum and not _is_sha256(checksum):
        detail = f"provenance.source_checksum is not sha256:<64 hex digits> but {checksum!r:.80}"
        problems.append(Problem(findings.WRONG_TYPE, detail, Severity.WARNING))
    if chunk.created_at is not None and not is_time(chunk.created_at):
        problems.append(Problem(findings.WRONG_TYPE, f"created_at is not an ISO 8601 time: {chunk.created_at!r:.60}"))
    for name in FAMILY_FIELDS:
        if metadata is not None and (value := metadata.get(name)) is not None and not isinstance(value, str):
            detail = f"metadata.{name}: expected `str | null`, got {value!r:.60}; it identifies the chunk's family"
            problems.append(Problem(findings.WRONG_TYPE, detail))
    if chunk.hashes is not None and chunk.hashes.text_hash is not None:
        problems += _check_text_hash(chunk.text, chunk.hashes.text_hash)
    if chunk.span is not None:
        problems += _check_span(chunk.span)
    if chunk.chunk_index is not None and chunk.chunk_index > _MAX_INTEGER:
        problems.append(_impossible(f"chunk_index is above {_MAX_INTEGER}"))
    return problems


@lru_cache(maxsize=64)  # neighbouring chunks mostly share their checksum
def _is_sha256(checksum: str) -> bool:
    return bare_hex(checksum) is not None


def _check_span(span: Span) -> Iterator[Problem]:
    pages, characters = span.pages, span.char_range
    if pages is not None and not _is_range(pages.page_start, pages.page_end):
        yield _impossible(f"span.pages is from {pages.page_start!r:.40} to {pages.page_end!r:.40}")
    if characters is not None and not _is_range(characters.char_start, characters.char_end):
        yield _impossible(f"span.char_range is from {characters.char_start!r:.40} to {characters.char_end!r:.40}")


def _impossible(detail: str) -> Problem:
    """A warning only, because places are best effort."""
    return Problem(findings.PLACE_IMPOSSIBLE, detail, Severity.WARNING)


def _is_range(start: int | None, end: int | None) -> bool:
    first, last = 0 if start is None else start, _MAX_INTEGER if end is None else end
    return 0 <= first <= last <= _MAX_INTEGER


def _check_text_hash(text: str, stored: str) -> list[Problem]:
    actual = sha256(text.encode()).hexdigest()
    if stored == "sha256:" + actual:  # the usual case, and a fast check
        return []
    digits = bare_hex(stored)
    if digits is None:
        detail = f"hashes.text_hash is not sha256:<64 hex digits> but {stored!r:.80}"
        return [Problem(findings.TEXT_HASH_MISMATCH, detail, Severity.WARNING)]
    if digits != actual:
        return [Problem(findings.TEXT_HASH_MISMATCH, f"hashes.text_hash is {stored}, the text's is sha256:{actual}")]
    return []
