"""Explains why a chunk is in the index or not, from the records, the chunks and the engines.

Nothing is changed, except that a partition that differs from the catalog is marked to be read again.

A chunk may be in several partitions; each place is judged on its own. The document that a sink should have is projected
again from the chunks and compared with the engine's copy.
"""

from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.identity import resolve_parent_id
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader, Place
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.catalog_rows import KEY
from chunksink.rebuild.errors import UnknownChunk
from chunksink.rebuild.families import FamilyReader, any_document, label_of, passage_of, source_names
from chunksink.rebuild.forget import SHOWN, listed, named_source, names_of
from chunksink.rebuild.intake import VALID
from chunksink.rebuild.schema import exists
from chunksink.rebuild.state import Generation, State
from chunksink.sinks.capabilities import SupportsReader, capability
from chunksink.sinks.contract import Sink
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import Document
from chunksink.sinks.errors import SinkError
from chunksink.sinks.fields import sink_id
from chunksink.sinks.projection import project_family

_BLOCK = 2**20
_HASHED = "h-"

Verdict = Literal["current", "superseded", "retired", "undecided"]
Copy = Literal["present", "absent", "different", "unknown"]


class _ChunkRow(NamedTuple):
    partition: str
    partition_state: str
    offset: int
    length: int
    family: str
    parent_id: str
    document_id: str
    text_hash: str
    source_checksum: str | None
    vector_key: str


_CHUNK_ROWS = f"""
select c.partition, p.state, l.offset, l.length, c.family, c.parent_id, c.document_id, c.text_hash, c.source_checksum,
    {KEY} from chunk c join chunk_line l on l.id = c.id join partition p on p.key = c.partition
where c.chunk_id = ? order by c.partition, l.offset
"""
_FORMER = "former_document where ?1 in (family, document_id, parent_id) or parent_id = ?2"


@dataclass(frozen=True)
class Occurrence:
    """One place of the chunk in the partitions, and whether it counts there."""

    partition: str
    partition_state: str
    offset: int
    line: int | None
    """None if the file has changed since it was read; then `source` is None, too."""
    source: str | None
    """The source's name in the chunk."""
    document_id: str
    text_hash: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class SinkCopy:
    """The chunk's document in one build, according to the records and to the engine."""

    build: str
    receipt: Literal["matches", "another version", "none"]
    """Whether the build has confirmed the current version of its source."""
    open_intent: bool
    refused: str | None
    copy: Copy
    """`unknown` if the engine could not be asked."""
    differs_in: tuple[str, ...]
    error: str | None


@dataclass(frozen=True)
class Explanation:
    chunk_id: str
    document: str
    """Its id in every sink."""
    family: str
    source: str
    vector_key: str
    """Names its vector in the cache."""
    context: str
    """What the live model reads before the text; empty if nothing, or if the chunk is not in the index."""
    occurrences: tuple[Occurrence, ...]
    held: str | None
    generation: str
    model_fingerprint: str
    """That of `NO_MODEL` if no sink of the live index has vectors."""
    sinks: dict[str, SinkCopy]
    other_chunks: tuple[str, ...] = ()
    """The other chunks of the source, if the user named a source."""
    cached_vector: dict[str, Any] | None = None
    """The cached vector of its text for the live model."""

    @property
    def current(self) -> Occurrence | None:
        return next((each for each in self.occurrences if each.verdict == "current"), None)


