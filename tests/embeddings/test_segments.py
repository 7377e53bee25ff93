"""Vector segments: written from vectors or a cache, imported into a cache."""

import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.chunkbus.errors import ExtraMissing
from chunksink.chunkbus.storage import Storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import WrongVectors
from chunksink.embeddings.maintenance import verify
from chunksink.embeddings.rows import COLUMNS
from chunksink.embeddings.segments import (
    export_segments,
    import_segments,
    segment_names,
    write_segment,
)
from tests.conftest import HEAVY
from tests.embeddings.helpers import HashEncoder, embed, numbered, tamper
from tests.embeddings.segment_files import ENCODER, file_of, keys_of, written
from tests.embeddings.test_processes import start

COUNT = 300


@pytest.fixture
def other(tmp_path: Path) -> VectorCache:
    return VectorCache(tmp_path / "other.db")


def content(cache: VectorCache) -> list[tuple[Any, ...]]:
    """All rows with the model that computed them, in the order of their keys."""
    return cache.read(
        f"SELECT hex(fingerprint), {COLUMNS}, details FROM vector JOIN producer p USING (fingerprint) "
        "WHERE p.id = producer ORDER BY fingerprint, text_hash, context_hash"
    )


# -- round trips -----------------------------------------------------------------------------------------------------


def test_written_segment_serves_its_vectors_after_the_import(place: Storage, cache: VectorCache) -> None:
    texts = numbered(COUNT)
    tokens = list(range(COUNT))
    name = write_segment(place, ENCODER.info, keys_of(texts), ENCODER.encode(texts), tokens)
    report = import_segments(cache, place, [name])
    assert (report.segments, report.rows, report.added, report.bad_rows, report.bad) == (1, COUNT, COUNT, 0, [])
    found = cache.lookup(ENCODER.fingerprint, keys_of(texts), dimension=ENCODER.dimension)
    order = np.argsort(found.positions)
    assert (found.vectors[order] == ENCODER.encode(texts)).all()
    assert found.lengths[order].tolist() == tokens
    assert verify(cache).is_sound


def test_exported_cache_is_equal_after_the_import(place: Storage, cache: VectorCache, other: VectorCache) -> None:
    upgraded, titled = HashEncoder(), HashEncoder(embed_context="title-and-headings", dimension=8)
    upgraded.info = replace(upgraded.info, libraries={"hash": "2"})
    half = HashEncoder(name="half", precision="bfloat16")
    texts = numbered(COUNT)
    embed(texts[:200], ENCODER, cache)
    embed(texts, upgraded, cache)
    embed(texts, half, cache)
    cache.put(titled.info, [key + b"c" * 16 for key in keys_of(texts)], titled.encode(texts), [7] * COUNT)
    models = [encoder.fingerprint for encoder in (ENCODER, half, titled)]
    report = export_segments(cache, place, models, segment_rows=100)
    assert (report.rows, report.bad_rows, report.written) == (3 * COUNT, 0, report.segments)
    imported = import_segments(other, place)
    assert (imported.segments, imported.added, imported.bad) == (report.segments, 3 * COUNT, [])
    assert content(other) == content(cache)
    assert other.read("SELECT name, dimension FROM model ORDER BY fingerprint") == cache.read(
        "SELECT name, dimension FROM model ORDER BY fingerprint"
    )


def test_export_of_one_model_leaves_the_others_out(place: Storage, cache: VectorCache, other: VectorCache) -> None:
    embed(["a"], ENCODER, cache)
    embed(["a", "b"], HashEncoder(name="second"), cache)
    assert export_segments(cache, place, [ENCODER.fingerprint]).rows == 1
    import_segments(other, place)
    assert other.read("SELECT name FROM model") == [("hash",)]


