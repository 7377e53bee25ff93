"""How a cache is kept sound and small. Library calls; the commands are `chunksink cache verify` and `gc`.

Long scans ask page by page, so that no read transaction stays open and the writer's log stays short.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from embeddings.cache import VectorCache
from embeddings.errors import CacheDamaged
from embeddings.references import TextHash, embedding_ref, raw_fingerprint, raw_hash
from embeddings.rows import flaw
from embeddings.salvage import SalvageReport

_SCAN_ROWS = 2000
_DELETE_ROWS = 5000

Progress = Callable[[int], object]
"""Called with the number of rows just done."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that failed its check."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What `verify` found."""

    rows: int
    bad: tuple[BadRow, ...]
    damage: tuple[str, ...]
    """What SQLite says about the file itself; empty when it is sound."""
    dropped: int
    salvaged: SalvageReport | None = None

    @property
    def is_sound(self) -> bool:
        return not self.bad and not self.damage


@dataclass(frozen=True, slots=True, eq=False)
class Surplus:
    """Rows that nothing needs any more."""

    rows: int
    vector_bytes: int
    rows_by_model: dict[str, int]
    """By fingerprint."""
    kept_rows: int
    ids: Sequence[int]


def verify(cache: VectorCache, *, repair: bool = False, progress: Progress | None = None) -> VerifyReport:
    """Checks every row and the file. `repair` drops bad rows and salvages a damaged file.

    What is dropped will be computed again when it is needed.
    """
    damage: tuple[str, ...] = ()
    bad: list[BadRow] = []
    ids: list[int] = []
    rows = 0
    try:
        damage = tuple(line for (line,) in cache.read("PRAGMA integrity_check(20)") if line != "ok")
        for page in scan(
            cache,
            "SELECT id, fingerprint, text_hash, precision, tokens, checksum, vector FROM vector WHERE id > ?",
        ):
            rows += len(page)
            for number, *values in page:
                reason = flaw(tuple(values))
                if reason is not None:
                    bad.append(BadRow(_ref_of(values[0], values[1]), reason))
                    ids.append(number)
            if progress:
                progress(len(page))
    except CacheDamaged as exc:
        damage += (str(exc),)
    dropped, salvaged = 0, None
    if repair and damage:
        salvaged = cache.salvage(damage[0])
    elif repair and ids:
        with cache.transaction() as connection:
            connection.executemany("DELETE FROM vector WHERE id = ?", ((number,) for number in ids))
        dropped = len(ids)
    return VerifyReport(rows, tuple(bad), damage, dropped, salvaged)


def find_surplus(
    cache: VectorCache,
    *,
    text_hashes: Iterable[TextHash],
    fingerprints: Collection[str] | None,
    progress: Progress | None = None,
) -> Surplus:
    """Rows of other texts than these, and of other models than these; None stands for every model.

    `text_hashes` are those of the current chunks, `fingerprints` those of the live, previous and unfinished builds.
    """
    keep_models = None if fingerprints is None else {raw_fingerprint(fingerprint) for fingerprint in fingerprints}
    ids = array("q")
    with cache.temporary(raw_hash(each) for each in text_hashes) as table:
        size = kept = 0
        by_model: dict[str, int] = {}
        for page in scan(
            cache,
            f"SELECT id, fingerprint, length(vector), text_hash IN (SELECT text_hash FROM {table}) "
            "FROM vector WHERE id > ?",
        ):
            for number, fingerprint, length, referred in page:
                if referred and (keep_models is None or fingerprint in keep_models):
                    kept += 1
                    continue
                ids.append(number)
                size += length
                name = fingerprint.hex() if isinstance(fingerprint, bytes) else "?"
                by_model[name] = by_model.get(name, 0) + 1
            if progress:
                progress(len(page))
    return Surplus(len(ids), size, by_model, kept, ids)


def drop(cache: VectorCache, surplus: Surplus) -> None:
    """Drops these rows and gives their space back. Nobody may write to the cache since they were found."""
    for start in range(0, len(surplus.ids), _DELETE_ROWS):
        with cache.transaction() as connection:
            connection.executemany(
                "DELETE FROM vector WHERE id = ?", ((number,) for number in surplus.ids[start : start + _DELETE_ROWS])
            )
    with cache.transaction() as connection:
        connection.execute("DELETE FROM producer WHERE fingerprint NOT IN (SELECT DISTINCT fingerprint FROM vector)")
        connection.execute("DELETE FROM model WHERE fingerprint NOT IN (SELECT DISTINCT fingerprint FROM vector)")
    cache.shrink()


def scan(cache: VectorCache, sql: str, parameters: tuple[object, ...] = ()) -> Iterator[list[tuple[Any, ...]]]:
    """A long scan in short reads. The query's first column is the id; its first parameter is where to go on."""
    last = -(2**63)
    while page := cache.read(f"{sql} ORDER BY id LIMIT {_SCAN_ROWS}", (last, *parameters)):
        yield page
        last = page[-1][0]


def _ref_of(fingerprint: object, text_hash: object) -> str:
    if isinstance(fingerprint, bytes) and isinstance(text_hash, bytes) and len(fingerprint) == len(text_hash) == 32:
        return str(embedding_ref(fingerprint.hex(), text_hash))
    return "cache:unreadable key"
