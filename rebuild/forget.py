"""Forgetting a source: out of every build, of the cache, of dead letters and of the records of past runs.

The bus is not ours to change. While it holds the source, the next sync brings it back; so its partitions are named.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass

from chunksink.chunkbus.store import rewrite, write_transaction
from chunksink.rebuild.run_records import blank
from chunksink.rebuild.session import Session
from chunksink.rebuild.source_lookup import find_sources
from chunksink.sinks.capabilities import SupportsScrub, capability
from chunksink.sinks.contract import Build
from chunksink.sinks.errors import BuildBroken, BuildMissing, SinkError

_PAGE = 400
_IDS = (
    "select chunk_id from chunk where family = ?",
    "select document_id from chunk where family = ?",
    "select document_id from former_document where family = ?",
)
_TEXTS = ("select text_hash from chunk where family = ?", "select text_hash from former_text where family = ?")

DropVectors = Callable[[Sequence[str]], int]
"""Drops the vectors of these text hashes, of every model; how many there were."""


@dataclass(frozen=True)
class ForgetReport:
    """What was erased, and where the source still stands."""

    families: tuple[str, ...]
    """None where only records of past runs named it."""
    documents: dict[str, int]
    """By build, of all generations."""
    texts: int
    """Texts that records or builds still knew, also of former versions: only the vectors of these could be told."""
    vectors: int
    run_records: int
    """Lines that named it."""
    still_in: tuple[str, ...]
    """Partitions of the bus."""
    left_behind: dict[str, str]
    """By sink, a folder of the home that the configuration has left: builds there may still hold it."""
    not_asked: dict[str, str]
    """Sinks that are not configured any more and could not be asked, and why: their builds may still hold it."""


def forget(
    session: Session, name: str, drop_vectors: DropVectors, *, tenant: str | None = None, every: bool = False
) -> ForgetReport:
    """`name` is the family's key, its parent_id, a document_id, or the source as its reader names it or a search shows
    it; of `tenant`, or of whatever one. Where it names several sources, SeveralSources, unless `every` one is meant.

    The caller holds the writer's lock. Repeated after a kill it ends the same: what tells of the source goes last.
    """
    with ExitStack() as stack:
        builds, not_asked = _open_builds(session, stack)
        name, sources = find_sources(session, name, builds.values(), tenant, every=every)
        families = {source.family for source in sources}
        ids, texts = _known(session, _IDS, families), _known(session, _TEXTS, families)
        documents = {}
        for build_id, build in builds.items():
            found = [stored for stored in build.scan() if stored.parent_id in families]
            ids |= {stored.id for stored in found}
            texts |= {stored.text_hash for stored in found if stored.text_hash}
            documents[build_id] = len(found)
        vectors = drop_vectors(sorted(texts - _texts_of_others(session, families, texts)))
        for build in builds.values():
            build.delete(sorted(families))
            build.flush()
            if (scrubbed := capability(build, SupportsScrub)) is not None:
                scrubbed.scrub()
    lines = blank(session.state.home, ids | families | {name})
    still_in = _erase_records(session, families)
    return ForgetReport(
        families=tuple(sorted(families)),
        documents=documents,
        texts=len(texts),
        vectors=vectors,
        run_records=lines,
        still_in=still_in,
        left_behind=dict(session.left_behind()),
        not_asked=not_asked,
    )


def _open_builds(session: Session, stack: ExitStack) -> tuple[dict[str, Build], dict[str, str]]:
    """Every build of this home: live, previous, unfinished, and those that its records have lost.

    Also the sinks that are not configured any more and could not be asked, with the reason.
    """
    recorded = session.state.db.execute("select distinct sink, id from build order by id").fetchall()
    found: dict[str, Build] = {}
    not_asked: dict[str, str] = {}
    for name in dict.fromkeys([*session.sinks, *(sink for sink, _ in recorded)]):
        ours = [build_id for owner, build_id in recorded if owner == name]
        try:
            found |= _open_builds_of(session, name, ours, stack)
        except SinkError as error:
            if name in session.sinks:
                raise
            not_asked[name] = str(error)
    return found, not_asked


def _open_builds_of(session: Session, name: str, ours: Sequence[str], stack: ExitStack) -> dict[str, Build]:
    sink = session.sink(name)
    found: dict[str, Build] = {}
    for build_id in dict.fromkeys([*ours, *sink.builds()]):
        try:
            build = sink.open(build_id)
        except BuildMissing:
            sink.drop(build_id)  # what a kill may have left of it
            continue
        except BuildBroken:
            if build_id in ours:
                raise
            continue
        if build_id in ours or session.owns(build.marker()):
            found[build_id] = stack.enter_context(closing(build))
        else:
            build.close()
    return found


def _known(session: Session, selects: Iterable[str], families: Iterable[str]) -> set[str]:
    """What the catalog has of these families, in whatever version, also former ones."""
    rows = (session.state.db.execute(select, [family]) for select in selects for family in families)
    return {value for of_family in rows for (value,) in of_family}


def _texts_of_others(session: Session, families: set[str], texts: set[str]) -> set[str]:
    """Those of these texts that another source says as well: their vectors stay."""
    others: set[str] = set()
    wanted = list(texts)
    for start in range(0, len(wanted), _PAGE):
        some = wanted[start : start + _PAGE]
        marks = ", ".join("?" * len(some))
        rows = session.state.db.execute(f"select text_hash, family from chunk where text_hash in ({marks})", some)
        others |= {text_hash for text_hash, family in rows if family not in families}
    return others


def _erase_records(session: Session, families: Iterable[str]) -> tuple[str, ...]:
    """From `state.db`, all but what the bus says now; the partitions in which it still stands."""
    db = session.state.db
    partitions: set[str] = set()
    with write_transaction(db):
        for table in ("compared", "moved"):  # or what is erased here would be noted as moved
            db.execute(f"delete from {table}")
        for family in families:
            for table in ("receipt", "intent", "dead_letter", "former_text", "former_document"):
                db.execute(f"delete from {table} where family = ?", [family])
            partitions |= {key for (key,) in db.execute("select partition from chunk where family = ?", [family])}
            changed = "select family, partition from chunk where family = :family union select :family, ''"
            db.execute(f"insert or ignore into undecided {changed}", {"family": family})
            absent = "select key from partition where state <> 'valid'"
            db.execute(f"delete from chunk where family = ? and partition in ({absent})", [family])
        # One that is not valid now is read anew when it is: it still says what was erased here.
        findings = (
            "delete from finding where partition in (select key from partition where state <> 'valid' and key = ?)"
        )
        unread = "update partition set signature = null, manifest = null where state <> 'valid' and key = ?"
        for statement in (findings, unread):
            db.conn.executemany(statement, [(key,) for key in partitions])
    session.catalog.decide()
    rewrite(db)  # or freed pages would still say it
    return tuple(sorted(partitions.difference(session.catalog.missing_partitions())))