def test_second_export_writes_only_what_has_changed(place: Storage, cache: VectorCache) -> None:
    embed(numbered(COUNT), ENCODER, cache)
    first = export_segments(cache, place, [ENCODER.fingerprint], segment_rows=50)
    again = export_segments(cache, place, [ENCODER.fingerprint], segment_rows=50)
    assert (first.segments, first.written, again.segments, again.written) == (8, 8, 8, 0)
    embed(["one more"], ENCODER, cache)
    assert export_segments(cache, place, [ENCODER.fingerprint], segment_rows=50).written == 1


def test_export_replaces_a_segment_that_was_cut_off(tmp_path: Path, place: Storage, cache: VectorCache) -> None:
    embed(["a"], ENCODER, cache)
    export_segments(cache, place, [ENCODER.fingerprint])
    [name] = segment_names(place)
    file = file_of(tmp_path, name)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    assert export_segments(cache, place, [ENCODER.fingerprint]).written == 1
    assert file.read_bytes() == whole


def test_export_leaves_bad_rows_out(place: Storage, cache: VectorCache, other: VectorCache) -> None:
    embed(numbered(10), ENCODER, cache)
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64) WHERE id = 3")
    report = export_segments(cache, place, [ENCODER.fingerprint])
    assert (report.rows, report.bad_rows) == (9, 1)
    assert import_segments(other, place).added == 9


@pytest.mark.parametrize("damage", ["UPDATE model SET details = '{'", "DELETE FROM model", "DELETE FROM producer"])
def test_export_without_a_record_of_the_model_leaves_its_rows_out(
    damage: str, place: Storage, cache: VectorCache
) -> None:
    embed(["a"], ENCODER, cache)
    tamper(cache.path, damage)
    report = export_segments(cache, place, [ENCODER.fingerprint])
    assert (report.segments, report.bad_rows) == (0, 1)


def test_segments_need_pyarrow(place: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    with pytest.raises(ExtraMissing, match=r"\.\[cache\]"):
        written(place, ["a"])


def test_write_of_vectors_that_are_not_finite_or_too_long_is_refused(place: Storage) -> None:
    for vectors in (np.full((1, 16), np.nan, "f4"), np.zeros((1, 15), "f4")):
        with pytest.raises(WrongVectors):
            write_segment(place, ENCODER.info, keys_of(["a"]), vectors)
    assert segment_names(place) == []


# -- repeated imports ------------------------------------------------------------------------------------------------


def test_import_skips_segments_that_it_has_read(place: Storage, cache: VectorCache) -> None:
    written(place, numbered(10))
    import_segments(cache, place)
    written(place, numbered(20))
    report = import_segments(cache, place)
    assert (report.segments, report.known, report.rows, report.added) == (1, 1, 20, 10)


def test_import_never_replaces_a_more_precise_vector(place: Storage, cache: VectorCache) -> None:
    half = HashEncoder(precision="bfloat16")
    written(place, ["a", "b"], half)
    embed(["a"], ENCODER, cache)
    assert import_segments(cache, place).added == 1
    written(place, ["b"])
    assert import_segments(cache, place).added == 1
    assert cache.read("SELECT DISTINCT precision FROM vector") == [(1,)]


def test_import_after_a_repair_brings_dropped_rows_back(place: Storage, cache: VectorCache) -> None:
    written(place, ["a", "b"])
    import_segments(cache, place)
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64) WHERE id = 1")
    assert verify(cache, repair=True).dropped == 1
    assert import_segments(cache, place).added == 1


# -- processes -------------------------------------------------------------------------------------------------------

IMPORTING = """
import os, signal, sys
from chunksink.chunkbus.storage import open_storage
from chunksink.embeddings import segments
from chunksink.embeddings.cache import VectorCache

segments._BATCH_ROWS = 50
dies_at, calls = int(sys.argv[3]), []

def counted(step):
    def call(self, *arguments):
        calls.append(1)
        if len(calls) == dies_at:
            with self.transaction():
                os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *arguments)
    return call

VectorCache.add = counted(VectorCache.add)
VectorCache.record_segment = counted(VectorCache.record_segment)
with VectorCache.open(sys.argv[1]) as cache:
    report = segments.import_segments(cache, open_storage(sys.argv[2]))
print(report.added)
"""

