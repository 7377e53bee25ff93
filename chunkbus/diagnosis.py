"""Explains why bytes are not a valid record.

The contract is stricter than parsers (duplicate keys, lone surrogates). A fast check proves that most lines are clean;
the slow functions here examine only the rest.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NoReturn

import msgspec
import orjson
from msgspec.structs import fields

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import CHUNK_VERSION
from chunksink.chunkbus.findings import Problem, Severity

DATA_FILES = {
    b"PAR1": 'Parquet file (write JSON instead: df.to_json(path, orient="records", lines=True))',
    **{
        bytes([0x80, protocol]): "Python pickle (write JSON instead, one record on each line)"
        for protocol in range(2, 6)
    },
}
"""Kinds of binary files of records, by their first bytes."""

_TOLERANCE = timedelta(minutes=5)
_KINDS = {type(None): "null", bool: "a boolean", float: "a number", str: "a string", list: "an array"}


def parse_time(stamp: str) -> datetime:
    """An ISO 8601 timestamp as a UTC instant; without a zone it is UTC. ValueError if it is not a timestamp."""
    moment = datetime.fromisoformat(stamp.upper())  # RFC 3339 allows `t` and `z`
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:  # before the year 1 or after 9999
        raise ValueError(str(error)) from error


@lru_cache(maxsize=64)
def is_time(stamp: str) -> bool:
    try:
        parse_time(stamp)
    except ValueError:
        return False
    return True


def first_in_future(stamps: Iterable[str]) -> str | None:
    """The first of these times that is more than five minutes ahead of the clock."""
    limit = datetime.now(UTC) + _TOLERANCE
    recent = (limit - timedelta(days=2)).date().isoformat()  # older times are compared as text only
    return next((stamp for stamp in stamps if stamp > recent and is_time(stamp) and parse_time(stamp) > limit), None)


def time_in_future(name: str, stamp: str) -> Problem:
    """Only a warning, because this machine's clock must not decide whether a partition is accepted."""
    effect = "Until that time, newer versions of its sources count as older"
    detail = f"{name} is in the future: {stamp!r:.60}. {effect}"
    return Problem(findings.TIME_IN_FUTURE, detail, Severity.WARNING)


def proves_unique_keys(line: bytes, record: dict[str, Any]) -> bool:
    """True only if no key of the line occurs twice; False means that the line needs a closer check.

    If a key occurs twice, parsing keeps the last one, so encoding the record again cannot give the line. White space
    between tokens may differ, so both sides are compared without it. A line with \\r needs the closer check: CR LF line
    ends are reported.
    """
    try:
        written = orjson.dumps(record)
    except orjson.JSONEncodeError:  # orjson reads deeper nesting than it writes
        return False
    return written == line or (b"\r" not in line and _without_white_space(written) == _without_white_space(line))


def _without_white_space(line: bytes) -> bytes:
    return line.translate(None, b" \t\n")


def diagnose_json(data: bytes) -> Problem | None:
    """Why these bytes are not one clean JSON object; None if they are."""
    if data.startswith(b"\xef\xbb\xbf"):
        return Problem(findings.ENCODING, "begins with a byte order mark")
    if (kind := next((kind for start, kind in DATA_FILES.items() if data.startswith(start)), None)) is not None:
        return Problem(findings.ENCODING, f"is a {kind}, not JSON")
    if b"\x00" in data:
        return Problem(findings.ENCODING, f"contains a NUL byte at byte {data.index(0) + 1}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return Problem(findings.ENCODING, f"is not UTF-8 at byte {error.start + 1}: {error.reason}")
    if not text.strip():
        return Problem(findings.JSON_PARSE, "is empty")
    try:
        value = json.loads(  # with float, because Python refuses to read an int of over 4,300 digits
            text, object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant, parse_int=float
        )
    except RecursionError:
        return Problem(findings.JSON_PARSE, "is nested too deeply")
    except json.JSONDecodeError as error:
        message = error.msg.removesuffix(" at")
        return Problem(findings.JSON_PARSE, f"is not valid JSON: {message} at character {error.pos + 1}")
    except ValueError as error:
        return Problem(findings.JSON_PARSE, f"is not valid JSON: {error}")
    if not isinstance(value, dict):
        return Problem(findings.JSON_PARSE, f"is not a JSON object but {_KINDS[type(value)]}")
    if text.endswith("\r"):
        return Problem(findings.ENCODING, "ends with CR LF")
    try:
        orjson.loads(data)  # stricter than Python's parser
    except orjson.JSONDecodeError as error:
        lone_surrogate = "surrogate" in str(error)
        code = findings.ENCODING if lone_surrogate else findings.JSON_PARSE
        return Problem(code, f"is not valid JSON: {error.msg} at character {error.pos + 1}")
    return None


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"key {twice!r:.80} occurs twice in one object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it contains {name}; write null instead")


def diagnose_fields(record: dict[str, Any], required: tuple[str, ...], type_: type[msgspec.Struct]) -> list[Problem]:
    """An unknown `schema_version` of a parsed record; else missing required fields; else fields of a wrong type."""
    version = record.get("schema_version")
    if version is not None and version != CHUNK_VERSION:
        return [Problem(findings.UNSUPPORTED_VERSION, f"schema_version is {version!r:.80}, not {CHUNK_VERSION!r}")]
    missing = [path for path in required if _is_missing(record, path.split("."))]
    problems = [Problem(findings.FIELD_MISSING, f"lacks {path}") for path in missing]
    return problems or [Problem(findings.WRONG_TYPE, reason) for reason in _wrong_types(record, type_)]


def _wrong_types(record: dict[str, Any], type_: type[msgspec.Struct]) -> Iterator[str]:
    for name, single in _single_fields(type_).items():
        if name not in record:
            continue
        try:
            msgspec.convert(record, single)
        except msgspec.ValidationError as error:
            reason = str(error)
            whole = "Expected `int" in reason and "got `float`" in reason
            yield f"{reason}: write whole numbers without a fraction" if whole else reason


@cache
def _single_fields(type_: type[msgspec.Struct]) -> dict[str, type[msgspec.Struct]]:
    """A separate type for each field, because msgspec stops at the first error and every field must be checked."""
    return {field.name: msgspec.defstruct("Single", [(field.name, field.type)]) for field in fields(type_)}


def _is_missing(value: Any, path: list[str]) -> bool:
    """Whether the field is absent, or an empty string (a text may be empty). False if its parent is missing, null or of
    a wrong type: other checks report that."""
    for name in path[:-1]:
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        return False
    return value.get(path[-1], "") == "" and (path[-1] != "text" or "text" not in value)
