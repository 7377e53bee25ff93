"""Damaged cache entries are never served, and only they are computed again."""

import os
import random
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.cachefile import REMEDY
from chunksink.embeddings.errors import CacheDamaged, CacheUnavailable, EmbeddingsError
from chunksink.embeddings.maintenance import unneeded_rows, verify
from chunksink.embeddings.references import embedding_ref, raw_key
from chunksink.embeddings.rows import row_of
from chunksink.embeddings.stats import lengths, model_limits, show, stats
from chunksink.embeddings.vectors import Embedded, EmbedReport, vectors_for
from tests.conftest import examples, sampled
from tests.embeddings.helpers import HashEncoder, embed, filled, numbered, stream, tamper, text_hash

pytestmark = pytest.mark.promise(8)

FLIPS = examples(1000)
DIMENSION = 384
ROWS = 200
PAGE = 16384


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "vectors.db"
    filled(path, HashEncoder(dimension=DIMENSION), ROWS)
    return path


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """A copy of the file, which the test damages."""
    return Path(shutil.copy(original, tmp_path / "vectors.db"))


def right(items: list[Embedded], texts: list[str]) -> None:
    """Every vector belongs to its text."""
    encoder = HashEncoder(dimension=DIMENSION)
    assert len(items) == len(texts)
    for item, text in zip(items, texts, strict=True):
        assert item.vector is not None
        assert (item.vector == encoder.vector(text)).all()


def read_all(path: Path) -> None:
    """Every reading call returns or raises one of our errors, and shows no wrong vector."""
    encoder = HashEncoder(dimension=DIMENSION)
    hashes = {text_hash(text): encoder.vector(text) for text in numbered(ROWS)}
    keys = list(map(raw_key, hashes))

    def show_some() -> None:
        for hash, vector in list(hashes.items())[::10]:
            shown = show(cache, embedding_ref(encoder.fingerprint, hash))
            assert shown is None or (shown.vector == vector).all()

    with suppress(EmbeddingsError), VectorCache.open(path, replace_damaged=False) as cache:
        calls: list[Callable[[], object]] = [
            lambda: stats(cache),
            lambda: model_limits(cache, encoder.fingerprint),
            lambda: lengths(cache, encoder.fingerprint, keys),
            lambda: unneeded_rows(cache, keys=[key.hex() for key in keys[:40]], fingerprints=None),
            show_some,
        ]
        for call in calls:
            with suppress(EmbeddingsError):
                call()


def run_again(path: Path) -> tuple[list[str], bool]:
    """Embed everything with the damaged file, again after a repair, and once more, when nothing is left to compute.

    Returns the texts that the first run computed, and whether that run or the repair has set the file aside.
    """
    read_all(path)
    texts = numbered(ROWS)
    encoder, repaired, last = (HashEncoder(dimension=DIMENSION) for _ in range(3))
    with VectorCache.open(path) as cache:
        right(embed(texts, encoder, cache), texts)
        by_run = kept_beside(path)
    if by_run:
        assert sorted(encoder.asked) == sorted(texts), "the new file began empty"
    with VectorCache.open(path) as cache:
        verify(cache, repair=True)  # a flip in an unused byte of the structure has no effect, but verify reports it
        by_repair = cache.set_aside
        assert verify(cache).is_sound
        right(embed(texts, repaired, cache), texts)
        if not by_repair:  # one row whose key was damaged in the table only, and which the index still finds
            assert len(repaired.asked) <= 1
            assert not set(repaired.asked) & set(encoder.asked), "nothing is computed twice"
        right(embed(texts, last, cache), texts)
    assert last.asked == []
    assert len(kept_beside(path)) == len(by_run) + len(by_repair) <= 1
    return encoder.asked, bool(by_run or by_repair)


def kept_beside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.damaged-?"))