def why(
    state: State,
    root: BusRoot,
    fields: FieldSet,
    live: Generation,
    name: str,
    open_sink: Callable[[str], Sink],
    without_chunks: Callable[[str], str | None] = lambda _name: None,
) -> Explanation:
    """`name` is a chunk's id, a unique prefix of one, the id of its document in the sinks, or a source. For a
    source, its first chunk is explained. `without_chunks` returns why a source has no chunks. Raises UnknownChunk if
    the name matches no chunk, or several sources."""
    chunk_id, *others = _chunk_ids(state.db, root, name, without_chunks)
    rows = [_ChunkRow(*row) for row in state.db.execute(_CHUNK_ROWS, [chunk_id])]
    occurrences = tuple(_occurrence(state.db, root, row) for row in rows)
    is_current = any(each.verdict == "current" for each in occurrences)
    row = next((row for row, each in zip(rows, occurrences, strict=True) if each.verdict == "current"), rows[-1])
    family = row.family
    held = state.db.execute("select reason || ': ' || detail from held where family = ?", [family]).fetchone()
    expected: Document | None = None
    with suppress(PartitionChanged):
        parts = FamilyReader(root, Catalog(state), fields).families([family] if is_current else [])
        expected = next((d for part in parts for d in part.documents if d.chunk_id == chunk_id), None)
    document = sink_id(chunk_id)
    return Explanation(
        chunk_id=chunk_id,
        document=document,
        family=family,
        source=source_names(state.db, root, [family])[family],
        vector_key=row.vector_key,
        context=passage_of(expected).context if expected and live.model.embed_context else "",
        occurrences=occurrences,
        held=held[0] if held else None,
        generation=live.id,
        model_fingerprint=live.model_fingerprint,
        sinks={
            sink: _copy(state.db, sink, build, document, family, expected, open_sink)
            for sink, build in live.builds.items()
        },
        other_chunks=tuple(others),
    )


def _chunk_ids(db: Any, root: BusRoot, name: str, without_chunks: Callable[[str], str | None]) -> list[str]:
    """The chunk of this name, or the chunks of the source of this name."""
    if exists(db, "chunk where chunk_id = ?", [name]):
        return [name]
    if name.startswith(_HASHED):
        for (chunk_id,) in db.execute("select distinct chunk_id from chunk"):
            if sink_id(chunk_id) == name:
                return [str(chunk_id)]
    select = "select distinct chunk_id from chunk where chunk_id between ? and ? order by chunk_id limit 3"
    matches = [str(chunk_id) for (chunk_id,) in db.execute(select, [name, name + "\U0010ffff"])]
    if len(matches) == 1:
        return matches
    families = _families_named(db, name) if name else []
    if len(families) > 1:
        sources = [named_source(family, any_document(db, root, family)) for family in families[:SHOWN]]
        shown = listed(sources, len(families))
        raise UnknownChunk(f"{name!r:.100} names {len(families):,} sources:\n{shown}\nChoose one by its family")
    for rows in ("family_chunk", "chunk join chunk_line using (id)") if families else ():
        select = f"select distinct chunk_id from {rows} where family = ? order by partition, offset"
        if chunks := [str(chunk_id) for (chunk_id,) in db.execute(select, families)]:
            return chunks
    if name and (reason := without_chunks(name)):
        raise UnknownChunk(reason)
    if families or any(exists(db, _FORMER, [form, resolve_parent_id(None, form, form)]) for form in names_of(name)):
        raise UnknownChunk(f"{name!r:.100} was in the chunks before, but no partition has it now")
    hint = f"; ids that begin with it are {', '.join(matches)}, ..." if matches else "; has it been synced?"
    raise UnknownChunk(f"no chunk and no source {name!r:.100} is known{hint}")


def _families_named(db: Any, name: str) -> list[str]:
    """The source with this family key, else the sources of this name, else those whose name ends with it."""
    if exists(db, "chunk where family = ?", [name]):
        return [name]
    recorded = (
        "select family from receipt where label = ?1 union "
        "select family from chunk where ?1 in (parent_id, document_id) or parent_id = ?2"
    )
    for form in names_of(name):
        values = [form, resolve_parent_id(None, form, form)]
        if families := [family for (family,) in db.execute(recorded, values)]:
            return families
    ending = "select distinct family from receipt where substr(label, -length(?1)) = ?1"
    return [family for (family,) in db.execute(ending, [f"/{name}"])]


def _occurrence(db: Any, root: BusRoot, row: _ChunkRow) -> Occurrence:
    verdict, reason = _verdict(db, row)
    line, source = _line_and_source(root, row)
    if line is None and row.partition_state == VALID:
        reason += "; the partition has changed or disappeared since it was read; run `chunksink sync`"
    return Occurrence(
        row.partition, row.partition_state, row.offset, line, source, row.document_id, row.text_hash, verdict, reason
    )


