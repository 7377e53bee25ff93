"""Erases a source from every build, the cache, dead letters and the records of past runs.

The chunks themselves are not changed. While they contain the source, the next sync restores it; so the report names the
partitions.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from chunksink.chunkbus.identity import family_key, resolve_parent_id, unicode_forms
from chunksink.chunkbus.partition_cache import FOLDER, PartitionCache
from chunksink.chunkbus.store import rewrite, write_transaction
from chunksink.rebuild.errors import NoGeneration, NothingBuilt, SeveralSources, UnknownSource
from chunksink.rebuild.families import label_of
from chunksink.rebuild.family_versions import decide
from chunksink.rebuild.ownership import orphans
from chunksink.rebuild.run_records import blank
from chunksink.rebuild.session import Session
from chunksink.sinks.capabilities import SupportsScrub, capability
from chunksink.sinks.contract import Build
from chunksink.sinks.document import Document
from chunksink.sinks.errors import BuildMissing, SinkError
from chunksink.sinks.values import LONE_SURROGATE

SHOWN = 5
"""The most sources that a message lists."""
# Records of a source: in the catalog, of its former versions, in receipts and tombstones.
_RECORDED = (
    "select family, parent_id from chunk where family = ?1 or parent_id = ?1 or document_id = ?1",
    "select family, parent_id from former_document where family = ?1 or parent_id = ?1 or document_id = ?1",
    "select family, null from receipt where family = ?1 or label = ?1",
    "select family, null from intent where family = ?1 union select family, null from dead_letter where family = ?1",
    # The only record of a source that was withdrawn and synced; engines may still have its words in freed pages.
    "select family_key(parent_id, tenant_id), parent_id from tombstone where parent_id = ?1",
)
_IDS = """
select chunk_id from chunk where family = ?1 union select document_id from chunk where family = ?1
union select document_id from former_document where family = ?1
"""
_ERASED = ("receipt", "intent", "dead_letter", "changed", "coverage", "former_text", "former_document")
_TEXTS = "select text_hash from chunk where family = ?1 union select text_hash from former_text where family = ?1"


@dataclass(frozen=True)
class NamedSource:
    """A source that matches the name, with its own name and tenant if a build has them."""

    family: str
    source: str = ""
    tenant: str | None = None

    def __str__(self) -> str:
        named = [self.source and repr(self.source)[:200], self.tenant and f"of tenant {self.tenant!r:.200}"]
        return " ".join([self.family, *filter(None, named)])


@dataclass(frozen=True)
class ForgetReport:
    """What was erased, and where the source still is."""

    families: tuple[str, ...]
    documents: dict[str, int]
    """Erased documents by build, in all generations."""
    texts: int
    """How many texts of the source, former ones included, were found in records or builds. The vector of a former
    text that was found in neither stays in the cache."""
    vectors: int
    run_records: int
    """Lines of run records that named the source."""
    still_in: tuple[str, ...]
    """Partitions that still contain the source."""
    not_scrubbed: tuple[str, ...]
    """Sinks that have deleted the source, but may keep its texts in their files for a while."""
    not_asked: dict[str, str]
    """Sinks that are no longer configured and could not be opened, and why: their builds may still have the source."""


def forget(session: Session, name: str, *, tenant: str | None = None, every: bool = False) -> ForgetReport:
    """`name` is a family key, parent_id or document_id, or the source's URI or path, as a search shows it.
    With `tenant`, only sources of this tenant count. Raises UnknownSource if none matches; SeveralSources if several
    match, unless `every` is set.

    The caller holds the writer's lock. A killed run can be repeated, because the source's records are erased last.
    """
    with ExitStack() as stack:
        builds, not_scrubbed, not_asked = _open_builds(session, stack)
        name, sources = find_sources(session, name, builds.values(), tenant, every=every)
        families = {source.family for source in sources}
        ids, texts = _recorded(session, _IDS, families), _recorded(session, _TEXTS, families)
        documents = {}
        for build_id, build in builds.items():
            matching = [stored for stored in build.scan() if stored.parent_id in families]
            ids |= {stored.id for stored in matching}
            texts |= {stored.text_hash for stored in matching if stored.text_hash}
            documents[build_id] = len(matching)
        vectors = session.embedders.drop_texts(sorted(texts - _texts_of_others(session, families, texts)))
        for build in builds.values():
            build.delete(sorted(families))
            build.flush()
            if (scrubbed := capability(build, SupportsScrub)) is not None:
                scrubbed.scrub()
    lines = blank(session.state.home, ids | families | {name})
    still_in = _erase_records(session, families)
    PartitionCache(session.state.home / FOLDER).clear()  # the session may have fetched some since `forgetting_copies`
    return ForgetReport(
        families=tuple(sorted(families)),
        documents=documents,
        texts=len(texts),
        vectors=vectors,
        run_records=lines,
        still_in=still_in,
        not_scrubbed=tuple(sorted(not_scrubbed)),
        not_asked=not_asked,
    )


@contextmanager
def forgetting_copies(home: Path) -> Iterator[None]:
    """Remove the copies of a bucket's chunks first, whatever follows: an `ingest` leaves them, too. If the block then
    finds no index, NoGeneration reports both."""
    had_copies = PartitionCache(home / FOLDER).clear()
    try:
        yield
    except NothingBuilt as error:
        if not had_copies:
            raise
        raise NoGeneration(
            f"no index in {home.absolute()}, but copies of chunks, which were removed. Its ledger `ingest.db` and its "
            "records in `runs` may still name the source: delete them while no run is under way"
        ) from error


def _open_builds(session: Session, stack: ExitStack) -> tuple[dict[str, Build], set[str], dict[str, str]]:
    """Every build of this home, including unrecorded ones; the sinks that cannot scrub some of them; and sinks that
    could not be opened, with the reason."""
    recorded = session.state.db.execute("select distinct sink, id from build order by id").fetchall()
    builds: dict[str, Build] = {}
    not_scrubbed: set[str] = set()
    not_asked: dict[str, str] = {}
    for name in dict.fromkeys([*session.sinks, *(sink for sink, _ in recorded)]):
        try:
            sink = session.sink(name)
            for build_id in [*(build_id for owner, build_id in recorded if owner == name), *orphans(session, sink)]:
                try:
                    build = builds[build_id] = stack.enter_context(closing(sink.open(build_id)))
                    if capability(build, SupportsScrub) is None:
                        not_scrubbed.add(name)
                except BuildMissing:
                    sink.drop(build_id)  # remains of a killed run
        except SinkError as error:
            if name in session.sinks:
                raise
            not_asked[name] = str(error)
    return builds, not_scrubbed, not_asked


def _recorded(session: Session, select: str, families: Iterable[str]) -> set[str]:
    """Values that the catalog has for these families, in present and former versions."""
    return {value for family in families for (value,) in session.state.db.execute(select, [family])}


def _texts_of_others(session: Session, families: set[str], texts: set[str]) -> set[str]:
    """The texts that another source has, too: their vectors stay."""
    select = "select text_hash, family from chunk where text_hash in (select value from json_each(?))"
    rows = session.state.db.execute(select, [orjson.dumps(list(texts)).decode()])
    return {text_hash for text_hash, family in rows if family not in families}


def _erase_records(session: Session, families: Iterable[str]) -> tuple[str, ...]:
    """Erase these families from `state.db`, except their chunks in valid partitions. Returns the partitions that still
    contain the families."""
    db = session.state.db
    partitions: set[str] = set()
    not_valid = "select key from partition where state <> 'valid'"
    with write_transaction(db):
        for table in ("compared", "to_compare"):  # otherwise triggers record the erased rows
            db.execute(f"delete from {table}")
        for family in families:
            for table in _ERASED:
                db.execute(f"delete from {table} where family = ?", [family])
            partitions |= {key for (key,) in db.execute("select partition from chunk where family = ?", [family])}
            changed = "select family, partition from chunk where family = :family union select :family, ''"
            db.execute(f"insert or ignore into undecided {changed}", {"family": family})
            db.execute(f"delete from chunk where family = ? and partition in ({not_valid})", [family])
        # The file of an invalid partition may still contain the source, so the next run reads it again.
        findings = f"delete from finding where partition = ? and partition in ({not_valid})"
        unread = "update partition set signature = null, manifest = null where state <> 'valid' and key = ?"
        for statement in (findings, unread):
            db.conn.executemany(statement, [(key,) for key in partitions])
    decide(db)
    rewrite(db)  # otherwise freed pages still contain it
    return tuple(sorted(partitions.difference(session.catalog.missing_partitions())))


def find_sources(
    session: Session, name: str, builds: Collection[Build], tenant: str | None, *, every: bool
) -> tuple[str, Sequence[NamedSource]]:
    """The matching form of the name, and its sources. Raises UnknownSource if there is none. If there are
    several, and not `every`, the name must be the family key of one, which is chosen; else raises SeveralSources. (The
    family key of a source without a tenant may equal the `parent_id` of sources with a tenant.)"""
    # No source has an empty name or one with an unpaired surrogate.
    for form in names_of(name) if name and not LONE_SURROGATE.search(name) else ():
        sources = sources_named(session.state.db, form, builds, tenant)
        if len(sources) > 1 and not every:
            exact = [source for source in sources if source.family == form]
            if not exact:
                raise _several(form, sources)
            sources = exact
        if sources:
            return form, sources
    of_tenant = "" if tenant is None else f" of tenant {tenant!r:.200}"
    raise UnknownSource(
        f"no source {name!r:.200}{of_tenant} is known here: use its family, parent_id, document_id, or its name as "
        "`chunksink search` shows it. If a sync has removed it, there may be no record of it any more. Then "
        "`chunksink cache gc` drops its vectors; running `chunksink rebuild` twice replaces builds whose files may "
        "still have its words; and records of runs that name it can be deleted from the folder `runs` of the home"
    )


def _several(name: str, sources: Sequence[NamedSource]) -> SeveralSources:
    return SeveralSources(
        f"{name!r:.200} names {len(sources)} sources; nothing was erased:\n{listed(sources[:SHOWN], len(sources))}\n"
        "Choose one by its family, or by its tenant with --tenant; to erase all of them, pass --every"
    )


def listed(shown: Sequence[NamedSource], total: int) -> str:
    """These sources, one per line, and how many more there are."""
    more = [f"  and {total - len(shown):,} more"] if total > len(shown) else []
    return "\n".join([*(f"  family {each}" for each in shown), *more])


def names_of(name: str) -> list[str]:
    """The name, as typed and percent-decoded, in both Unicode forms. One that ends with `#a&b` is also tried with `#a`
    and without a fragment."""
    address, _, fragment = name.partition("#")
    parts = fragment.split("&")
    shorter = [f"{address}#{'&'.join(parts[:kept])}" for kept in reversed(range(1, len(parts)))] + [address]
    typed = [form for each in (name, *shorter) for form in (each, unquote(each)) if form]
    return list(dict.fromkeys(form for each in typed for form in unicode_forms(each)))


def sources_named(db: Any, name: str, builds: Iterable[Build], tenant: str | None) -> list[NamedSource]:
    """The sources with this name, and of this tenant if it is given; see `forget`."""
    parents = {name, resolve_parent_id(None, name, name), resolve_parent_id(None, None, name)}
    sources: dict[str, NamedSource] = {}
    of_tenant: set[str] = set()
    recorded = [row for select in _RECORDED for each in parents for row in db.execute(select, [each]).fetchall()]
    for family, parent in recorded:
        sources.setdefault(family, NamedSource(family))
        if tenant is not None and family in {family_key(each, tenant) for each in (parent, *parents) if each}:
            of_tenant.add(family)
    for build in builds:
        for stored in build.scan(content=True):
            document = stored.document
            if stored.parent_id == name or (document is not None and _is_named(document, name, parents)):
                source = sources[stored.parent_id] = named_source(stored.parent_id, document)
                if source.tenant == tenant:
                    of_tenant.add(source.family)
    return [source for family, source in sorted(sources.items()) if tenant is None or family in of_tenant]


def named_source(family: str, document: Document | None) -> NamedSource:
    """The source with the name and tenant of one of its documents, if there is one."""
    if document is None:
        return NamedSource(family)
    return NamedSource(family, label_of(document), document.tenant_id)


def _is_named(document: Document, name: str, parents: Iterable[str]) -> bool:
    keys = {family_key(parent, document.tenant_id) for parent in parents}
    return document.parent_id in keys or name in (document.document_id, document.source_uri, document.path)
