"""How a cache is kept sound and small. Library calls; the commands are `chunksink cache verify` and `gc`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import CacheDamaged
from chunksink.embeddings.probes import PROBES
from chunksink.embeddings.references import TextHash, embedding_ref, raw_fingerprint, raw_hash
from chunksink.embeddings.rows import flaw
from chunksink.embeddings.schema import REMEDY

_DELETE_ROWS = 5000
_EXAMPLES = 20

Progress = Callable[[int], object]
"""Called with the number of rows just done."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that failed its check."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class CacheCheck:
    """What `verify` found."""

    rows: int
    bad_rows: int
    bad: tuple[BadRow, ...]
    """The first 20 of them."""
    damage: tuple[str, ...]
    """What is wrong with the file itself; empty when it is sound."""
    dropped: int

    @property
    def is_sound(self) -> bool:
        return not self.bad_rows and not self.damage


@dataclass(frozen=True, slots=True, eq=False)
class Surplus:
    """Rows that nothing needs any more."""

    rows: int
    vector_bytes: int
    rows_by_model: dict[str, int]
    """By fingerprint."""
    kept_rows: int
    ids: Sequence[int]


def verify(cache: VectorCache, *, repair: bool = False, progress: Progress | None = None) -> CacheCheck:
    """Checks every row and the file. `repair` drops bad rows and replaces a damaged file (see `cache.set_aside`).

    What is dropped will be computed again when it is needed.
    """
    damage: list[str] = []
    try:
        damage += [str(line) for (line,) in cache.read("PRAGMA integrity_check(20)") if line != "ok"]
    except CacheDamaged as exc:
        damage.append(_without_remedy(exc))
    bad: list[BadRow] = []
    rows = bad_rows = dropped = 0
    try:
        for page in cache.scan(
            "SELECT id, fingerprint, text_hash, precision, tokens, checksum, vector FROM vector WHERE id > ?"
        ):
            ids = []
            for number, *values in page:
                reason = flaw(tuple(values))
                if reason is None:
                    continue
                ids.append(number)
                if len(bad) < _EXAMPLES:
                    bad.append(BadRow(_ref_of(values[0], values[1]), reason))
            rows += len(page)
            bad_rows += len(ids)
            if repair and not damage:  # else the file is replaced
                _delete(cache, ids)
                dropped += len(ids)
            if progress:
                progress(len(page))
    except CacheDamaged as exc:
        if (reason := _without_remedy(exc)) not in damage:
            damage.append(reason)
    if repair and damage:
        cache.replace_damaged()
    return CacheCheck(rows, bad_rows, tuple(bad), tuple(damage), dropped)


def find_surplus(
    cache: VectorCache,
    *,
    text_hashes: Iterable[TextHash],
    fingerprints: Collection[str] | None,
    progress: Progress | None = None,
) -> Surplus:
    """Rows of other texts than these and the probes, and of other models than these; None stands for every model.

    `text_hashes` are those of the current chunks, `fingerprints` those of the live, previous and unfinished builds.
    """
    keep_models = None if fingerprints is None else {raw_fingerprint(fingerprint) for fingerprint in fingerprints}
    ids = array("q")
    with cache.temporary(raw_hash(each) for each in text_hashes) as table:
        size = kept = 0
        by_model: dict[str, int] = {}
        for page in cache.scan(
            f"SELECT id, fingerprint, text_hash, length(vector), text_hash IN (SELECT text_hash FROM {table}) "
            "FROM vector WHERE id > ?"
        ):
            for number, fingerprint, text_hash, length, referred in page:
                if (referred or text_hash in PROBES) and (keep_models is None or fingerprint in keep_models):
                    kept += referred
                    continue
                ids.append(number)
                size += length or 0  # a damaged row may have no vector
                name = fingerprint.hex() if isinstance(fingerprint, bytes) else "?"
                by_model[name] = by_model.get(name, 0) + 1
            if progress:
                progress(len(page))
    return Surplus(len(ids), size, by_model, kept, ids)


def rows_of(cache: VectorCache, fingerprint: str, last: int) -> Surplus:
    """The rows of one model up to the `last` one."""
    key = raw_fingerprint(fingerprint)
    ids = array("q")
    size = 0
    for page in cache.scan("SELECT id, fingerprint, length(vector) FROM vector WHERE id > ?"):
        for number, model, length in page:
            if model == key and number <= last:
                ids.append(number)
                size += length or 0
    return Surplus(len(ids), size, {fingerprint: len(ids)}, 0, ids)


def rows_with(cache: VectorCache, text_hashes: Iterable[TextHash]) -> Surplus:
    """All rows of these texts, of every model."""
    ids = array("q")
    size = 0
    with cache.temporary(raw_hash(each) for each in text_hashes) as table:
        for page in cache.scan(
            f"SELECT id, length(vector) FROM vector WHERE text_hash IN (SELECT text_hash FROM {table}) AND id > ?"
        ):
            for number, length in page:
                ids.append(number)
                size += length or 0
    return Surplus(len(ids), size, {}, 0, ids)


def drop(cache: VectorCache, surplus: Surplus) -> None:
    """Drops these rows and gives their space back. Nobody may write to the cache since they were found."""
    for start in range(0, len(surplus.ids), _DELETE_ROWS):
        _delete(cache, surplus.ids[start : start + _DELETE_ROWS])
    with cache.transaction() as connection:
        for table in ("producer", "model"):  # few rows, and one look into the index for each
            connection.execute(
                f"DELETE FROM {table} "
                f"WHERE NOT EXISTS (SELECT 1 FROM vector WHERE vector.fingerprint = {table}.fingerprint)"
            )
    cache.shrink()


def _delete(cache: VectorCache, ids: Sequence[int]) -> None:
    if ids:
        with cache.transaction() as connection:
            connection.executemany("DELETE FROM vector WHERE id = ?", ((number,) for number in ids))


def _without_remedy(exc: CacheDamaged) -> str:
    """`verify` is the remedy."""
    return str(exc).removesuffix(REMEDY)


def _ref_of(fingerprint: object, text_hash: object) -> str:
    if isinstance(fingerprint, bytes) and isinstance(text_hash, bytes) and len(fingerprint) == len(text_hash) == 32:
        return str(embedding_ref(fingerprint.hex(), text_hash))
    return "cache:unreadable key"
