"""Why a chunk is in the index as it is, or is not: all that is known of one chunk, gathered without changing anything.

A chunk may stand in several partitions; each place is judged apart. What a sink should hold is projected anew from the
chunks file and compared with what its engine answers.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from chunksink.chunkbus.errors import PartitionChanged
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import PartitionReader, Place, open_partition
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.errors import RebuildError
from chunksink.rebuild.families import FamilyReader, ProjectedFamily, label_of
from chunksink.rebuild.state import Generation, State
from chunksink.sinks.capabilities import SupportsReader, capability
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Document
from chunksink.sinks.errors import SinkError
from chunksink.sinks.fields import sink_id
from chunksink.sinks.projection import project_family

_BLOCK = 2**20
_HASHED = "h-"
_LEAST_ALIKE = 3
"""Characters that both ids begin with; others have nothing in common."""
_LEAST_BEGUN = 4
"""Characters that can stand for a whole id."""

Verdict = Literal["current", "superseded", "retired", "undecided"]


class UnknownChunk(RebuildError):
    """No chunk of this id was ever taken in."""


@dataclass(frozen=True)
class Occurrence:
    """One place where the chunk stands, and whether it counts there."""

    partition: str
    partition_state: str
    offset: int
    line: int | None
    """None where the file is not any more what was taken in."""
    source: str | None
    """What the chunk there calls it; None likewise."""
    document_id: str
    text_hash: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class SinkCopy:
    """What our records and an engine say of the chunk's document in one build."""

    build: str
    receipt: Literal["matches", "another version", "none"]
    """Whether the build has confirmed the version of its source that counts."""
    open_intent: bool
    refused: str | None
    copy: Literal["present", "absent", "different", "unknown"]
    """`unknown` where the engine could not be asked, or where nothing is known to compare it with."""
    differs_in: tuple[str, ...]
    error: str | None


@dataclass(frozen=True)
class Explanation:
    chunk_id: str
    document: str
    """Its id in every sink."""
    family: str
    source: str
    standings: tuple[Occurrence, ...]
    held: str | None
    generation: str
    model_fingerprint: str
    """That of no model, where no sink of the live index holds vectors."""
    sinks: dict[str, SinkCopy]

    @property
    def current(self) -> Occurrence | None:
        return next((standing for standing in self.standings if standing.verdict == "current"), None)


def why(state: State, root: BusRoot, live: Generation, name: str, open_sink: Callable[[str], Sink]) -> Explanation:
    """`name` is a chunk's id, a beginning that no other one has, or its document's id in the sinks."""
    chunk_id = _chunk_id(state.db, name)
    rows = state.db.execute(
        "select c.partition, p.state, c.offset, c.length, c.family, c.parent_id, c.document_id, c.text_hash, "
        "c.source_checksum from chunk c join partition p on p.key = c.partition "
        "where c.chunk_id = ? order by c.partition, c.offset",
        [chunk_id],
    ).fetchall()
    standings = tuple(_standing(state.db, root, row) for row in rows)
    current = next((row for row, standing in zip(rows, standings, strict=True) if standing.verdict == "current"), None)
    family = (current or rows[-1])[4]
    held = state.db.execute("select reason || ': ' || detail from held where family = ?", [family]).fetchone()
    projected = _projected(state, root, family) if current is not None else None
    expected = next((d for d in projected.documents if d.chunk_id == chunk_id), None) if projected else None
    document = expected.id if expected else sink_id(chunk_id)
    return Explanation(
        chunk_id=chunk_id,
        document=document,
        family=family,
        source=_label(state.db, family, projected) or _said(family, rows, standings),
        standings=standings,
        held=held[0] if held else None,
        generation=live.id,
        model_fingerprint=live.model_fingerprint,
        sinks={
            sink: _copy(state.db, sink, build, document, family, projected, expected, open_sink)
            for sink, build in live.builds.items()
        },
    )


def _said(family: str, rows: Sequence[Any], standings: Sequence[Occurrence]) -> str:
    """What a line of this family that has the id calls its source; empty where none can be read."""
    sources = (standing.source for row, standing in zip(rows, standings, strict=True) if row[4] == family)
    return next(filter(None, sources), "")