def _verdict(db: Any, row: _ChunkRow) -> tuple[Verdict, str]:
    if exists(db, "undecided where family = ?", [row.family]):
        return "undecided", "its partition changed since the last sync; run `chunksink sync`"
    if exists(db, "held where family = ? and reason = 'family split'", [row.family]):
        return "undecided", "its source is held, because a version of it is split between partitions"
    current = db.execute("select partition, source_checksum from current where family = ?", [row.family]).fetchone()
    tombstone = db.execute(
        "select partition, at from tombstone where partition <> ? and (parent_id in (?, ?) or document_id = ?) "
        "and (tenant_id is null or ? = family_key(?, tenant_id)) order by at desc, partition desc limit 1",
        [row.partition, row.parent_id, row.family, row.document_id, row.family, row.parent_id],
    ).fetchone()
    if current == (row.partition, row.source_checksum):
        newer = f", newer than the tombstone of {tombstone[1]} in partition {tombstone[0]}" if tombstone else ""
        return "current", f"the newest version of its source{newer}"
    if current is not None and current[0] == row.partition:
        return "superseded", f"by a later version of its source in the same partition {row.partition}"
    if current is not None:
        select = "select rank from last_version where family = ? and partition = ?"
        newer, own = (db.execute(select, [row.family, key]).fetchone()[0] for key in (current[0], row.partition))
        copy = f"by a newer version, or a copy, of its source in partition {current[0]}"
        return "superseded", f"{copy}, dated {newer}; this one is dated {own}"
    if tombstone is None:
        return "retired", "a tombstone retired a newer version of its source, and this one with it"
    return "retired", f"the tombstone of {tombstone[1]} in partition {tombstone[0]} retires it"


def _line_and_source(root: BusRoot, row: _ChunkRow) -> tuple[int, str] | tuple[None, None]:
    """The line number of the chunk, counted from 1, and the name of its source."""
    try:
        with PartitionReader(root, row.partition) as reader:
            [document] = project_family([reader.record(Place(row.offset, row.length), row.text_hash)])
        file, _ = root.open(row.partition)
    except (OSError, PartitionChanged):
        return None, None
    line, unread = 1, row.offset
    with file:
        while unread and (data := file.read(min(_BLOCK, unread))):
            line += data.count(b"\n")
            unread -= len(data)
    return line, label_of(document)


def _copy(
    db: Any,
    sink: str,
    build: str,
    document: str,
    family: str,
    expected: Document | None,
    open_sink: Callable[[str], Sink],
) -> SinkCopy:
    of_family = [build, family]
    receipt: Literal["matches", "another version", "none"] = "none"
    if exists(db, "receipt where build = ? and family = ?", of_family):
        matches = "receipt join current using (family, family_hash) where build = ? and family = ?"
        receipt = "matches" if exists(db, matches, of_family) else "another version"
    open_intent = exists(db, "intent where build = ? and family = ?", of_family)
    refusal = db.execute("select reason from dead_letter where build = ? and id = ?", [build, document]).fetchone()
    refused = refusal[0] if refusal else None
    try:
        copy, differs = _compare(_stored(open_sink(sink), build, document), expected)
    except SinkError as error:
        return SinkCopy(build, receipt, open_intent, refused, "unknown", (), str(error))
    return SinkCopy(build, receipt, open_intent, refused, copy, differs, None)


def _stored(sink: Sink, build: str, document: str) -> Document | None:
    """The engine's copy, from the sink's reader; a sink without one is scanned."""
    if (readable := capability(sink, SupportsReader)) is not None:
        with closing(readable.reader(build)) as reader:
            return next(iter(reader.get([document])), None)
    with closing(sink.open(build)) as opened:
        return next((stored.document for stored in opened.scan(content=True) if stored.id == document), None)


def _compare(stored: Document | None, expected: Document | None) -> tuple[Copy, tuple[str, ...]]:
    if stored is None:
        return "absent", ()
    if expected is None:  # not current or not readable, so there is nothing to compare with
        return "present", ()
    actual, desired = stored.as_dict(), expected.as_dict()
    if not stored.text:  # not every sink stores it
        desired.pop("text", None)
        actual.pop("text", None)
    differs = tuple(name for name in sorted({*actual, *desired}) if actual.get(name) != desired.get(name))
    return ("different" if differs else "present"), differs
