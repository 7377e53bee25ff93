"""Where links lead: to the source of that name, or to one that the address stands for, in any partition that an ingest
wrote.
"""

import os
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from sqlite3 import Connection
from urllib.parse import urldefrag

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.diagnose import parse_time
from chunksink.chunkbus.identity import source_name, tenant_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import decode_manifest
from chunksink.chunkbus.reader import open_partition, read_lines
from chunksink.chunkbus.signature import Signature
from chunksink.producers.called import HIDDEN, also_called, called_by
from chunksink.producers.families import family_of
from chunksink.producers.markdown.links import LinkKind, targets
from chunksink.producers.memory import Memory
from chunksink.producers.shelves import Shelves

_OF_A_FOLDER = ("index.html", "index.md", "README.md")
_OF_WEB = (LinkKind.EXTERNAL, LinkKind.CONFLUENCE)
_AT_HAND = 8192
_EARLIEST = datetime.min.replace(tzinfo=UTC)
NO_TENANT = ""
NOT_AS_WRITTEN = (ValueError, TypeError, KeyError, AttributeError)
"""What reading a file may raise that somebody changed."""

Target = tuple[str | None, str | None]
"""Name and document; without the latter where there is no such source."""
_Source = tuple[str, str | None, str, str | None, str]


class Targets:
    """The sources that stand in all partitions that an ingest wrote, by the names that links have for them."""

    def __init__(self, tables: Connection, root: BusRoot, shelves: Shelves, memory: Memory) -> None:
        self._tables, self._root, self._memory = tables, root, memory
        self._manifests = {key: existing.manifest_bytes for key, existing in shelves.existing.items()}
        self._tables.execute("create index standing_by_name on standing (name)")
        for key in sorted(shelves.others):
            self._tables.executemany("insert into elsewhere values (?, ?, ?, ?, ?)", self._sources_of(key))
        self._tables.execute("create index elsewhere_by_name on elsewhere (name)")
        self._has_called = False
        self._web: bool | None = None
        # A source links to another one again and again, and those of a folder to the same ones.
        self.of = lru_cache(_AT_HAND)(self._find)
        self._document = lru_cache(_AT_HAND)(self._find_document)

    def _find(self, tenant: str | None, source_uri: str | None, url: str, kind: str, stated: str | None) -> Target:
        """Where a link of this source leads; `stated` is what its chunk says that it leads to."""
        if stated or kind not in _OF_WEB or self._has_web():
            for name in names_for(source_uri, url, kind, stated):
                if (document := self._document(tenant, name)) is not None:
                    return name, document
        only = (self._only(tenant, called) for called in called_by(source_uri, url, kind))
        return next(filter(None, only), (stated, None))

    def are_current(self) -> bool:
        """Whether the partitions are still those that were looked at."""
        return all(_manifest(self._root, key) == manifest for key, manifest in self._manifests.items())

    def _find_document(self, tenant: str | None, name: str) -> str | None:
        """Of several versions the one that counts."""
        rows = self._tables.execute(
            "select newest, partition, document from standing where name = :name and tenant is :tenant"
            " and not is_surplus union all"
            " select newest, partition, document from elsewhere where name = :name and tenant is :tenant",
            {"name": name, "tenant": tenant},
        ).fetchall()
        return str(max(rows, key=_rank)[2]) if rows else None

    def _has_web(self) -> bool:
        """Whether any source is called by an address of the web: nearly all links into it lead to none."""
        if self._web is None:
            named = "select 1 from {} where name >= 'http' and name < 'httq' limit 1"
            rows = (self._tables.execute(named.format(table)).fetchone() for table in ("standing", "elsewhere"))
            self._web = any(row is not None for row in rows)
        return self._web

    def _only(self, tenant: str | None, called: str) -> Target | None:
        """The only source that is called so, wherever it lies."""
        if not self._has_called:
            self._note_called()
        row = self._tables.execute(
            "select uri from called where tenant = ? and name = ? and uri is not null",
            [tenant or NO_TENANT, called],
        ).fetchone()
        return None if row is None else (str(row[0]), self._document(tenant, row[0]))

    def _note_called(self) -> None:
        self._has_called = True
        sources = self._tables.execute(
            "select tenant, name from standing where not is_surplus union select tenant, name from elsewhere"
        )
        self._tables.executemany(
            "insert into called values (?, ?, ?) on conflict (tenant, name) do update set"
            " uri = case when uri = excluded.uri then uri end",
            ((tenant or NO_TENANT, name, uri) for tenant, uri in sources for name in also_called(uri)),
        )

    def _sources_of(self, key: str) -> list[_Source]:
        """None of a partition that cannot be read, which others tell."""
        try:
            file, manifest = open_partition(self._root, key)
            self._manifests[key] = manifest
            with file:
                signature = Signature.of(os.fstat(file.fileno()))
                rows = self._memory.families(key, manifest, signature) if manifest else None
                if rows is None:
                    found = [_source(orjson.loads(line)) for _, line in read_lines(file)]
                else:
                    found = [(one.name, one.tenant, one.document, one.newest) for one in map(family_of, rows)]
            age = decode_manifest(manifest).created_at if manifest else None
        except (OSError, *NOT_AS_WRITTEN):
            return []
        return [(name, tenant, document, newest or age, key) for name, tenant, document, newest in dict.fromkeys(found)]


def _source(record: Record) -> tuple[str, str | None, str, str | None]:
    document = record["document_id"]
    return source_name(record) or document, tenant_id(record), document, record.get("created_at")


def _rank(row: tuple[str | None, str, str]) -> tuple[datetime, str]:
    newest, partition, _ = row
    return (parse_time(newest) if newest else _EARLIEST, partition)


def _manifest(root: BusRoot, key: str) -> bytes | None:
    try:
        return root.manifest_file(key).read_bytes()
    except FileNotFoundError:
        return None


def names_for(source_uri: str | None, url: str, kind: str, stated: str | None) -> Iterator[str]:
    """All names that the target of a link may have, the likeliest first; that of a note beside."""
    names = [stated] if stated else []
    if kind in _OF_WEB:
        yield from _addresses(url)
    if kind == LinkKind.DOCUMENT:
        names += targets(url, source_uri or "")
    for name in dict.fromkeys(names):
        yield from _stands_for(name)


def _addresses(url: str) -> Iterator[str]:
    """Sources that are called by an address of the web are called as it is, with a last slash or without."""
    with suppress(ValueError):
        address = urldefrag(url.strip()).url
        yield address
        yield address[:-1] if address.endswith("/") else f"{address}/"


def _stands_for(name: str) -> Iterator[str]:
    """What an address of that name may lead to, itself first: sites show a page for its folder and hide suffixes, and
    sources in Markdown link to the pages that are made of them."""
    yield name
    stem, suffix = posixpath.splitext(name)
    folder, last = posixpath.split(stem)
    if suffix.lower() in (".html", ".htm"):
        yield from (f"{stem}{other}" for other in HIDDEN[:-1])
        if last == "index":
            yield posixpath.join(folder, "README.md")
        return
    yield from (posixpath.join(name, page) for page in _OF_A_FOLDER)
    if name:
        yield from (f"{name}{hidden}" for hidden in HIDDEN)
