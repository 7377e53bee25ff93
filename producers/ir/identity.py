"""Who an IR record is: the formulas of the canonical document, and the check that a record keeps to them. Pure."""

import posixpath
import re
import unicodedata

from chunksink.chunkbus.canonical import sha256_hex
from chunksink.chunkbus.identity import normalise_source
from chunksink.producers.errors import IDENTITY_MISMATCH, RecordRefused

FOLDER_BYTES = 468
"""Engines cut filterable values here, but not what they are compared with."""

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_DIGEST = 16


def canonical_path(path: str) -> str:
    """The absolute path as identity takes it: without `.`, `..` and doubled separators.

    A Windows path is lower-case with backslashes, as that system compares names; elsewhere case says something.
    """
    if not _WINDOWS.match(path):
        return normalise_source(path) if path.startswith("/") else path
    return normalise_source(path).lower().replace("/", "\\")


def content_hash(data: bytes) -> str:
    """Of the file's bytes."""
    return sha256_hex(data)


def parent_id(path: str) -> str:
    """The family: the same before and after an edit. `path` is canonical."""
    return sha256_hex(path.encode())


def record_id(path: str, content: str, chunk_index: int) -> str:
    """The record: another one with every edit. `path` is canonical."""
    return sha256_hex(f"{path}|{content}|{chunk_index}".encode())


def check_identity(path: str, own_id: str, own_parent: str, content: str, chunk_index: int) -> None:
    """Refuses ids that are not the formulas' for the path. A relative path is for display and proves nothing.

    Specifications differ in the separator of a normalised Windows path: one spelling has to give both ids.
    """
    if not is_absolute(path):
        return
    canonical = canonical_path(path)
    spellings = {canonical, canonical.replace("\\", "/")} if _WINDOWS.match(path) else {canonical}
    kept = [spelling for spelling in sorted(spellings, reverse=True) if parent_id(spelling) == own_parent]
    if not kept:
        raise RecordRefused(
            IDENTITY_MISMATCH, f"parent_id is {own_parent}, sha256 of {canonical!r:.200} is {parent_id(canonical)}"
        )
    expected = record_id(kept[0], content, chunk_index)
    if own_id != expected:
        raise RecordRefused(
            IDENTITY_MISMATCH,
            f"id is {own_id}, sha256 of path|content_hash|chunk_index is {expected} for {path!r:.200}",
        )


def is_absolute(path: str) -> bool:
    return path.startswith("/") or _WINDOWS.match(path) is not None


def source_folder_token(path: str) -> str | None:
    """The folder of a path for facets. A longer one than engines filter by keeps its beginning and gets a digest, so
    that two long folders stay two."""
    folder = posixpath.dirname(path.replace("\\", "/") if _WINDOWS.match(path) else path)
    if _size(folder) <= FOLDER_BYTES:
        return folder or None
    digest = "~" + sha256_hex(folder.encode())[:_DIGEST]
    room = FOLDER_BYTES - len(digest)
    for position, character in enumerate(folder):
        room -= _size(character)
        if room < 0:
            return folder[:position].rstrip() + digest
    return folder + digest


def _size(text: str) -> int:
    """Bytes of a string, or of the decomposed, folded form that engines measure, whichever are more."""
    if text.isascii():
        return len(text)
    return sum(max(len(c.encode()), len(unicodedata.normalize("NFKD", c).lower().encode())) for c in text)


def fits_facet(folder: str) -> bool:
    return _size(folder) <= FOLDER_BYTES
