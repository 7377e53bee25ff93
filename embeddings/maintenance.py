"""Checks and shrinks a cache, for `chunksink cache verify`, `cache gc` and `forget`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from chunksink.chunkbus.validation import Progress
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.cachefile import REMEDY
from chunksink.embeddings.errors import CacheDamaged
from chunksink.embeddings.probes import PROBES
from chunksink.embeddings.references import raw_fingerprint, raw_key
from chunksink.embeddings.rows import COLUMNS, flaw

_DELETE_ROWS = 5000
_EXAMPLES = 20


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that failed its check."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """The result of `verify`."""

    rows: int
    bad_rows: int
    bad: tuple[BadRow, ...]
    """The first 20 bad rows."""
    damage: tuple[str, ...]
    """Problems of the file itself."""
    dropped: int

    @property
    def is_sound(self) -> bool:
        return not self.bad_rows and not self.damage


@dataclass(frozen=True, slots=True, eq=False)
class RowsToDrop:
    """Rows that are no longer needed."""

    rows: int
    vector_bytes: int
    rows_by_model: dict[str, int]
    """By fingerprint."""
    kept_rows: int
    ids: Sequence[int]


def verify(cache: VectorCache, *, repair: bool = False, progress: Progress | None = None) -> CacheCheck:
    """Checks every row and the file. `repair` drops bad rows and replaces a damaged file (see `cache.set_aside`).

    Dropped vectors are computed again when they are needed.
    """
    damage: list[str] = []
    bad: list[BadRow] = []
    ids = array("q")
    rows = 0
    try:
        damage += [str(line) for (line,) in cache.read("PRAGMA integrity_check(20)") if line != "ok"]
        for batch in cache.scan(f"SELECT id, fingerprint, {COLUMNS} FROM vector"):
            rows += len(batch)
            for number, *values in batch:
                if (reason := flaw(tuple(values))) is not None:
                    ids.append(number)
                    if len(bad) < _EXAMPLES:
                        bad.append(BadRow(_ref_of(*values[:3]), reason))
            if progress:
                progress(len(batch))
    except CacheDamaged as exc:
        damage.append(str(exc).removesuffix(REMEDY))
    if repair and damage:
        cache.replace_damaged()
    elif repair and ids:
        with cache.transaction() as connection:
            connection.execute("DELETE FROM segment")  # so that imports can restore the dropped rows
        _delete(cache, ids)
    return CacheCheck(rows, len(ids), tuple(bad), tuple(damage), len(ids) if repair and not damage else 0)


def unneeded_rows(cache: VectorCache, *, keys: Iterable[str], fingerprints: Collection[str] | None) -> RowsToDrop:
    """Rows whose pair of text and context occurs in no current chunk, or whose model no build needs.

    `keys` has two keys for each current chunk: its key, and its text hash alone, which is the key under a model that
    embeds no context. `fingerprints` are the models of the live, previous and unfinished builds; None keeps every
    model. Probes of kept models are kept, and not counted.
    """
    models = [raw_fingerprint(fingerprint) for fingerprint in fingerprints or ()]
    of_model = "TRUE" if fingerprints is None else f"fingerprint IN ({','.join('?' * len(models))})"
    table = cache.temporary_table(chain(PROBES, map(raw_key, keys)))
    listed = f"(text_hash, context_hash) IN {table}"
    unneeded = _rows_where(cache, f"({of_model} AND {listed}) IS NOT TRUE", models)
    [(probes,)] = cache.read(
        f"SELECT count(*) FROM vector WHERE {of_model} AND text_hash IN (?, ?)", (*models, *PROBES)
    )
    return replace(unneeded, kept_rows=unneeded.kept_rows - probes)


def outdated_rows(cache: VectorCache, fingerprint: str, last: int) -> RowsToDrop:
    """The rows of one model up to the row `last`."""
    return _rows_where(cache, "fingerprint = ? AND id <= ?", (raw_fingerprint(fingerprint), last))


def rows_of_texts(cache: VectorCache, text_hashes: Iterable[str]) -> RowsToDrop:
    """All rows of these texts, of every model and in every context."""
    table = cache.temporary_table(map(raw_key, text_hashes))
    return _rows_where(cache, f"text_hash IN (SELECT text_hash FROM {table})")


def _rows_where(cache: VectorCache, condition: str, parameters: Sequence[object] = ()) -> RowsToDrop:
    ids = array("q")
    by_model: Counter[str] = Counter()
    size = 0
    for batch in cache.scan(f"SELECT id, hex(fingerprint), length(vector) FROM vector WHERE {condition}", parameters):
        for number, fingerprint, length in batch:
            ids.append(number)
            by_model[fingerprint.lower()] += 1
            size += length or 0  # a damaged row may have no vector
    [(total,)] = cache.read("SELECT count(*) FROM vector")
    return RowsToDrop(len(ids), size, dict(by_model), total - len(ids), ids)


def drop(cache: VectorCache, unneeded: RowsToDrop) -> None:
    """Drops these rows and frees their space. Call it only if nothing was written to the cache since they were found:
    a row may have been replaced under the same id."""
    _delete(cache, unneeded.ids)
    with cache.transaction() as connection:
        for table in ("producer", "model"):  # these have few rows, and each needs only one lookup in the index
            connection.execute(
                f"DELETE FROM {table} "
                f"WHERE NOT EXISTS (SELECT 1 FROM vector WHERE vector.fingerprint = {table}.fingerprint)"
            )
    cache.shrink()


def _delete(cache: VectorCache, ids: Sequence[int]) -> None:
    for start in range(0, len(ids), _DELETE_ROWS):
        with cache.transaction() as connection:
            some = ids[start : start + _DELETE_ROWS]
            connection.executemany("DELETE FROM vector WHERE id = ?", ((number,) for number in some))


def _ref_of(*columns: object) -> str:
    fingerprint, text_hash, context_hash = (each.hex() if isinstance(each, bytes) else "?" for each in columns)
    return f"cache:{fingerprint}/{text_hash}{context_hash}"