def test_byte_flip_anywhere_is_detected(
    original: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    record_property("byte flips", FLIPS)
    randomly = random.Random(8)
    content = original.read_bytes()
    costs: list[list[int]] = [[], []]
    for number in range(FLIPS):
        damaged = bytearray(content)
        # Half of the flips are in the structure, which is a small part of the file.
        place = randomly.randrange(len(content))
        if number % 2:
            place = place // PAGE * PAGE + randomly.randrange(24)
        damaged[place] ^= 1 << randomly.randrange(8)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "vectors.db").write_bytes(damaged)
        encoded, is_set_aside = run_again(folder / "vectors.db")
        assert is_set_aside or len(encoded) <= PAGE // 70, "rows of one page"
        costs[number % 2].append(len(encoded))
        shutil.rmtree(folder)
    for cost, share in zip(costs, (0.9, 0.4), strict=True):
        assert sum(each <= PAGE // (4 * DIMENSION) for each in cost) >= len(cost) * share, "nine rows of a page"


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
def test_truncated_file_is_set_aside_and_reported(original: Path, tmp_path: Path, share: float) -> None:
    path = tmp_path / "vectors.db"
    left = original.read_bytes()[: int(original.stat().st_size * share)]
    path.write_bytes(left)
    with pytest.raises(CacheDamaged, match=r"`chunksink cache verify --repair` sets it aside"):
        VectorCache.open(path, replace_damaged=False)
    assert path.read_bytes() == left
    with VectorCache.open(path) as cache:
        (kept,) = cache.set_aside
        assert cache.read("SELECT count(*) FROM vector") == [(0,)]
    assert Path(kept).read_bytes() == left
    run_again(path)


def test_file_without_its_end_serves_no_wrong_vector(copy: Path) -> None:
    os.truncate(copy, int(copy.stat().st_size * 0.999))
    run_again(copy)


def test_damaged_files_are_all_kept(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    for _ in range(2):
        path.write_bytes(original.read_bytes()[: PAGE * 30])
        VectorCache.open(path).close()
    assert [file.name for file in kept_beside(path)] == ["vectors.db.damaged-1", "vectors.db.damaged-2"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a killed process: the database, and a log with all rows."""
    folder = tmp_path_factory.mktemp("killed")
    with VectorCache.open(folder / "vectors.db") as writer:
        embed(numbered(50), HashEncoder(), writer)
        for suffix in ("", "-wal"):
            shutil.copy(f"{writer.path}{suffix}", f"{folder / 'left.db'}{suffix}")
    return folder / "left.db"


@pytest.mark.parametrize("left", [0, 1, 15, 50, 99, 100, 4096])
def test_file_cut_off_within_its_first_page_is_recovered(killed: Path, tmp_path: Path, left: int) -> None:
    """From 100 bytes on, SQLite takes the first page from the log. A shorter file may become empty."""
    path = tmp_path / "vectors.db"
    path.write_bytes(killed.read_bytes()[:left])
    shutil.copy(f"{killed}-wal", f"{path}-wal")
    with VectorCache.open(path) as cache:
        items = embed(numbered(50), encoder := HashEncoder(), cache)
        assert len({item.cached for item in items}) == 1
        assert items[0].cached or left < 100
        assert all((item.vector == encoder.vector(text)).all() for item, text in zip(items, numbered(50), strict=True))
        assert verify(cache).is_sound


@pytest.mark.parametrize("part", sampled(range(16), 8))
def test_damage_in_the_first_page_serves_no_wrong_vector(original: Path, tmp_path: Path, part: int) -> None:
    """The header and the schema's text, where SQLite's own errors vary a lot."""
    content, texts = original.read_bytes(), numbered(ROWS)
    for place in [place for place in range(PAGE) if content[place]][part::16]:
        folder = tmp_path / str(place)
        folder.mkdir()
        damaged = bytearray(content)
        damaged[place] ^= 0x80
        (folder / "vectors.db").write_bytes(damaged)
        try:
            cache = VectorCache.open(folder / "vectors.db")
        except CacheUnavailable:
            assert place == 18, "SQLite takes the file for one that must not be written"
            assert (folder / "vectors.db").read_bytes() == damaged
            continue
        with cache:
            right(embed(texts, encoder := HashEncoder(dimension=DIMENSION), cache), texts)
            assert len(encoder.asked) == (ROWS if kept_beside(cache.path) else 0), place
        shutil.rmtree(folder)


def test_damage_found_during_a_run_is_repaired_in_that_run(copy: Path) -> None:
    texts = numbered(ROWS)
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(copy) as cache:
        content = bytearray(copy.read_bytes())
        for page in range(3, len(content) // PAGE):
            content[page * PAGE] = 0xFF
        copy.write_bytes(content)
        report = EmbedReport()
        right(list(vectors_for(stream(texts), encoder, cache, report)), texts)
        assert report.set_aside == [f"{copy}.damaged-1"]
    with VectorCache.open(copy) as cache:
        assert all(item.cached for item in embed(texts, encoder, cache))


@pytest.mark.parametrize("columns", ["vector", "checksum, vector"], ids=["bytes", "bytes-and-checksum"])
def test_swapped_vectors_are_detected(copy: Path, columns: str) -> None:
    tamper(copy, "CREATE TABLE before AS SELECT * FROM vector WHERE id <= 10")
    tamper(
        copy,
        f"UPDATE vector SET ({columns}) = (SELECT {columns} FROM before WHERE before.id = 11 - vector.id) "
        "WHERE id <= 10",
    )
    tamper(copy, "DROP TABLE before")
    assert len(run_again(copy)[0]) == 10


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE vector SET vector = substr(vector, 1, 100)",
        "UPDATE vector SET vector = 7",
        "UPDATE vector SET precision = 'x'",
        "UPDATE vector SET precision = 1 - precision",
        "UPDATE vector SET tokens = 12",
        "UPDATE vector SET checksum = x''",
    ],
)
def test_rows_written_by_another_program_are_detected(copy: Path, sql: str) -> None:
    tamper(copy, sql + " WHERE id % 10 = 0")
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(copy) as cache:
        assert verify(cache).bad_rows == ROWS // 10
        report = EmbedReport()
        run = vectors_for(stream(f"text number {number}" for number in range(ROWS)), encoder, cache, report)
        list(run)
        assert report.corrupt == len(encoder.asked) == ROWS // 10
    assert run_again(copy) == ([], False)


def test_nan_with_a_matching_checksum_is_detected(copy: Path) -> None:
    encoder = HashEncoder(dimension=DIMENSION)
    vector = encoder.vector("text number 5").copy()
    vector[17] = np.nan
    key = bytes.fromhex(text_hash("text number 5")[7:])
    *_, digest, damaged = row_of(bytes.fromhex(encoder.fingerprint), key, 1, 0, vector.tobytes())
    sql = "UPDATE vector SET vector = ?, checksum = ? WHERE text_hash = ?"
    tamper(copy, sql, damaged, digest, key)
    assert run_again(copy) == (["text number 5"], False)


def test_row_moved_to_another_model_is_detected(copy: Path) -> None:
    other = HashEncoder(dimension=DIMENSION, name="other")
    tamper(copy, "UPDATE vector SET fingerprint = ?", bytes.fromhex(other.fingerprint))
    with VectorCache.open(copy) as cache:
        report = EmbedReport()
        run = vectors_for(stream(f"text number {number}" for number in range(ROWS)), other, cache, report)
        list(run)
        assert report.corrupt == report.encoded == ROWS


def test_another_dimension_under_the_same_fingerprint_is_not_served(copy: Path) -> None:
    with VectorCache.open(copy) as cache:
        keys = [bytes.fromhex(text_hash("text number 1")[7:])]
        found = cache.lookup(HashEncoder(dimension=DIMENSION).fingerprint, keys, dimension=DIMENSION // 2)
        assert found.corrupt == tuple(keys)


def test_verify_names_some_bad_rows_and_repair_drops_exactly_the_bad_ones(copy: Path) -> None:
    tamper(copy, "UPDATE vector SET tokens = tokens + 1 WHERE id > 50")
    tamper(copy, "UPDATE vector SET text_hash = 'x' WHERE id = 51")
    with VectorCache.open(copy) as cache:
        report = verify(cache)
        assert (report.rows, report.bad_rows, report.dropped) == (ROWS, ROWS - 50, 0)
        assert [row.reason for row in report.bad[1:]] == ["checksum mismatch"] * 19
        assert report.bad[0].ref.startswith("cache:")
        assert verify(cache, repair=True).dropped == ROWS - 50
        report = verify(cache)
    assert (report.is_sound, report.rows) == (True, 50)


def test_verify_when_the_file_check_fails_reports_it(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> list[tuple[object, ...]]:
        raise CacheDamaged(f"the check itself failed{REMEDY}")

    with VectorCache.open(copy) as cache:
        monkeypatch.setattr(cache, "read", failing)
        assert verify(cache).damage == ("the check itself failed",)


def test_verify_when_an_index_is_broken_sets_the_file_aside(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    content = bytearray(original.read_bytes())
    for page in range(1, len(content) // PAGE):
        cells = int.from_bytes(content[page * PAGE + 3 : page * PAGE + 5], "big")
        if content[page * PAGE] == 0x0A and cells > 3:  # leaf of an index, other than that of the migrations
            content[page * PAGE + 3 : page * PAGE + 5] = struct.pack(">H", 1)
    path.write_bytes(content)
    with VectorCache.open(path) as cache:
        assert verify(cache).damage
        assert not cache.set_aside
        assert verify(cache, repair=True).damage
        assert len(cache.set_aside) == 1
        assert verify(cache).is_sound


def test_process_when_another_set_its_file_aside_uses_the_new_file(copy: Path) -> None:
    encoder = HashEncoder(dimension=DIMENSION)
    first, second = VectorCache.open(copy), VectorCache.open(copy)
    embed(["more"], encoder, first)
    assert second.replace_damaged() == f"{copy}.damaged-1"
    assert first.replace_damaged() is None
    embed(["still more"], encoder, first)
    first.close()
    assert [item.cached for item in embed(["more", "still more"], encoder, second)] == [False, True]
    second.close()
    assert encoder.asked == ["more", "still more", "more"]
    with VectorCache.open(copy) as cache:
        assert verify(cache).rows == 2


def test_vectors_of_a_new_file_are_not_outdated(copy: Path) -> None:
    """Rows of the former file were outdated, and the new file numbers its rows from one again."""
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(copy) as cache:
        cache.outdate(encoder.fingerprint)
        assert cache.last_outdated(encoder.fingerprint) == ROWS
        cache.replace_damaged()
        embed(numbered(5), encoder, cache)
        assert cache.last_outdated(encoder.fingerprint) == 0
        assert all(item.cached for item in embed(numbered(5), encoder, cache))
