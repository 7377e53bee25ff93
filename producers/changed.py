"""Which links come to lead elsewhere where sources come, change or go: told beforehand, for what a link may lead to
follows from its address and from the name of its source.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from sqlite3 import Connection
from urllib.parse import unquote

from chunksink.producers.called import also_called, called_by, pages_of
from chunksink.producers.markdown.links import LinkKind, note_of
from chunksink.producers.targets import NO_TENANT, names_for

_MOST_AT_HAND = 20_000
_FOLDERS = ("", ".", "..")  # an address that ends so says nothing of how its target is called
_PAGES = ("index", "README")


class Changed:
    """Names of sources that come, change or go in a run, while that is still to be written."""

    def __init__(self, tables: Connection) -> None:
        self._tables = tables
        self._tables.execute("delete from changed")
        names = self._tables.execute(_CHANGED)
        self._tables.executemany("insert or ignore into changed values (?, ?, ?)", _rows(names))
        few = list(islice(self._tables.execute("select name from changed"), _MOST_AT_HAND + 1))
        self._words = frozenset(word for (name,) in few for word in _words(name)) if len(few) <= _MOST_AT_HAND else None

    def __bool__(self) -> bool:
        return self._tables.execute("select 1 from changed").fetchone() is not None

    def concerns(self, tenant: str | None, source_uri: str | None, url: str, kind: str, target: str | None) -> bool:
        """Whether a link may come to lead elsewhere, or to another version."""
        if self._words is not None and self._words.isdisjoint(words_of_link(source_uri, url, kind, target)):
            return False
        if any(self._has(tenant, name, is_called=False) for name in names_for(source_uri, url, kind, target)):
            return True
        return any(self._has(tenant, called, is_called=True) for called in called_by(source_uri, url, kind))

    def _has(self, tenant: str | None, name: str, *, is_called: bool) -> bool:
        row = self._tables.execute(
            "select 1 from changed where name = ? and is_called = ? and tenant = ?",
            [name, is_called, tenant or NO_TENANT],
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
        yield tenant or NO_TENANT, name, False
        for called in also_called(name):
            yield tenant or NO_TENANT, called, True


def _words(name: str) -> Iterator[str]:
    """One of which stands at the end of any link that may lead to what is called so; "" in those that do not say."""
    yield ""
    yield from pages_of(name)
    path = re.split("[?#]", name, maxsplit=1)[0].rstrip("/")
    for spelled in (path, unquote(path)):
        folder, file = posixpath.split(spelled)
        stem = posixpath.splitext(file)[0]
        yield from (file, stem)
        if stem in _PAGES:
            yield from ("index", posixpath.basename(folder), posixpath.splitext(posixpath.basename(folder))[0])


def words_of_link(source_uri: str | None, url: str, kind: str, target: str | None) -> Iterator[str]:
    yield from called_by(source_uri, url, kind)
    if target is not None:
        yield from _ends_of(target)
    if kind in (LinkKind.DOCUMENT, LinkKind.EXTERNAL, LinkKind.CONFLUENCE):
        note = note_of(url)
        yield from _ends_of(unquote(re.split("[?#]", url.strip(), maxsplit=1)[0]) if note is None else note)


def _ends_of(path: str) -> Iterator[str]:
    file = posixpath.basename(path.rstrip("/"))
    if file in _FOLDERS:
        yield ""
    yield from (file, posixpath.splitext(file)[0])
