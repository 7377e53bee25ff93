"""Row 8 of the test programme: a bad cache is never served, and only what is bad is computed again.

CHUNKSINK_BYTE_FLIPS sets the number of byte flips; 1,000 is the long form.
"""

import os
import random
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import CacheDamaged
from chunksink.embeddings.maintenance import verify
from chunksink.embeddings.rows import seal
from chunksink.embeddings.salvage import sound_rows
from chunksink.embeddings.schema import REMEDY
from chunksink.embeddings.vectors import Embedded, EmbedReport, vectors_for
from tests.embeddings.helpers import HashEncoder, embed, filled, stream, tamper, text_hash

pytestmark = pytest.mark.promise(8)

FLIPS = int(os.environ.get("CHUNKSINK_BYTE_FLIPS", "80"))
DIMENSION = 384
ROWS = 200
PAGE = 8192


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "vectors.db"
    filled(path, HashEncoder(dimension=DIMENSION), ROWS)
    return path


@pytest.fixture
def copy(original: Path, tmp_path: Path) -> Path:
    """The file, to be damaged."""
    return Path(shutil.copy(original, tmp_path / "vectors.db"))


def right(items: list[Embedded], texts: list[str]) -> None:
    """Every vector is that of its text."""
    encoder = HashEncoder(dimension=DIMENSION)
    assert len(items) == len(texts)
    for item, text in zip(items, texts, strict=True):
        assert item.vector is not None
        assert (item.vector == encoder.vector(text)).all()


def run_again(path: Path) -> HashEncoder:
    """Embeds everything with the damaged file, again after a repair, and once more, when nothing is left to compute.

    The repair may cost a row: one whose key is damaged in the table only is still found through the index.
    """
    texts = [f"text number {number}" for number in range(ROWS)]
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(path) as cache:
        right(embed(texts, encoder, cache), texts)
    with VectorCache.open(path) as cache:
        verify(cache, repair=True)  # a flip in an unused byte of the structure harms nobody, but verify names it
        assert verify(cache).is_sound
        right(embed(texts, encoder, cache), texts)
        assert len(encoder.asked) == len(set(encoder.asked)), "nothing is computed twice"
        right(embed(texts, last := HashEncoder(dimension=DIMENSION), cache), texts)
    assert last.asked == []
    return encoder


