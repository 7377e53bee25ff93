"""Writes the link artifact of a partition: `links/<key>.jsonl` below the bus root. Each line is a link and its target.

A run removes the artifact before it writes the partition, and creates it again after all partitions are written. So a
killed run leaves no outdated artifact. Missing artifacts are created; `--checksum` recreates all of them.
"""

import posixpath
import re
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from unicodedata import normalize
from urllib.parse import parse_qs, unquote, unquote_plus, urldefrag, urlsplit

import orjson

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import tenant_id
from chunksink.chunkbus.layout import BusRoot, check_partition_key
from chunksink.chunkbus.reader import read_lines
from chunksink.ingest.roots import Roots

_WEB_KINDS = ("external", "confluence")
_HIDDEN_SUFFIXES = (".md", ".mdx", ".markdown", ".html")
_FOLDER_PAGES = ("index.html", "index.md", "README.md")
_CACHED_LINKS = 8192
# Exports of Confluence name their files `Title_12345.html` or `12345.html`; rows of its API have the number as id.
_EXPORTED_PAGE = re.compile(r"(?:^|/)(?:([^/]+)_)?(\d{5,})\.html?\Z|#id=(\d{5,})\Z", re.IGNORECASE)
_PAGE_PATH = re.compile(r"(?:/spaces/([^/]+))?/pages/(\d{5,})(?:/([^/]+))?/?\Z")
_DISPLAY_PATH = re.compile(r"/display/([^/]+)/([^/]+)/?\Z")
_PAGE_PARTS = ("/pages/", "/display/", ".action")
_BETWEEN_WORDS = re.compile(r"[\W_]+")

_ABANDONED_SECONDS = 86_400.0
"""An unfinished file of this age was left by a killed run."""

Target = tuple[str | None, str | None]
"""The source that a link leads to, and the id of its newest document. The id is None if no such source was ingested;
both are None if the link leads to no source."""


def _links_name(key: str) -> str:
    return f"links/{check_partition_key(key)}.jsonl"


def drop_links(bus: BusRoot, keys: Collection[str]) -> None:
    for key in keys:
        bus.storage.remove(_links_name(key))


def make_links(db: sqlite3.Connection, bus: BusRoot, roots: Roots, *, recreate: bool) -> int:
    """Writes the missing artifacts, or all if `recreate` is set. Returns how many links they contain."""
    present = {entry.name for entry in bus.storage.entries("links")}
    keys = [key for (key,) in db.execute("select key from partition order by key")]
    missing = [key for key in keys if recreate or f"{key}.jsonl" not in present]
    if not missing:
        return 0
    for folder in bus.folders()[-1:]:
        for unfinished in folder.glob(".*.new"):
            if time.time() - unfinished.stat().st_mtime > _ABANDONED_SECONDS:  # a run with another home may be writing
                unfinished.unlink(missing_ok=True)
    targets = _Targets(db, roots.nested())
    return sum(_write(bus, key, targets) for key in missing)


def _write(bus: BusRoot, key: str, targets: "_Targets") -> int:
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for _, line in read_lines(file):
            record = orjson.loads(line) if b'"links"' in line else {}  # parsing takes far longer than looking
            for link in _links_of(record):
                yield orjson.dumps(_line(record, link, targets), option=orjson.OPT_APPEND_NEWLINE)
                count += 1

    file, _ = bus.open(key)
    with file:
        bus.storage.write(_links_name(key), lines())
    return count


