"""Forgetting a source: out of every build, of the cache, of dead letters and of the records of past runs.

The bus is not ours to change. While it holds the source, the next sync brings it back; so its partitions are named.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import orjson

from chunkbus.store import write_transaction
from rebuild.errors import UnknownSource
from rebuild.work import Work
from sinks.errors import BuildMissing

_PAGE = 400

DropVectors = Callable[[Sequence[str]], int]
"""Drops the vectors of these text hashes, of every model; how many there were."""


@dataclass(frozen=True)
class Forgotten:
    """What was erased, and where the source still stands."""

    families: tuple[str, ...]
    documents: dict[str, int]
    """By build, of all generations."""
    vectors: int
    run_records: int
    """Lines that named it."""
    still_in: tuple[str, ...]
    """Partitions of the bus."""


def forget(work: Work, name: str, drop_vectors: DropVectors) -> Forgotten:
    """`name` is the family's key, its parent_id, a document_id, or the source as its reader names it.

    The caller holds the writer's lock. Repeated after a kill it ends the same: what is left is found again.
    """
    families = _families(work, name)
    ids, texts = _known(work, families)
    documents = {}
    for build_id, sink_name in _builds(work):
        try:
            build = work.sink(sink_name).open(build_id)
        except BuildMissing:
            continue
        with closing(build):
            found = [stored for stored in build.scan() if stored.parent_id in families]
            ids |= {stored.id for stored in found}
            texts |= {stored.text_hash for stored in found if stored.text_hash}
            build.delete(sorted(families))
            build.flush()
            documents[build_id] = len(found)
    vectors = drop_vectors(sorted(texts - _texts_of_others(work, families, texts)))
    records = _clean_run_records(work.state.home / "runs", ids | families | {name})
    still_in = _erase_records(work, families)
    return Forgotten(tuple(sorted(families)), documents, vectors, records, still_in)


def _families(work: Work, name: str) -> set[str]:
    db = work.state.db
    found = {
        family
        for select in (
            "select family from chunk where family = ?",
            "select family from chunk where parent_id = ?",
            "select family from chunk where document_id = ?",
            "select family from receipt where family = ?",
            "select family from receipt where label = ?",
        )
        for (family,) in db.execute(select, [name])
    }
    if not found:
        raise UnknownSource(
            f"no source {name!r:.200} is known here: name its family, parent_id, document_id, or its source as "
            "`chunksink search` shows it"
        )
    return found


def _known(work: Work, families: Iterable[str]) -> tuple[set[str], set[str]]:
    """Ids and text hashes that the catalog has of these families, in whatever version."""
    ids: set[str] = set()
    texts: set[str] = set()
    for family in families:
        rows = work.state.db.execute("select chunk_id, document_id, text_hash from chunk where family = ?", [family])
        for chunk_id, document_id, text_hash in rows:
            ids |= {chunk_id, document_id}
            texts.add(text_hash)
    return ids, texts


def _builds(work: Work) -> list[tuple[str, str]]:
    """Every build once, also of the previous generation and of one that is not finished."""
    return [(build, sink) for build, sink in work.state.db.execute("select distinct id, sink from build").fetchall()]


def _texts_of_others(work: Work, families: set[str], texts: set[str]) -> set[str]:
    """Those of these texts that another source says as well: their vectors stay."""
    others: set[str] = set()
    wanted = sorted(texts)
    for start in range(0, len(wanted), _PAGE):
        some = wanted[start : start + _PAGE]
        marks = ", ".join("?" * len(some))
        rows = work.state.db.execute(f"select text_hash, family from chunk where text_hash in ({marks})", some)
        others |= {text_hash for text_hash, family in rows if family not in families}
    return others


def _clean_run_records(folder: Path, names: set[str]) -> int:
    """Empties the lines that name it, all but what kind of line each was and when; how many."""
    needles = [name.encode() for name in names]
    cleaned = 0
    for file in sorted(folder.glob("*.jsonl")):
        lines = file.read_bytes().splitlines(keepends=True)
        naming = [number for number, line in enumerate(lines) if any(needle in line for needle in needles)]
        for number in naming:
            lines[number] = _emptied(lines[number])
        if naming:
            aside = file.with_name(f".{file.name}")
            aside.write_bytes(b"".join(lines))
            aside.replace(file)
        cleaned += len(naming)
    return cleaned


def _emptied(line: bytes) -> bytes:
    try:
        facts = orjson.loads(line)
    except ValueError:  # cut off by a kill
        return b""
    kept = {name: facts[name] for name in ("event", "run_id", "at", "status") if name in facts}
    return orjson.dumps(kept, option=orjson.OPT_APPEND_NEWLINE)


def _erase_records(work: Work, families: Iterable[str]) -> tuple[str, ...]:
    """From `state.db`, all but what the bus says now; the partitions in which it still stands."""
    db = work.state.db
    still_in: set[str] = set()
    with write_transaction(db):
        for family in families:
            for table in ("receipt", "intent", "dead_letter"):
                db.execute(f"delete from {table} where family = ?", [family])
            absent = "select key from partition where state <> 'valid'"
            db.execute(f"delete from chunk where family = ? and partition in ({absent})", [family])
            db.execute("insert or ignore into undecided values (?)", [family])
            still_in |= {key for (key,) in db.execute("select partition from chunk where family = ?", [family])}
    work.catalog.decide()
    db.execute("vacuum")  # or the freed pages would still say it
    return tuple(sorted(still_in))