def test_byte_flips_are_caught_wherever_they_fall(original: Path, tmp_path: Path) -> None:
    randomly = random.Random(8)
    content = original.read_bytes()
    costs = []
    for number in range(FLIPS):
        damaged = bytearray(content)
        # Half of the flips fall into the structure, which is a small part of the file.
        place = randomly.randrange(len(content))
        if number % 2:
            place = place // PAGE * PAGE + randomly.randrange(24)
        damaged[place] ^= 1 << randomly.randrange(8)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "vectors.db").write_bytes(damaged)
        costs.append(len(run_again(folder / "vectors.db").asked))
        shutil.rmtree(folder)
    # At most the rows of one page: five vectors, or, rarely, the keys of a page of the index.
    assert max(costs) <= PAGE // 70
    assert sum(cost > PAGE // (4 * DIMENSION) for cost in costs) <= FLIPS * 0.02


@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_a_truncated_file_costs_the_rows_that_are_gone(original: Path, tmp_path: Path, share: float) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(original.read_bytes()[: int(original.stat().st_size * share)])
    left = len({row.text_hash for row in sound_rows(path)})
    assert len(run_again(path).asked) == ROWS - left
    assert left >= ROWS * share - 50  # the other tables' pages come first


def test_the_damaged_file_is_kept_and_reported(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(original.read_bytes()[: PAGE * 30])
    with pytest.raises(CacheDamaged):
        VectorCache.open(path, read_only=True)
    with pytest.raises(CacheDamaged):
        VectorCache.open(path, salvage=False)
    with VectorCache.open(path) as cache:
        (report,) = cache.salvaged
    assert Path(report.kept).stat().st_size == PAGE * 30
    assert 0 < report.rows < ROWS
    assert not list(tmp_path.glob(".*.salvage*"))


def test_a_header_that_is_gone_does_not_lose_the_rows(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(bytes(100) + original.read_bytes()[100:])
    assert run_again(path).asked == []


def test_damage_that_shows_in_mid_run_is_mended_in_mid_run(copy: Path) -> None:
    texts = [f"text number {number}" for number in range(ROWS)]
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(copy) as cache:
        content = bytearray(copy.read_bytes())
        for page in range(3, len(content) // PAGE):
            content[page * PAGE] = 0xFF
        copy.write_bytes(content)
        report = EmbedReport()
        run = vectors_for(stream(texts), encoder, cache, report)
        right(list(run), texts)
        assert len(report.salvaged) == 1
    assert run_again(copy).asked == []


@pytest.mark.parametrize("columns", ["vector", "checksum, vector"], ids=["bytes", "bytes-and-checksum"])
def test_swapped_vectors_are_caught(copy: Path, columns: str) -> None:
    tamper(copy, "CREATE TABLE before AS SELECT * FROM vector WHERE id <= 10")
    tamper(
        copy,
        f"UPDATE vector SET ({columns}) = (SELECT {columns} FROM before WHERE before.id = 11 - vector.id) "
        "WHERE id <= 10",
    )
    tamper(copy, "DROP TABLE before")
    assert len(run_again(copy).asked) == 10


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
def test_rows_that_another_program_wrote_are_caught(copy: Path, sql: str) -> None:
    tamper(copy, sql + " WHERE id % 10 = 0")
    encoder = HashEncoder(dimension=DIMENSION)
    with VectorCache.open(copy) as cache:
        assert verify(cache).bad_rows == ROWS // 10
        report = EmbedReport()
        run = vectors_for(stream(f"text number {number}" for number in range(ROWS)), encoder, cache, report)
        list(run)
        assert report.corrupt == len(encoder.asked) == ROWS // 10
    assert run_again(copy).asked == []


def test_nan_is_caught_even_under_a_checksum_that_fits(copy: Path) -> None:
    encoder = HashEncoder(dimension=DIMENSION)
    vector = encoder.vector("text number 5").copy()
    vector[17] = np.nan
    row = seal(
        bytes.fromhex(encoder.fingerprint), bytes.fromhex(text_hash("text number 5")[7:]), 1, 0, vector.tobytes()
    )
    sql = "UPDATE vector SET vector = ?, checksum = ? WHERE text_hash = ?"
    tamper(copy, sql, row.vector, row.checksum, row.text_hash)
    assert run_again(copy).asked == ["text number 5"]


def test_a_row_given_to_another_model_is_caught(copy: Path) -> None:
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


def test_verify_names_a_few_bad_rows_and_repair_drops_all_of_them_alone(copy: Path) -> None:
    tamper(copy, "UPDATE vector SET tokens = tokens + 1 WHERE id > 50")
    tamper(copy, "UPDATE vector SET text_hash = 'x' WHERE id = 51")
    with VectorCache.open(copy) as cache:
        report = verify(cache)
        assert (report.rows, report.bad_rows, report.dropped) == (ROWS, ROWS - 50, 0)
        assert [row.reason for row in report.bad[1:]] == ["checksum mismatch"] * 19
        assert report.bad[0].ref == "cache:unreadable key"
        assert verify(cache, repair=True).dropped == ROWS - 50
        report = verify(cache)
    assert (report.is_sound, report.rows) == (True, 50)


def test_verify_goes_on_after_a_failed_check_of_the_file(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And ends where the rows cannot be read, as where they come in circles; it is the remedy itself."""
    with VectorCache.open(copy) as cache:
        read = cache.read

        def failing(sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
            if "integrity_check" in sql:
                raise CacheDamaged(f"the check itself failed{REMEDY}")
            return read(sql, parameters)

        def circle(*_: object) -> Iterator[list[tuple[object, ...]]]:
            raise CacheDamaged(f"row 3 comes after row 7{REMEDY}")

        monkeypatch.setattr(cache, "read", failing)
        report = verify(cache)
        monkeypatch.setattr(cache, "scan", circle)
        ended = verify(cache)
    assert (report.rows, report.damage) == (ROWS, ("the check itself failed",))
    assert ended.damage == ("the check itself failed", "row 3 comes after row 7")


def test_verify_salvages_a_broken_index(original: Path, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    content = bytearray(original.read_bytes())
    for page in range(1, len(content) // PAGE):
        if content[page * PAGE] == 0x0A:  # leaf of an index
            content[page * PAGE + 3 : page * PAGE + 5] = struct.pack(">H", 1)
    path.write_bytes(content)
    with VectorCache.open(path) as cache:
        report = verify(cache, repair=True)
        assert report.damage
        assert len(cache.salvaged) == 1
        assert verify(cache).is_sound
    assert run_again(path).asked == []


def test_a_process_whose_file_was_salvaged_by_another_goes_on_with_the_new_one(copy: Path) -> None:
    encoder = HashEncoder(dimension=DIMENSION)
    first, second = VectorCache.open(copy), VectorCache.open(copy)
    embed(["more"], encoder, first)
    assert second.salvage("by the other") is not None
    assert first.salvage("too late") is None
    embed(["still more"], encoder, first)
    first.close()
    assert len(embed(["more", "still more"], encoder, second)) == 2
    assert encoder.asked == ["more", "still more"]
    second.close()
    assert run_again(copy).asked == []
