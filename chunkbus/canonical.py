"""Byte recipes that every implementation must share: canonical text, canonical JSON, and their hashes.

Touches nothing but its arguments. `docs/contract.md` states the same recipes in words.
"""

import hashlib
import re
from typing import Any

import orjson
import rfc8785

from chunkbus.errors import NotCanonical

# Vertical tab and form feed part lines too: removing them would join two words.
_LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_INVALID = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LEADING = re.compile("[\ufeff\\s]*")
_LARGEST_EXACT_INTEGER = 2**53 - 1


def canonical_text(text: str) -> str:
    """Line breaks as \\n; control characters, lone surrogates and leading byte order marks removed; stripped."""
    text = _LINE_BREAKS.sub("\n", text)
    text = _INVALID.sub("", text).rstrip()
    return _LEADING.sub("", text, count=1)


def canonical_json(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value."""
    try:
        # orjson agrees with RFC 8785 byte for byte on plain values, and is some fifty times faster.
        if _is_plain(value):
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        return rfc8785.dumps(value)
    except (TypeError, UnicodeEncodeError, RecursionError, rfc8785.CanonicalizationError) as error:
        raise NotCanonical(f"not a value that JSON can carry between languages: {error}") from error


def _is_plain(value: Any) -> bool:
    """True where orjson's number and key order are RFC 8785's: no floats, exact integers, ASCII keys."""
    kind: type = value.__class__
    if kind is dict:
        # Most values are strings: asking here saves a call for each.
        return all(
            key.__class__ is str and key.isascii() and (item.__class__ is str or _is_plain(item))
            for key, item in value.items()
        )
    if kind is list or kind is tuple:
        return all(item.__class__ is str or _is_plain(item) for item in value)
    if kind is int:
        return bool(-_LARGEST_EXACT_INTEGER <= value <= _LARGEST_EXACT_INTEGER)
    return kind is str or kind is bool or value is None


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def json_hash(value: Any) -> str:
    """Lower-case hex sha256 of the canonical JSON of a value."""
    return sha256_hex(canonical_json(value))


def text_hash(text: str) -> str:
    """`sha256:` and the lower-case hex sha256 of the text's UTF-8 bytes, as it stands in the chunk."""
    return "sha256:" + sha256_hex(text.encode())


def chunk_object_hash(record: dict[str, Any]) -> str:
    """`sha256:` and the hash of a chunk's canonical JSON without `hashes.chunk_object_hash` itself."""
    hashes = record.get("hashes")
    if isinstance(hashes, dict) and "chunk_object_hash" in hashes:
        record = {**record, "hashes": {k: v for k, v in hashes.items() if k != "chunk_object_hash"}}
    return "sha256:" + json_hash(record)


def bare_hex(digest: str | None) -> str | None:
    """The 64 lower-case hex digits of `sha256:<hex>` or `<hex>`; None for anything else."""
    if digest is None:
        return None
    digits = digest.removeprefix("sha256:").lower()
    return digits if re.fullmatch("[0-9a-f]{64}", digits) else None
