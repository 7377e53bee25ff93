"""Which sources a name means: by the catalog, by its notes of former ones, by receipts, by tombstones, and by what
builds say of themselves: where the records were lost, nothing else knows a withdrawn one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from chunksink.chunkbus.identity import family_key, resolve_parent_id
from chunksink.rebuild.errors import SeveralSources, UnknownSource
from chunksink.rebuild.run_records import is_named
from chunksink.rebuild.session import Session
from chunksink.sinks.contract import Build
from chunksink.sinks.document import Document
from chunksink.sinks.values import HALF

_SHOWN = 5

_RECORDED = (
    "select family, parent_id from chunk where family = ?",
    "select family, parent_id from chunk where parent_id = ?",
    "select family, parent_id from chunk where document_id = ?",
    "select family, null from receipt where family = ?",
    "select family, null from receipt where label = ?",
    "select family, null from intent where family = ?",
    "select family, null from dead_letter where family = ?",
    "select family, parent_id from former_document where family = ?",
    "select family, parent_id from former_document where parent_id = ?",
    "select family, parent_id from former_document where document_id = ?",
    # Withdrawn and synced long ago, this is all that names it; freed pages may still hold its words.
    "select family_key(parent_id, tenant_id), parent_id from tombstone where parent_id = ?",
)


@dataclass(frozen=True)
class NamedSource:
    """A source that a name means; its own name and its tenant, as far as a build knows them."""

    family: str
    source: str = ""
    tenant: str | None = None

    def __str__(self) -> str:
        named = [self.source and repr(self.source)[:200], self.tenant and f"of tenant {self.tenant!r:.200}"]
        return " ".join([self.family, *filter(None, named)])


def find_sources(
    session: Session, given: str, builds: Collection[Build], tenant: str | None, *, every: bool
) -> tuple[str, Sequence[NamedSource]]:
    """The name that means something, and what; nothing where only records of runs name it.

    UnknownSource where nothing does, SeveralSources where it means several, unless `every` one is wanted.
    """
    # No source has an empty name, or one with half a character in it.
    for name in names_of(given) if given and not HALF.search(given) else ():
        sources = sources_named(session.state.db, name, builds, tenant)
        if len(sources) > 1 and not every:
            raise _several(name, sources)
        if sources or (name not in session.catalog.known_partitions() and is_named(session.state.home, name)):
            return name, sources
    of_tenant = "" if tenant is None else f" of tenant {tenant!r:.200}"
    raise UnknownSource(
        f"no source {given!r:.200}{of_tenant} is known here: name its family, parent_id, document_id, or its source as "
        "`chunksink search` shows it. Of one that was withdrawn and synced before perhaps nothing tells any more: "
        "`chunksink cache gc` drops its vectors, two times `chunksink rebuild` replaces builds that may hold its words "
        "in freed pages"
    )


def _several(name: str, sources: Sequence[NamedSource]) -> SeveralSources:
    shown = "\n".join(f"  family {each}" for each in sources[:_SHOWN])
    more = f"\n  and {len(sources) - _SHOWN} more" if len(sources) > _SHOWN else ""
    return SeveralSources(
        f"{name!r:.200} names {len(sources)} sources; nothing was erased:\n{shown}{more}\n"
        "Name one by its family, or by its tenant with --tenant; to erase all of them, say --every"
    )


def names_of(given: str) -> list[str]:
    """As it is; then, as in the address that a search shows, without the places in it that follow the `#`, and with
    what is quoted there read."""
    address, _, place = given.partition("#")
    places = place.split("&")
    without = [f"{address}#{'&'.join(places[:left])}" for left in reversed(range(1, len(places)))] + [address]
    return list(dict.fromkeys(form for name in (given, *without) for form in (name, unquote(name)) if form))


def sources_named(db: Any, name: str, builds: Iterable[Build], tenant: str | None) -> list[NamedSource]:
    """`name` is a family's key, its parent_id, a document_id, or the source as its reader names it. With `tenant` those
    of that tenant alone."""
    parents = {name, resolve_parent_id(None, name, name), resolve_parent_id(None, None, name)}
    found: dict[str, NamedSource] = {}
    of_tenant: set[str] = set()
    for family, parent in _recorded(db, parents):
        found.setdefault(family, NamedSource(family))
        if tenant is not None and family in {family_key(each, tenant) for each in (parent, *parents) if each}:
            of_tenant.add(family)
    for build in builds:
        for stored in build.scan(content=True):
            document = stored.document
            if stored.parent_id == name or (document is not None and _is_named(document, name, parents)):
                source = found[stored.parent_id] = _as_stored(stored.parent_id, document)
                if source.tenant == tenant:
                    of_tenant.add(source.family)
    return [source for family, source in sorted(found.items()) if tenant is None or family in of_tenant]


def _recorded(db: Any, parents: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for select in _RECORDED:
        for asked in parents:
            yield from db.execute(select, [asked]).fetchall()


def _is_named(document: Document, name: str, parents: Iterable[str]) -> bool:
    keys = {family_key(parent, document.tenant_id) for parent in parents}
    return document.parent_id in keys or name in (document.document_id, document.source_uri, document.path)


def _as_stored(family: str, document: Document | None) -> NamedSource:
    if document is None:
        return NamedSource(family)
    return NamedSource(family, document.source_uri or document.path or document.document_id or "", document.tenant_id)