def _links_of(record: Record) -> Iterator[Record]:
    """Links in our own format. Chunks of other programs may have other data in this field."""
    links = (record.get("metadata") or {}).get("links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and all(isinstance(link.get(name), str) for name in ("url", "link_type")):
            yield link


def _line(record: Record, link: Record, targets: "_Targets") -> Record:
    tenant, uri = tenant_id(record), record["provenance"].get("source_uri")
    stated = link.get("target_uri") if isinstance(link.get("target_uri"), str) else None
    target, document = targets.find(tenant or "", uri or "", link["url"], link["link_type"], stated)
    return {
        "source_document_id": record["document_id"],
        "source_uri": uri,
        "chunk_id": record["chunk_id"],
        "tenant_id": tenant,
        "url": link["url"],
        "link_type": link["link_type"],
        "target_uri": target,
        "target_document_id": document,
    }


class _Targets:
    """Finds the sources of all partitions by the names that links use."""

    def __init__(self, db: sqlite3.Connection, nested: Sequence[tuple[str, str]]) -> None:
        """`nested` is from `Roots.nested`. A relative link may lead from a root into one inside it, or back. So links
        are resolved as if only the outermost root were registered, and the targets are renamed afterwards."""
        self._db, self._nested = db, nested
        self._has_aliases = False
        web_source = "select 1 from family where name >= 'http' and name < 'httq' limit 1"
        self._has_web = db.execute(web_source).fetchone() is not None
        self.find = lru_cache(_CACHED_LINKS)(self._find)
        self._first = lru_cache(_CACHED_LINKS)(self._find_first)

    def _find(self, tenant: str, source_uri: str, url: str, kind: str, stated: str | None) -> Target:
        """The target of a link in this source; `stated` is the target that its chunk names."""
        if stated or kind not in _WEB_KINDS or self._has_web:
            names = list(_possible_names(self._outermost_name(source_uri), url, kind, stated))
            if (target := self._first(tenant, tuple(map(self._registered_name, names)))) is not None:
                return target
        for alias in _aliases_in_link(source_uri, url, kind):
            if (only := self._by_alias(tenant, alias)) is not None:
                return self._first(tenant, (only,)) or (only, None)
        return stated, None

    def _outermost_name(self, name: str) -> str:
        """The name that a source would have if only the outermost root around it were registered."""
        for inner, outer in self._nested:
            if name.startswith(inner):
                return f"{outer}{name.removeprefix(inner)}"
        return name

    def _registered_name(self, name: str) -> str:
        """The opposite of `_outermost_name`: the name by the innermost root."""
        for inner, outer in sorted(self._nested, key=lambda pair: -len(pair[1])):
            if name.startswith(outer):
                return f"{inner}{name.removeprefix(outer)}"
        return name

    def _find_first(self, tenant: str, names: tuple[str, ...]) -> Target | None:
        """The first of these names that belongs to a source, with its newest document."""
        marks = ", ".join("?" * len(names))
        query = f"select name, document from family where tenant = ? and name in ({marks}) order by newest, partition"
        documents = dict(self._db.execute(query, [tenant, *names]))
        return next(((name, documents[name]) for name in names if name in documents), None)

    def _by_alias(self, tenant: str, alias: str) -> str | None:
        """The source with this alias, if there is only one."""
        if not self._has_aliases:
            self._has_aliases = True
            sources = self._db.execute("select distinct tenant, name from family").fetchall()
            names = ((owner, alias, name) for owner, name in sources for alias in _aliases_of(name))
            self._db.executemany(_ALIAS, names)
        row = self._db.execute("select name from alias where tenant = ? and alias = ?", [tenant, alias]).fetchone()
        return None if row is None or row[0] is None else str(row[0])


_ALIAS = """
insert into alias values (?, ?, ?)
on conflict (tenant, alias) do update set name = case when name = excluded.name then name end
"""


def _possible_names(source_uri: str, url: str, kind: str, stated: str | None) -> Iterator[str]:
    """The possible names of a link's target, the most likely first."""
    from chunksink.ingest.formats.markdown.addresses import targets

    if kind in _WEB_KINDS:
        with suppress(ValueError):
            address = urldefrag(url.strip()).url
            yield address
            yield address[:-1] if address.endswith("/") else f"{address}/"
    names = [*([stated] if stated else []), *(targets(url, source_uri) if kind == "document" else [])]
    for name in dict.fromkeys(names):
        yield name
        yield from _pages_for(name)


def _pages_for(name: str) -> Iterator[str]:
    """Other names that the source of a page may have.

    A link may name a folder instead of its index page, or leave out the suffix. A link in Markdown may name the page
    that is built from a file (`a.html`) instead of the file (`a.md`).
    """
    stem, suffix = posixpath.splitext(name)
    folder, last = posixpath.split(stem)
    if suffix.lower() in (".html", ".htm"):
        yield from (f"{stem}{other}" for other in _HIDDEN_SUFFIXES[:-1])
        if last == "index":
            yield posixpath.join(folder, "README.md")
        return
    yield from (posixpath.join(name, page) for page in _FOLDER_PAGES)
    if name:
        yield from (f"{name}{hidden}" for hidden in _HIDDEN_SUFFIXES)


# Aliases are further names of a source. Obsidian links notes by file name; Confluence links pages by number, or by
# space and title. An alias counts only if a single source has it.


def _aliases_of(name: str) -> Iterator[str]:
    file = _folded(posixpath.basename(name))
    yield file
    stem, suffix = posixpath.splitext(file)
    if suffix in _HIDDEN_SUFFIXES:
        yield stem
    if exported := _EXPORTED_PAGE.search(name):
        title, number, row = exported.groups()
        yield f"page/{number or row}"
        if title:
            yield _titled("", title)
    number, space, title = _confluence_page(name)
    if number:
        yield f"page/{number}"
    if title:
        yield _titled(space, title)


def _aliases_in_link(source_uri: str, url: str, kind: str) -> Iterator[str]:
    """The aliases of a link's target, the most reliable first."""
    from chunksink.ingest.formats.markdown.addresses import note_of

    if kind == "document" and (note := note_of(url)) is not None:
        yield _folded(note)
    if kind != "confluence":
        return
    number, space, title = _confluence_page(url)
    if number:
        yield f"page/{number}"
    elif title:
        _, own_space, _ = _confluence_page(source_uri)
        yield _titled(space or own_space, title)
        yield _titled("", title)


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _titled(space: str, title: str) -> str:
    return f"page/{_folded(space)}/{_BETWEEN_WORDS.sub(' ', _folded(title)).strip()}"


def _confluence_page(url: str) -> tuple[str, str, str]:
    """Number, space and title of the page at an address; empty if the address does not contain them."""
    if any(part in url for part in _PAGE_PARTS):
        with suppress(ValueError):  # brackets that are not an IPv6 address
            parts = urlsplit(url.strip())
            if ".action" in parts.path:
                query = parse_qs(parts.query)
                number, space, title = (query.get(name, [""])[0] for name in ("pageId", "spaceKey", "title"))
                return number, space, title
            if match := _PAGE_PATH.search(parts.path):
                space, number, title = match.groups(default="")
                return number, unquote(space), unquote_plus(title)
            if match := _DISPLAY_PATH.search(parts.path):
                return "", unquote(match[1]), unquote_plus(match[2])
    return "", "", ""
