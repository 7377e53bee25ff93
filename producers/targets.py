"""Where links lead: to the source of that name, or to one that the address stands for, in any partition that an ingest
wrote.

What a link may lead to follows from its address and from the name of its source, so it can be told beforehand which
links come to lead elsewhere where sources come, change or go.
"""

import os
import posixpath
from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from unicodedata import normalize

import orjson

from chunkbus.identity import source_name, tenant_id
from chunkbus.layout import BusRoot
from chunkbus.reader import open_partition, read_lines
from chunkbus.signature import Signature
from producers.families import family_of
from producers.markdown.links import LinkKind, note_of, targets
from producers.memory import Memory

_OF_A_FOLDER = ("index.html", "index.md", "README.md")
_HIDDEN = (".md", ".mdx", ".markdown", ".html")
_NO_TENANT = ""

Target = tuple[str | None, str | None]
"""Name and document; without the latter where there is no such source."""


class Targets:
    """The sources that stand in the partitions of a run, and those that `others` hold, by the names that links have for
    them."""

    def __init__(self, tables: Connection, root: BusRoot, others: Iterable[str], memory: Memory) -> None:
        self._tables = tables
        self._tables.execute("create index standing_by_name on standing (name)")
        for key in others:
            self._tables.executemany("insert into elsewhere values (?, ?, ?)", _sources_of(root, key, memory))
        self._tables.execute("create index elsewhere_by_name on elsewhere (name)")
        self._has_notes = False

    def of(self, tenant: str | None, source_uri: str | None, url: str, kind: str, stated: str | None) -> Target:
        """Where a link of this source leads; `stated` is what its chunk says that it leads to."""
        for name in names_for(source_uri, url, kind, stated):
            if (document := self._document(tenant, name)) is not None:
                return name, document
        note = note_of(url) if kind == LinkKind.DOCUMENT else None
        return (note and self._only_note(tenant, note)) or (stated, None)

    def _document(self, tenant: str | None, name: str) -> str | None:
        row = self._tables.execute(
            "select document from standing where name = :name and tenant is :tenant and not is_surplus"
            " union all select document from elsewhere where name = :name and tenant is :tenant limit 1",
            {"name": name, "tenant": tenant},
        ).fetchone()
        return None if row is None else str(row[0])

    def _only_note(self, tenant: str | None, note: str) -> Target | None:
        """The only source that is called so, wherever it lies."""
        if not self._has_notes:
            self._note()
        row = self._tables.execute(
            "select uri, document from notes where tenant = ? and name = ? and uri is not null",
            [tenant or _NO_TENANT, folded(note)],
        ).fetchone()
        return None if row is None else (str(row[0]), str(row[1]))

    def _note(self) -> None:
        self._has_notes = True
        self._tables.execute("delete from notes")
        standing = self._tables.execute(
            "select tenant, name, document from standing where not is_surplus"
            " union all select tenant, name, document from elsewhere"
        )
        self._tables.executemany(
            "insert into notes values (?, ?, ?, ?) on conflict (tenant, name) do update set"
            " document = excluded.document, uri = case when uri = excluded.uri then uri end",
            (
                (tenant or _NO_TENANT, note, uri, document)
                for tenant, uri, document in standing
                for note in notes_of(uri)
            ),
        )


def _sources_of(root: BusRoot, key: str, memory: Memory) -> list[tuple[str, str | None, str]]:
    """Name, tenant and document of each; none of a partition that cannot be read, which others tell."""
    try:
        file, manifest = open_partition(root, key)
        with file:
            rows = memory.families(key, manifest, Signature.of(os.fstat(file.fileno()))) if manifest else None
            if rows is not None:
                return [(family.name, family.tenant, family.document) for family in map(family_of, rows)]
            records = (orjson.loads(line) for _, line in read_lines(file))
            named = ((source_name(record) or record["document_id"], tenant_id(record), record) for record in records)
            return list({(name, tenant, record["document_id"]): None for name, tenant, record in named})
    except (OSError, ValueError, TypeError, KeyError):
        return []


class Changed:
    """Names of sources that come, change or go in a run, while that is still to be written."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables
        self._tables.execute("delete from changed")
        names = self._tables.execute(_CHANGED)
        self._tables.executemany("insert or ignore into changed values (?, ?, ?)", _rows(names))

    def __bool__(self) -> bool:
        return self._tables.execute("select 1 from changed").fetchone() is not None

    def concerns(self, tenant: str | None, source_uri: str | None, url: str, kind: str, target: str | None) -> bool:
        """Whether a link may come to lead elsewhere, or to another version."""
        if any(self._has(tenant, name, is_note=False) for name in names_for(source_uri, url, kind, target)):
            return True
        note = note_of(url) if kind == LinkKind.DOCUMENT else None
        return note is not None and self._has(tenant, folded(note), is_note=True)

    def _has(self, tenant: str | None, name: str, *, is_note: bool) -> bool:
        row = self._tables.execute(
            "select 1 from changed where name = ? and is_note = ? and tenant = ?", [name, is_note, tenant or _NO_TENANT]
        )
        return row.fetchone() is not None


# What only moves to another partition stays the source that it is.
_CHANGED = """
select tenant, name from arrivals where moved_from is null
union
select tenant, name from standing where family in (select family from arrivals where moved_from is null)
union
select tenant, name from standing join departures using (partition, family) where target is null
"""


def _rows(names: Iterable[tuple[str | None, str]]) -> Iterator[tuple[str, str, bool]]:
    for tenant, name in names:
        yield tenant or _NO_TENANT, name, False
        for note in notes_of(name):
            yield tenant or _NO_TENANT, note, True


def names_for(source_uri: str | None, url: str, kind: str, stated: str | None) -> Iterator[str]:
    """All names that the target of a link may have, the likeliest first; that of a note beside."""
    names = [stated] if stated else []
    if kind == LinkKind.DOCUMENT:
        names += targets(url, source_uri or "")
    for name in dict.fromkeys(names):
        yield from _stands_for(name)


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


def notes_of(uri: str) -> Iterator[str]:
    """What a link by name may say: the name of its file, also without the suffix of a note."""
    file = folded(posixpath.basename(uri))
    yield file
    stem, suffix = posixpath.splitext(file)
    if suffix in _HIDDEN:
        yield stem


def folded(name: str) -> str:
    """In whatever case."""
    return normalize("NFC", name).casefold()