EXPORTING = """
import os, signal, sys
from chunksink.chunkbus import storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.segments import export_segments

place, writes = storage.open_storage(sys.argv[2]), []

class Dying:
    entries = staticmethod(place.entries)

    def write(self, name, data):
        writes.append(name)
        if len(writes) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        place.write(name, data)

with VectorCache.open(sys.argv[1]) as cache:
    export_segments(cache, Dying(), [sys.argv[3]], segment_rows=50)
"""


@pytest.mark.promise(2)
def test_export_after_a_kill_writes_only_the_rest(place: Storage, cache: VectorCache, other: VectorCache) -> None:
    embed(numbered(COUNT), ENCODER, cache)
    killed = start(EXPORTING, cache.path, cache.path.parent / "place", ENCODER.fingerprint)
    killed.communicate()
    assert (killed.returncode, len(segment_names(place))) == (-signal.SIGKILL, 2)
    report = export_segments(cache, place, [ENCODER.fingerprint], segment_rows=50)
    assert report.written == report.segments - 2
    import_segments(other, place)
    assert content(other) == content(cache)


@pytest.mark.promise(2)
@pytest.mark.parametrize("dies_at", [2, 5])
def test_import_after_a_kill_completes_it(
    dies_at: int, place: Storage, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunksink.embeddings.segments._BATCH_ROWS", 50)
    written(place, numbered(200))
    killed = start(IMPORTING, cache.path, cache.path.parent / "place", dies_at)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    assert cache.read("SELECT count(*) FROM vector") == [(50 * (dies_at - 1),)]
    assert cache.read("SELECT count(*) FROM segment") == [(0,)]
    report = import_segments(cache, place)
    assert (report.segments, report.added) == (1, 200 - 50 * (dies_at - 1))


def test_two_importers_at_once_add_each_row_once(place: Storage, cache: VectorCache) -> None:
    for number in range(4):
        written(place, numbered(1000 * (number + 1)))
    importers = [start(IMPORTING, cache.path, cache.path.parent / "place", 0) for _ in range(2)]
    added = [int(process.communicate()[0]) for process in importers]
    assert sum(added) == 4000
    assert verify(cache).rows == 4000


MEASURED = """
import hashlib, resource, sys
import numpy as np, pyarrow.ipc
from chunksink.chunkbus.storage import open_storage
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.segments import export_segments, import_segments
from tests.embeddings.helpers import HashEncoder

ROWS, SIZE = int(sys.argv[2]), 384
encoder, place = HashEncoder(dimension=SIZE), open_storage(sys.argv[1] + "/place")
numbers = np.random.default_rng(1)
with VectorCache.open(sys.argv[1] + "/one.db") as cache, VectorCache.open(sys.argv[1] + "/two.db") as copy:
    for each in (cache, copy):
        each.read("PRAGMA cache_size = -1000")
    for start in range(0, ROWS, 1000):
        keys = [hashlib.sha256(str(number).encode()).digest() for number in range(start, start + 1000)]
        cache.put(encoder.info, keys, numbers.standard_normal((1000, SIZE)).astype("f4"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    export_segments(cache, place, [encoder.fingerprint], segment_rows=1000)
    report = import_segments(copy, place)
print(report.added, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_does_not_grow_with_the_cache(tmp_path: Path) -> None:
    """The vectors of the quick form are 31 MB, those of a segment 1.5 MB."""
    rows = 100_000 if HEAVY else 20_000
    measured = start(MEASURED, tmp_path, rows)
    output, errors = measured.communicate()
    assert measured.returncode == 0, errors
    added, kibibytes = map(int, output.split())
    assert added == rows
    assert kibibytes < 30_000
