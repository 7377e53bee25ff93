"""A file that SQLite cannot read gives its sound rows, whatever byte of it is damaged and however much is gone."""

import shutil
from pathlib import Path

import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import CacheDamaged
from chunksink.embeddings.salvage import sound_rows
from tests.conftest import HEAVY
from tests.embeddings.helpers import HashEncoder, embed, filled, numbered

PAGE = 8192
PARTS = 4 if HEAVY else 16


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("salvage") / "vectors.db"
    filled(path, HashEncoder(), 300)
    return path


def cleared(folder: Path) -> Path:
    for file in folder.iterdir():
        file.unlink()
    return folder / "vectors.db"


@pytest.mark.parametrize("part", range(PARTS if HEAVY else 1))
def test_no_byte_of_the_first_page_costs_a_row(original: Path, tmp_path: Path, part: int) -> None:
    """The header and the text of the schema: SQLite itself says many different things about them."""
    content = original.read_bytes()
    places = [place for place in range(PAGE) if content[place]]
    for place in places[part::PARTS]:
        path = cleared(tmp_path)
        damaged = bytearray(content)
        damaged[place] ^= 0x80
        path.write_bytes(damaged)
        with VectorCache.open(path) as cache:
            embed(numbered(300), encoder := HashEncoder(), cache)
            assert encoder.asked == [], place
            if not cache.salvaged:
                embed(["and one more"], encoder, cache)
            for report in cache.salvaged:
                assert report.rows == 300, place


@pytest.mark.parametrize("place", [16, 68, 7000, 8150])
def test_a_reader_says_what_mends_the_first_page(original: Path, tmp_path: Path, place: int) -> None:
    path = tmp_path / "vectors.db"
    damaged = bytearray(original.read_bytes())
    damaged[place : place + 20] = b"\xff" * 20
    path.write_bytes(damaged)
    with pytest.raises(CacheDamaged, match=r"damaged: .*; `chunksink cache verify --repair` salvages its sound rows$"):
        VectorCache.open(path, read_only=True)
    assert path.read_bytes() == damaged


# -- vectors larger than a page --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_file", "in_log"), [(20, 20), (0, 40), (40, 0)])
def test_rows_larger_than_a_page_are_found_in_the_log_too(tmp_path: Path, in_file: int, in_log: int) -> None:
    encoder, path, copy = HashEncoder(dimension=3072), tmp_path / "vectors.db", tmp_path / "copy.db"
    with VectorCache.open(path) as writer:
        embed(numbered(in_file), encoder, writer)
        writer.read("PRAGMA wal_checkpoint(TRUNCATE)")
        embed(numbered(in_file + in_log), encoder, writer)
        damaged = bytearray(path.read_bytes())
        damaged[5] ^= 0x80  # SQLite would take the header from the log, if it came to that
        copy.write_bytes(damaged)
        shutil.copy(f"{path}-wal", f"{copy}-wal")
    with VectorCache.open(copy) as cache:
        assert [report.rows for report in cache.salvaged] == [40]
        again = HashEncoder(dimension=3072)
        assert all(item.cached for item in embed(numbered(40), again, cache))


def test_a_row_that_was_written_again_is_found_in_an_older_frame(tmp_path: Path) -> None:
    """The newest copy of its page may be another row's by now."""
    encoder, path, copy = HashEncoder(dimension=3072), tmp_path / "vectors.db", tmp_path / "copy.db"
    with VectorCache.open(path) as writer:
        embed(numbered(20), encoder, writer)
        with writer.transaction() as connection:
            connection.execute("DELETE FROM vector WHERE id % 2 = 0")
        embed([f"another {number}" for number in range(10)], encoder, writer)
        copy.write_bytes(bytes(path.stat().st_size))
        shutil.copy(f"{path}-wal", f"{copy}-wal")
    assert len({row.text_hash for row in sound_rows(copy)}) == 30


def test_chains_that_branch_and_circle_come_to_an_end(tmp_path: Path) -> None:
    encoder, path = HashEncoder(dimension=100_000), tmp_path / "vectors.db"
    with VectorCache.open(path) as writer:
        for _ in range(5):
            embed(["one"], encoder, writer)
            with writer.transaction() as connection:
                connection.execute("DELETE FROM vector")
        log = bytearray(Path(f"{path}-wal").read_bytes())
    for frame in range(32, len(log), 24 + PAGE):
        if log[frame + 24] != 0x0D:
            log[frame + 24 : frame + 28] = log[frame : frame + 4]  # follows itself
    Path(f"{path}-wal").write_bytes(log)
    list(sound_rows(path))


# -- truncated files -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a killed process leaves: a file, and a log with all the rows."""
    folder = tmp_path_factory.mktemp("killed")
    with VectorCache.open(folder / "vectors.db") as writer:
        embed(numbered(50), HashEncoder(), writer)
        for suffix in ("", "-wal"):
            shutil.copy(f"{writer.path}{suffix}", f"{folder / 'left.db'}{suffix}")
    return folder / "left.db"


@pytest.mark.parametrize("left", [0, 1, 15, 50, 70, 99, 100, 512, 4096, 8191])
def test_a_file_cut_off_within_its_first_page(killed: Path, original: Path, tmp_path: Path, left: int) -> None:
    """Beside a log, and alone."""
    path = tmp_path / "vectors.db"
    path.write_bytes(killed.read_bytes()[:left])
    shutil.copy(f"{killed}-wal", f"{path}-wal")
    if left < 100:
        with pytest.raises(CacheDamaged, match=f"only {left} bytes of it are left"):
            VectorCache.open(path, read_only=True)
    with VectorCache.open(path) as cache:
        # From 100 bytes on SQLite itself can take the first page from the log.
        assert [report.rows for report in cache.salvaged] == ([50] if left < 100 else [])
        assert all(item.cached for item in embed(numbered(50), HashEncoder(), cache))
    alone = tmp_path / "alone.db"
    alone.write_bytes(original.read_bytes()[:left])
    with VectorCache.open(alone) as cache:
        found = [(report.rows, Path(report.kept).stat().st_size) for report in cache.salvaged]
    assert found == ([(0, left)] if left else []), "an empty one is new"
