"""Canonical text, canonical JSON and their hashes. Every implementation must produce the same bytes.

Pure functions; `docs/contract.md` describes the same recipes in words.
"""

import hashlib
import re
from typing import Any

import orjson
import rfc8785

from chunksink.chunkbus.errors import NotCanonical

# Vertical tab and form feed separate lines too: removing them would join two words.
_LINE_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_INVALID = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LEADING = re.compile("[\ufeff\\s]*")
_KEPT_ASCII = bytes([ord("\t"), ord("\n"), *range(0x20, 0x7F)])
_PLAIN_SCALARS = frozenset([str, int, bool, type(None)])
_CANONICAL = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


def canonical_text(text: str) -> str:
    """The text with \\n for every line break. Control characters other than tabs, lone surrogates, leading byte order
    marks, and white space at either end are removed."""
    # Checking only the characters that are not plain ASCII is ten times faster than checking every one.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _KEPT_ASCII).decode("utf-8", "surrogatepass")
    if _LINE_BREAKS.search(rest) or _INVALID.search(rest):
        text = _LINE_BREAKS.sub("\n", text)
        text = _INVALID.sub("", text)
    return _LEADING.sub("", text.rstrip(), count=1)


def canonical_json(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value."""
    try:
        # orjson agrees with RFC 8785 byte for byte on plain values, and is some fifty times faster.
        if _is_plain(value):
            return orjson.dumps(value, option=_CANONICAL)
        return rfc8785.dumps(value)
    except (TypeError, UnicodeEncodeError, RecursionError, rfc8785.CanonicalizationError) as error:
        place = _place_without_json(value) or "the value"
        raise NotCanonical(f"{place} has no portable JSON form: {error}") from error


def _place_without_json(value: Any) -> str:
    """The path of the first part that has no portable JSON form, such as `metadata.date`; "" if it is the value itself,
    or nested too deeply to be walked."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for name, member in members:
        try:
            rfc8785.dumps(member)
        except RecursionError:
            return ""
        except (TypeError, UnicodeEncodeError, rfc8785.CanonicalizationError):
            return ".".join(filter(None, (str(name), _place_without_json(member))))
    return ""


def _is_plain(value: Any) -> bool:
    """Whether orjson writes it as RFC 8785 does: only ASCII keys, no floats that are whole or need an exponent. orjson
    itself refuses integers beyond 2^53-1, which a double may not hold exactly."""
    kind = type(value)
    if kind is dict:
        # Fast path: most values are scalars, and a loop costs half as much as a generator.
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                return False
            if type(item) not in _PLAIN_SCALARS and not _is_plain(item):
                return False
        return True
    if kind is list or kind is tuple:
        for item in value:  # noqa: SIM110
            if type(item) not in _PLAIN_SCALARS and not _is_plain(item):
                return False
        return True
    return kind in _PLAIN_SCALARS or (kind is float and 1e-4 <= abs(value) < 1e15 and not value.is_integer())


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def json_hash(value: Any) -> str:
    """Lower-case hex sha256 of the canonical JSON of a value."""
    return sha256_hex(canonical_json(value))


def text_hash(text: str) -> str:
    """`sha256:` and the lower-case hex sha256 of the text's UTF-8 bytes."""
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