# -- which chunk is meant ----------------------------------------------------------------------------------------------


def _chunk_id(db: Any, name: str) -> str:
    if db.execute("select 1 from chunk where chunk_id = ? limit 1", [name]).fetchone():
        return name
    if name.startswith(_HASHED):
        for (chunk_id,) in db.execute("select distinct chunk_id from chunk"):
            if sink_id(chunk_id) == name:
                return str(chunk_id)
    begun = _begun_with(db, name)
    if len(begun) == 1:
        return begun[0]
    raise UnknownChunk(f"no chunk {name!r:.100} was ever taken in{_hint(db, name, begun)}")


def _begun_with(db: Any, beginning: str) -> list[str]:
    """The first chunks whose ids begin so; of less than `_LEAST_BEGUN` characters none."""
    if len(beginning) < _LEAST_BEGUN:
        return []
    select = "select distinct chunk_id from chunk where chunk_id between ? and ? order by chunk_id limit 3"
    return [chunk_id for (chunk_id,) in db.execute(select, [beginning, beginning + "\U0010ffff"])]


def _hint(db: Any, name: str, begun: list[str]) -> str:
    """What may have been meant: a document or a source instead of a chunk, or the id that begins most alike."""
    for column, what in (("document_id", "document"), ("family", "source"), ("parent_id", "source")):
        select = f"select chunk_id from chunk where {column} = ? order by partition, offset limit 3"
        chunks = [chunk_id for (chunk_id,) in db.execute(select, [name])]
        if chunks:
            return f"; that is a {what}, its chunks are {', '.join(chunks)}"
    if begun:
        return f", but others whose ids begin so, as {', '.join(begun)}"
    near = [
        row[0]
        for row in (
            db.execute(
                "select chunk_id from chunk where chunk_id < ? order by chunk_id desc limit 1", [name]
            ).fetchone(),
            db.execute("select chunk_id from chunk where chunk_id > ? order by chunk_id limit 1", [name]).fetchone(),
        )
        if row
    ]
    if not near:
        return ": the catalog is empty; run `chunksink sync`"
    if 0 < len(name) < _LEAST_BEGUN:
        return f", and the beginning of an id needs at least {_LEAST_BEGUN} characters"
    nearest = max(near, key=lambda known: _alike(known, name))
    if _alike(nearest, name) < _LEAST_ALIKE:
        return ". Was it never synced?"
    return f"; the nearest is {nearest}. Was it never synced?"


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((position for position, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _label(db: Any, family: str, projected: ProjectedFamily | None) -> str:
    if projected is not None:
        return projected.label
    row = db.execute("select max(label) from receipt where family = ?", [family]).fetchone()
    return str(row[0] or "")


# -- where it stands ---------------------------------------------------------------------------------------------------


def _standing(db: Any, root: BusRoot, row: Sequence[Any]) -> Occurrence:
    partition, partition_state, offset, length, family, parent_id, document_id, text_hash, checksum = row
    verdict, reason = _verdict(db, partition, family, parent_id, document_id, checksum)
    line, source = _line_and_source(root, partition, Place(offset, length), text_hash)
    return Occurrence(partition, partition_state, offset, line, source, document_id, text_hash, verdict, reason)


def _verdict(
    db: Any, partition: str, family: str, parent_id: str, document_id: str, checksum: str | None
) -> tuple[Verdict, str]:
    if db.execute("select 1 from undecided where family = ?", [family]).fetchone():
        return "undecided", "its partition changed since the last sync; run `chunksink sync`"
    split = db.execute("select 1 from held where family = ? and reason = 'family split'", [family]).fetchone()
    if split is not None:
        return "undecided", "a version of its source stands in parts: until that is mended none counts"
    current = db.execute("select partition, source_checksum from current where family = ?", [family]).fetchone()
    if current == (partition, checksum):
        return "current", "the newest version of its source"
    if current is not None and current[0] == partition:
        return "superseded", f"by a later version of its source in the same partition {partition}"
    if current is not None:
        return "superseded", f"by a newer version of its source in partition {current[0]}"
    withdrawn = _tombstone(db, partition, family, parent_id, document_id)
    return "retired", withdrawn or "a tombstone withdrew a newer version of its source, and this one with it"


def _tombstone(db: Any, partition: str, family: str, parent_id: str, document_id: str) -> str:
    """The tombstone of another partition that withdraws it by name; empty where there is none."""
    row = db.execute(
        "select partition, at from tombstone where partition <> ? and (parent_id in (?, ?) or document_id = ?) "
        "and (tenant_id is null or ? = family_key(?, tenant_id)) order by at desc, partition desc limit 1",
        [partition, parent_id, family, document_id, family, parent_id],
    ).fetchone()
    return f"the tombstone in partition {row[0]} of {row[1]} withdraws it" if row else ""


def _line_and_source(
    root: BusRoot, partition: str, place: Place, text_hash: str
) -> tuple[int, str] | tuple[None, None]:
    """The number of the line at a place, as editors count, and of what source the chunk there is."""
    try:
        with PartitionReader(root, partition) as reader:
            [document] = project_family([reader.record(place, text_hash)])
        file, _ = open_partition(root, partition)
    except (OSError, PartitionChanged):
        return None, None
    lines, left = 1, place.offset
    with file:
        while left and (data := file.read(min(_BLOCK, left))):
            lines += data.count(b"\n")
            left -= len(data)
    return lines, label_of(document)


def _projected(state: State, root: BusRoot, family: str) -> ProjectedFamily | None:
    """Its documents as sinks should hold them; None where the chunks file is not what was taken in."""
    catalog = Catalog(state)
    try:
        return next(FamilyReader(root, catalog).read(catalog.families([family])), None)
    except PartitionChanged:
        return None


# -- what each sink has ------------------------------------------------------------------------------------------------


def _copy(
    db: Any,
    sink: str,
    build: str,
    document: str,
    family: str,
    projected: ProjectedFamily | None,
    expected: Document | None,
    open_sink: Callable[[str], Sink],
) -> SinkCopy:
    key = [build, family]
    receipt = db.execute("select family_hash from receipt where build = ? and family = ?", key).fetchone()
    intent = db.execute("select 1 from intent where build = ? and family = ?", key).fetchone()
    letter = db.execute("select reason from dead_letter where build = ? and id = ?", [build, document]).fetchone()
    wanted = projected.family_hash if projected is not None else _family_hash(db, family)
    known: Literal["matches", "another version", "none"] = "none"
    if receipt is not None:
        known = "matches" if receipt[0] == wanted else "another version"
    held: Document | None = None
    error: str | None = None
    try:
        held = _held(open_sink(sink), build, document)
    except SinkError as failed:
        error = str(failed)
    copy, differs = _compared(held, expected, asked=error is None)
    return SinkCopy(build, known, intent is not None, letter[0] if letter else None, copy, differs, error)


def _family_hash(db: Any, family: str) -> str | None:
    """Of the version that counts, where another chunk than this one is in it."""
    row = db.execute("select family_hash from current where family = ?", [family]).fetchone()
    return row[0] if row else None


def _held(sink: Any, build: str, document: str) -> Document | None:
    """The engine's copy, through the sink's reader; a sink without one is read from its beginning."""
    if (readable := capability(sink, SupportsReader)) is not None:
        with closing(readable.reader(build)) as reader:
            return next(iter(reader.get([document])), None)
    with closing(sink.open(build)) as opened:
        return next((found.document for found in opened.scan(content=True) if found.id == document), None)


def _compared(
    held: Document | None, expected: Document | None, *, asked: bool
) -> tuple[Literal["present", "absent", "different", "unknown"], tuple[str, ...]]:
    if not asked:
        return "unknown", ()
    if held is None:
        return "absent", ()
    if expected is None:  # it does not count, or cannot be read: there is nothing to compare it with
        return "present", ()
    has, wanted = held.fields(), expected.fields()
    if not held.text:  # not every sink stores it
        wanted.pop("text", None)
        has.pop("text", None)
    differs = tuple(name for name in sorted({*has, *wanted}) if has.get(name) != wanted.get(name))
    return ("different" if differs else "present"), differs
