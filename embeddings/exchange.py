"""Carries a cache from one machine to another: one file (see `export_file`), not believed without `proof`.

An import reads the file three times: the whole checksum; the samples that prove it; then the rows, each against its
own checksum. Nothing is written before the first two have passed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import ExchangeError
from chunksink.embeddings.export_file import MOST_MODELS, OpenExport, checked, head_of, packed
from chunksink.embeddings.proof import EncoderFor, Kind, Proof, Texts, prove
from chunksink.embeddings.rows import KEY_BYTES, VectorRow, flaw
from chunksink.embeddings.stats import details_of

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was exported."""

    rows: int
    skipped: int
    """Rows that failed their check and were left out."""
    sha256: str
    file_bytes: int


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported."""

    rows: int
    """Rows of the file that this cache serves now, those that were there already included."""
    unproved: int
    """Rows left out, because too few samples of theirs could be encoded again."""
    proofs: tuple[Proof, ...]


# -- export ------------------------------------------------------------------------------------------------------


def export_cache(cache: VectorCache, file: Path | str, *, replace: bool = False) -> ExportReport:
    """Writes all sound rows to one file, which appears when it is complete.

    Another file is put in its place only with `replace`, and the cache's own files never are.
    """
    target = Path(file)
    _refuse_target(cache, target, replace)
    keys = _fingerprints(cache)
    number = {key: position for position, key in enumerate(keys)}
    # Of our process, so that two exports do not write into one file; made anew, so that no link is followed.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    digest = hashlib.sha256()
    rows = skipped = 0
    try:
        unfinished.unlink(missing_ok=True)
        with unfinished.open("xb") as out:

            def write(part: bytes) -> None:
                digest.update(part)
                out.write(part)

            write(head_of([_described(cache, key) for key in keys]))
            for row in _rows(cache):
                if row is None or row.fingerprint not in number:
                    skipped += 1
                else:
                    write(packed(row, number[row.fingerprint]))
                    rows += 1
            out.write(digest.digest())
            written = out.tell()
            out.flush()
            os.fsync(out.fileno())
        _refuse_target(cache, target, replace)  # it took a while
        unfinished.replace(target)
    except OSError as exc:
        raise ExchangeError(f"cannot write {target}: {exc.strerror or exc}") from exc
    finally:
        with suppress(OSError):
            unfinished.unlink()
    return ExportReport(rows, skipped, digest.hexdigest(), written)


def _refuse_target(cache: VectorCache, target: Path, replace: bool) -> None:
    if any(_is_same(target, Path(f"{cache.path}{suffix}")) for suffix in ("", "-wal", "-shm", ".lock")):
        raise ExchangeError(f"{target} belongs to the cache itself; name another file")
    if not os.path.lexists(target):
        return
    if not target.is_file() and not target.is_symlink():
        raise ExchangeError(f"{target} is not a file that could be replaced; name another")
    if not replace:
        raise ExchangeError(f"{target} exists; name another file, or ask for it to be replaced")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one is not there, now
        return os.path.realpath(one) == os.path.realpath(other)


def _fingerprints(cache: VectorCache) -> list[bytes]:
    """Of all rows, by one look into the index for each; UNION ends it even where a damaged index goes in circles."""
    found = cache.read(
        "WITH RECURSIVE each(key) AS (SELECT min(fingerprint) FROM vector UNION "
        "SELECT (SELECT min(fingerprint) FROM vector WHERE fingerprint > key) FROM each WHERE key IS NOT NULL) "
        f"SELECT key FROM each WHERE key IS NOT NULL LIMIT {MOST_MODELS}"
    )
    return [key for (key,) in found if isinstance(key, bytes) and len(key) == KEY_BYTES]


def _described(cache: VectorCache, key: bytes) -> dict[str, Any]:
    found = cache.read("SELECT name, dimension, details FROM model WHERE fingerprint = ?", (key,))
    name, dimension, details = found[0] if found else ("", None, "{}")
    return {
        "fingerprint": key.hex(),
        "name": name if isinstance(name, str) else "",
        "dimension": dimension if isinstance(dimension, int) else None,
        "details": details_of(details),
    }


def _rows(cache: VectorCache) -> Iterator[VectorRow | None]:
    """All rows that are there now; None for one that fails its check."""
    (newest,) = cache.read("SELECT coalesce(max(id), 0) FROM vector")[0]
    for page in cache.scan(
        "SELECT id, fingerprint, text_hash, precision, tokens, checksum, vector FROM vector WHERE id > ? AND id <= ?",
        (newest,),
    ):
        for _, *values in page:
            yield VectorRow(*values) if flaw(tuple(values)) is None else None


# -- import ------------------------------------------------------------------------------------------------------


def import_cache(cache: VectorCache, file: Path | str, *, texts: Texts, encoder_for: EncoderFor) -> ImportReport:
    """Takes over the rows of an export that are proved to come from the model they name.

    `texts` are the chunks of this machine, from which the samples are taken: a text whose hash is not in the file
    proves nothing. Of each model and precision 16 samples are needed, or all of its rows where it has fewer; with less
    its rows are left out. A sample that disagrees refuses the whole file. A float32 row here is never replaced by a
    bfloat16 one.
    """
    source = Path(file)
    try:
        opened = source.open("rb")
    except OSError as exc:
        raise ExchangeError(f"cannot read {source}: {exc.strerror or exc}") from exc
    with opened:
        export = checked(opened, source)
        proofs = prove(cache, export, texts, encoder_for)
        proved = {kind for kind, proof in proofs.items() if proof.checked}
        served, unproved = _take_over(cache, export, proved)
    return ImportReport(served, unproved, tuple(proofs.values()))


def _take_over(cache: VectorCache, export: OpenExport, proved: set[Kind]) -> tuple[int, int]:
    served = unproved = 0
    batches: dict[Kind, dict[bytes, VectorRow]] = {kind: {} for kind in proved}
    for row in export.rows():
        batch = batches.get((row.fingerprint, row.precision))
        if batch is None:
            unproved += 1
            continue
        batch.setdefault(row.text_hash, row)
        if len(batch) == _BATCH:
            served += _put(cache, export, batch)
            batch.clear()
    return served + sum(_put(cache, export, batch) for batch in batches.values() if batch), unproved


def _put(cache: VectorCache, export: OpenExport, batch: Mapping[bytes, VectorRow]) -> int:
    """How many of these rows are served afterwards: a corrupt one that stood in their place is not left there."""
    info = export.info(next(iter(batch.values())))

    def look_up() -> tuple[int, tuple[bytes, ...]]:
        found = cache.lookup(info.fingerprint, list(batch), dimension=info.dimension, request=info.requested)
        return len(found.positions), found.corrupt

    cache.put_rows(list(batch.values()), info)
    served, corrupt = look_up()
    if corrupt:
        key = next(iter(batch.values())).fingerprint
        cache.put_rows([batch[each] for each in corrupt], info, replaced={(key, each) for each in corrupt})
        served, _ = look_up()
    return served
