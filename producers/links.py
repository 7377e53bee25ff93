"""The link artifact of a partition: `links/<key>.jsonl` below the bus root, one link a line.

Made from the partition's chunks alone, so it can be made again at any time, and carried-over families keep their
links. A target is resolved where the partition holds a document of that name, or of one that the address stands for.
"""

import os
import posixpath
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from sqlite3 import Connection
from unicodedata import normalize

import orjson

from chunkbus.chunk import Record
from chunkbus.layout import BusRoot, check_partition_key
from chunkbus.reader import read_partition
from producers.markdown.links import LinkKind, note_of, targets

_OF_A_FOLDER = ("index.html", "index.md", "README.md")
_NOTE = """
insert into notes values (?, ?, ?)
on conflict (name) do update set document = excluded.document, uri = case when uri = excluded.uri then uri end
"""
_HIDDEN = (".md", ".mdx", ".markdown", ".html")


def links_file(root: BusRoot, key: str) -> Path:
    return root.path / "links" / f"{check_partition_key(key)}.jsonl"


def drop_links(root: BusRoot, key: str) -> None:
    """For who writes the partition, so that a kill leaves none, not an old one; and what one before has left."""
    path = links_file(root, key)
    path.unlink(missing_ok=True)
    left = re.compile(rf"\.{re.escape(key)}\.[0-9a-f]{{16}}\.new")
    for entry in path.parent.glob(".*.new"):
        if left.fullmatch(entry.name):
            entry.unlink(missing_ok=True)


def write_links(root: BusRoot, key: str, tables: Connection) -> int:
    """Writes the artifact anew and returns how many links it holds."""
    _note_documents(root, key, tables)
    path = links_file(root, key)
    path.parent.mkdir(exist_ok=True)
    new = path.with_name(f".{key}.{secrets.token_hex(8)}.new")
    count = 0
    try:
        with new.open("xb") as file:
            for _, record in read_partition(root, key):
                for link in _links(record):
                    target, document = _resolve(tables, record, link)
                    line = {
                        "source_document_id": record["document_id"],
                        "source_uri": record["provenance"].get("source_uri"),
                        "chunk_id": record["chunk_id"],
                        "tenant_id": record.get("tenant_id"),
                        "url": link["url"],
                        "link_type": link["link_type"],
                        "target_uri": target,
                        "target_document_id": document,
                    }
                    file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # who writes the partition again dropped it, and writes its own
            new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    return count


def _links(record: Record) -> Iterator[Record]:
    """Those of our own form: chunks of others may have anything there."""
    links = (record.get("metadata") or {}).get("links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and all(isinstance(link.get(name), str) for name in ("url", "link_type")):
            yield link


def _resolve(tables: Connection, record: Record, link: Record) -> tuple[str | None, str | None]:
    """Name and document of what it leads to; without the latter where the partition has none."""
    stated = link.get("target_uri") if isinstance(link.get("target_uri"), str) else None
    names = [stated] if stated else []
    if link["link_type"] == LinkKind.DOCUMENT:
        names += targets(link["url"], record["provenance"].get("source_uri") or "")
    for name in dict.fromkeys(names):
        for possible in _stands_for(name):
            if (document := _document(tables, record.get("tenant_id"), possible)) is not None:
                return possible, document
    note = note_of(link["url"]) if link["link_type"] == LinkKind.DOCUMENT else None
    return (note and _only_note(tables, record.get("tenant_id"), note)) or (stated, None)


def _stands_for(name: str) -> Iterator[str]:
    """What an address of that name may lead to, itself first: sites show a page for its folder and hide suffixes, and
    sources in Markdown link to the pages that are made of them."""
    yield name
    stem, suffix = posixpath.splitext(name)
    folder, last = posixpath.split(stem)
    if suffix.lower() in (".html", ".htm"):
        yield from (f"{stem}{other}" for other in _HIDDEN[:-1])
        if last == "index":
            yield posixpath.join(folder, "README.md")
        return
    yield from (posixpath.join(name, page) for page in _OF_A_FOLDER)
    if name:
        yield from (f"{name}{hidden}" for hidden in _HIDDEN)


def _note_documents(root: BusRoot, key: str, tables: Connection) -> None:
    tables.execute("delete from documents")
    tables.execute("delete from notes")
    last: tuple[bytes, str] | None = None
    for _, record in read_partition(root, key):
        uri = record["provenance"].get("source_uri")
        if uri and (row := (_key(record.get("tenant_id"), uri), record["document_id"])) != last:
            tables.execute("insert or replace into documents values (?, ?)", row)
            for name in _names_of(uri):
                note = (_key(record.get("tenant_id"), name), uri, row[1])
                tables.execute(_NOTE, note)
            last = row


def _names_of(uri: str) -> Iterator[str]:
    """What a link by name may say, in whatever case: its file, also without the suffix of a note."""
    file = _folded(posixpath.basename(uri))
    yield file
    stem, suffix = posixpath.splitext(file)
    if suffix in _HIDDEN:
        yield stem


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _key(tenant: str | None, name: str) -> bytes:
    return orjson.dumps([tenant, name])


def _document(tables: Connection, tenant: str | None, uri: str) -> str | None:
    row = tables.execute("select document from documents where name = ?", [_key(tenant, uri)]).fetchone()
    return None if row is None else str(row[0])


def _only_note(tables: Connection, tenant: str | None, note: str) -> tuple[str, str] | None:
    """Name and document of the only source that is called so, wherever it lies."""
    key = _key(tenant, _folded(note))
    row = tables.execute("select uri, document from notes where name = ? and uri is not null", [key]).fetchone()
    return None if row is None else (str(row[0]), str(row[1]))
