"""Ids of chunks, documents and families. Pure functions; `docs/contract.md` has the recipes.

A family is all chunks of one source of one tenant. Its key never depends on content, so it stays the same after an
edit. Ids of documents change with the version. Ids of chunks do, too, except those of `derive_lasting_chunk_ids`.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from unicodedata import normalize
from urllib.parse import unquote, urlsplit, urlunsplit

from chunksink.chunkbus.canonical import bare_hex, canonical_text, json_hash, sha256_hex

_NORMAL_PATH = re.compile(r"/?[^/.:\\][^/:\\]*(?:/[^/.:\\][^/:\\]*)*")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|file:/")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_HEX64 = re.compile("[0-9a-f]{64}")


def unicode_forms(text: str) -> list[str]:
    """The text as it is, and in both Unicode forms. macOS stores accents in file names differently from what keyboards
    type."""
    return list(dict.fromkeys([text, normalize("NFC", text), normalize("NFD", text)]))


def normalise_source(source: str) -> str:
    """One spelling for each source: a path without `.`, `..` or doubled slashes, or a URL without a fragment.

    Upper and lower case in paths, and their Unicode form, are kept: names that differ only in these can be different
    files. Schemes, hosts and drive letters become lower-case.
    """
    if _NORMAL_PATH.fullmatch(source):  # the usual case, and a fast check
        return source
    if _WINDOWS_PATH.match(source):
        return _normalise_path(source.replace("\\", "/"))
    if not _URL.match(source):
        return _normalise_path(source)
    try:
        parts = urlsplit(source)
    except ValueError:  # not a valid URL, but still a stable name
        return source
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = _unquote(parts.path + ("?" + parts.query if parts.query else ""))  # the `?` belongs to the file's name
        windows = re.match(r"/[A-Za-z]:/", path)
        return _normalise_path(path[1:] if windows else path)
    path = parts.path or ("/" if parts.netloc else "")
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, user + at + host.lower(), path, parts.query, ""))


def _unquote(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError:  # not UTF-8: two such names must not become equal
        return path


def _normalise_path(path: str) -> str:
    if not path:
        return ""
    if re.match("[A-Za-z]:/", path):
        path = path[0].lower() + path[1:]
    network = path.startswith("//") and not path.startswith("///")
    normal = posixpath.normpath(path)
    return normal if network else re.sub("^//", "/", normal)


def derive_document_id(
    source: str | None, source_checksum: str | None, title: str | None = None, tenant: str | None = None
) -> str:
    """Stable id of one version of a source: from its name and checksum or, if it has no name, from checksum and title.

    The tenant is part of it: two tenants with the same file must not share chunk ids.
    """
    checksum = bare_hex(source_checksum) or source_checksum
    name = normalise_source(source) if source else None
    version = [name, checksum] if name else [None, checksum, title]
    return json_hash(version if tenant is None else [*version, tenant])


def derive_chunk_id(document_id: str, span_key: str | int, text_hash: str) -> str:
    """Stable id of a chunk from its document, its place (a span key, else its index) and its text."""
    return json_hash([document_id, span_key, text_hash])


def derive_lasting_chunk_ids(tenant: str | None, parent_id: str, texts: Iterable[str]) -> Iterator[str]:
    """Ids for the chunks of a family, in order. A chunk whose text stays the same keeps its id; equal texts are
    numbered."""
    earlier = Counter[str]()
    for text in map(canonical_text, texts):
        yield json_hash([tenant, parent_id, text, earlier[text]])
        earlier[text] += 1


def source_name(record: Mapping[str, Any]) -> str | None:
    """`source_uri`, else `source_ref`, of the provenance; None if both are missing."""
    provenance = record.get("provenance")
    if isinstance(provenance, Mapping):
        for field in ("source_uri", "source_ref"):
            value = provenance.get(field)
            if isinstance(value, str) and value:
                return value
    return None


@lru_cache(maxsize=256)
def resolve_parent_id(own: str | None, source: str | None, document_id: str) -> str:
    """The record's own `parent_id`, else the hash of its source's name, else of its `document_id`."""
    if own:
        return own
    return sha256_hex(((normalise_source(source) if source else "") or document_id).encode())


def parent_id(record: Mapping[str, Any]) -> str:
    return resolve_parent_id(own_field(record, "parent_id"), source_name(record), str(record["document_id"]))


def tenant_id(record: Mapping[str, Any]) -> str | None:
    return own_field(record, "tenant_id")


def own_field(record: Mapping[str, Any], field: str) -> str | None:
    """A string field of the record, else of its metadata; an empty one counts as absent."""
    for group in (record, record.get("metadata")):
        if isinstance(group, Mapping):
            value = group.get(field)
            if isinstance(value, str) and value:
                return value
    return None


def family_key(parent: str, tenant: str | None) -> str:
    """The `parent_id` that sinks store: 64 lower-case hex digits, different for each tenant."""
    if tenant is None and _HEX64.fullmatch(parent):
        return parent
    return json_hash([tenant, parent])


def tenant_key(tenant: str | None) -> str | None:
    """The value by which sinks filter tenants. A hash, because some engines ignore case and would confuse the tenants
    `A` and `a`."""
    return None if tenant is None else sha256_hex(tenant.encode())
