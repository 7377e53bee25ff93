"""A cache travels as one file, and what comes from elsewhere is not believed."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Encoder, ModelInfo, Vectors
from chunksink.embeddings.errors import BadExport, ExchangeError, ImportRefused
from chunksink.embeddings.exchange import ImportReport, export_cache, import_cache
from chunksink.embeddings.maintenance import verify
from chunksink.embeddings.proof import EncoderFor
from chunksink.embeddings.stats import stats
from tests.embeddings.helpers import HashEncoder, embed, numbered, stream, tamper, text_hash


def only(encoder: Encoder) -> EncoderFor:
    def encoder_for(info: ModelInfo) -> Encoder | None:
        return encoder if (info.fingerprint, info.precision) == (encoder.fingerprint, encoder.precision) else None

    return encoder_for


@pytest.fixture
def other(tmp_path: Path) -> Iterator[VectorCache]:
    with VectorCache.open(tmp_path / "other.db") as opened:
        yield opened


def imported(to: VectorCache, file: Path, texts: Sequence[str], encoder: Encoder) -> ImportReport:
    return import_cache(to, file, texts=lambda: stream(texts), encoder_for=only(encoder))


def exported(cache: VectorCache, file: Path, encoder: HashEncoder, count: int = 3000) -> Path:
    embed(numbered(count), encoder, cache)
    report = export_cache(cache, file)
    assert (report.rows, report.skipped, report.file_bytes) == (count, 0, file.stat().st_size)
    return file


def test_a_cache_travels(cache: VectorCache, other: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder())
    encoder = HashEncoder()
    report = imported(other, file, numbered(3000), encoder)
    assert report.rows == 3000
    assert report.proofs[0].checked == 16
    assert report.proofs[0].least_cosine == pytest.approx(1)
    assert len(encoder.asked) == 16
    again = HashEncoder()
    assert all(item.cached for item in embed(numbered(3000), again, other))
    assert stats(other).models[0].name == "hash"


def test_bad_rows_are_left_out_of_an_export(cache: VectorCache, tmp_path: Path) -> None:
    embed(numbered(10), HashEncoder(), cache)
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64) WHERE id = 3")
    report = export_cache(cache, tmp_path / "x")
    assert (report.rows, report.skipped) == (9, 1)


def test_a_damaged_export_is_refused_wherever_the_damage_is(
    cache: VectorCache, other: VectorCache, tmp_path: Path
) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder(), 20)
    content = file.read_bytes()
    bad = [content[:length] for length in range(0, len(content), 97)]
    for place in range(0, len(content), 61):
        flipped = bytearray(content)
        flipped[place] ^= 4
        bad.append(bytes(flipped))
    for damaged in [*bad, content + b"x", b"", b"SQLite format 3\0" + bytes(1000)]:
        file.write_bytes(damaged)
        with pytest.raises(BadExport):
            imported(other, file, numbered(20), HashEncoder())
    assert stats(other).rows == 0
    with pytest.raises(ExchangeError):
        imported(other, tmp_path / "none", [], HashEncoder())


class Impostor(HashEncoder):
    """Another model under the same fingerprint."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        return super().encode([text + "!" for text in texts])


def test_vectors_of_another_model_are_refused_before_anything_is_written(
    cache: VectorCache, other: VectorCache, tmp_path: Path
) -> None:
    file = exported(cache, tmp_path / "export.bin", Impostor(), 100)
    with pytest.raises(ImportRefused, match=r"0\.999 is the least"):
        imported(other, file, numbered(100), HashEncoder())
    with pytest.raises(ImportRefused, match="another model or precision"):
        import_cache(
            other, file, texts=lambda: stream(numbered(100)), encoder_for=lambda _: HashEncoder(name="unasked")
        )
    assert stats(other).rows == 0


def test_rows_that_nothing_proves_are_left_out(cache: VectorCache, other: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder(), 10)
    for texts, known in ((["unrelated"], HashEncoder()), (numbered(10), HashEncoder(name="x"))):
        report = imported(other, file, texts, known)
        assert (report.rows, report.unproved, report.proofs[0].checked) == (0, 10, 0)


def test_float32_here_is_not_replaced_by_bfloat16_from_there(
    cache: VectorCache, other: VectorCache, tmp_path: Path
) -> None:
    class Rounded(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            return (super().encode(texts).astype(np.float16)).astype(np.float32)

    file = exported(cache, tmp_path / "export.bin", Rounded(precision="bfloat16"), 10)
    full = HashEncoder()
    embed(numbered(5), full, other)
    imported(other, file, numbered(10), Rounded(precision="bfloat16"))
    assert stats(other).models[0].rows_by_precision == {"float32": 5, "bfloat16": 5}
    assert np.array_equal(embed(numbered(1), full, other)[0].vector, full.vector(numbered(1)[0]))  # type: ignore[arg-type]


# -- where an export may be written -----------------------------------------------------------------------------------


def direct(path: Path, _: Path) -> Path:
    return path


def symbolic(path: Path, folder: Path) -> Path:
    (folder / "link").symlink_to(path)
    return folder / "link"


def hard(path: Path, folder: Path) -> Path:
    os.link(path, folder / "link")
    return folder / "link"


@pytest.mark.parametrize(
    ("suffix", "way"), [("", hard), *((suffix, way) for suffix in ("", "-wal", ".lock") for way in (direct, symbolic))]
)
def test_an_export_never_replaces_the_cache(
    cache: VectorCache, tmp_path: Path, suffix: str, way: Callable[[Path, Path], Path]
) -> None:
    embed(numbered(5), HashEncoder(), cache)
    file = way(Path(f"{cache.path}{suffix}"), tmp_path)
    for replace in (False, True):
        with pytest.raises(ExchangeError, match="belongs to the cache itself"):
            export_cache(cache, file, replace=replace)
    assert stats(cache).rows == 5
    assert verify(cache).is_sound
    with VectorCache.open(cache.path, read_only=True) as reader:
        cache.close()
        Path(f"{cache.path}-wal").unlink(missing_ok=True)
        with pytest.raises(ExchangeError, match="belongs to the cache itself"):
            export_cache(reader, Path(f"{cache.path}-wal"), replace=True)


def test_another_file_is_replaced_only_when_that_is_asked_for(cache: VectorCache, tmp_path: Path) -> None:
    embed(numbered(5), HashEncoder(), cache)
    file, dangling = tmp_path / "thesis.txt", tmp_path / "dangling"
    file.write_text("my only copy")
    dangling.symlink_to(tmp_path / "nowhere")
    for target in (file, dangling):
        with pytest.raises(ExchangeError, match="exists"):
            export_cache(cache, target)
    assert file.read_text() == "my only copy"
    assert export_cache(cache, file, replace=True).file_bytes == file.stat().st_size
    with pytest.raises(ExchangeError, match="not a file"):
        export_cache(cache, tmp_path, replace=True)
    with pytest.raises(ExchangeError):
        export_cache(cache, file / "within a file")
    with pytest.raises(ExchangeError):
        export_cache(cache, tmp_path / ("long" * 100))
    assert not [path for path in tmp_path.iterdir() if "unfinished" in path.name]


# -- what counts as proof ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "here", "told"), [(5000, 1, "only 1 of the 16"), (40, 15, "15 of the 16"), (7, 6, "6 of the 7")]
)
def test_an_honest_sample_does_not_carry_the_others(
    cache: VectorCache, other: VectorCache, tmp_path: Path, rows: int, here: int, told: str
) -> None:
    """One honest row among thousands that are not: too few of the texts stand here to say anything."""
    honest, texts = HashEncoder(), numbered(rows)
    keys = [bytes.fromhex(text_hash(text)[7:]) for text in texts]
    false = Impostor().encode(texts)
    false[:here] = honest.encode(texts[:here])
    cache.put(honest.info, keys, false)
    export_cache(cache, tmp_path / "x")
    report = imported(other, tmp_path / "x", texts[:here], HashEncoder())
    assert (report.rows, report.unproved, report.proofs[0].checked) == (0, rows, 0)
    assert report.proofs[0].obstacle is not None
    assert told in report.proofs[0].obstacle
    assert stats(other).rows == 0


@pytest.mark.parametrize("rows", [1, 7, 16, 17])
def test_a_small_export_is_proved_by_all_its_rows(
    cache: VectorCache, other: VectorCache, tmp_path: Path, rows: int
) -> None:
    file = exported(cache, tmp_path / "x", HashEncoder(), rows)
    report = imported(other, file, numbered(rows), HashEncoder())
    assert (report.rows, report.proofs[0].checked) == (rows, min(rows, 16))


def test_rows_of_another_dimension_refuse_the_file(cache: VectorCache, other: VectorCache, tmp_path: Path) -> None:
    encoder = HashEncoder()
    embed(numbered(40), encoder, cache)
    other_info = HashEncoder(dimension=8).info
    object.__setattr__(other_info, "fingerprint", encoder.fingerprint)
    cache.put(other_info, [b"\1" * 32], HashEncoder(dimension=8).encode(["x"]))
    export_cache(cache, tmp_path / "x")
    with pytest.raises(ImportRefused, match="dimensions"):
        imported(other, tmp_path / "x", numbered(40), encoder)
    assert stats(other).rows == 0


def test_a_corrupt_row_here_is_replaced_by_the_imported_one(
    cache: VectorCache, other: VectorCache, tmp_path: Path
) -> None:
    file = exported(cache, tmp_path / "x", HashEncoder(), 30)
    embed(numbered(10), HashEncoder(), other)
    tamper(other.path, "UPDATE vector SET vector = zeroblob(64) WHERE id <= 6")
    tamper(other.path, "UPDATE vector SET precision = 0, tokens = 'x' WHERE id = 7")
    report = imported(other, file, numbered(30), HashEncoder())
    assert report.rows == 30
    last = HashEncoder()
    assert all(item.cached for item in embed(numbered(30), last, other))
    assert last.asked == []


def test_a_vector_that_is_not_a_number_proves_nothing(cache: VectorCache, tmp_path: Path) -> None:
    class Broken(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            vectors = super().encode(texts)
            vectors[-1:] = np.nan
            return vectors

    file = exported(cache, tmp_path / "x", HashEncoder(), 30)
    with VectorCache.open(tmp_path / "other.db") as other, pytest.raises(ImportRefused):
        imported(other, file, numbered(30), Broken())


@pytest.mark.parametrize("error", [OSError("somebody else's disk"), sqlite3.DatabaseError("somebody else's file")])
def test_errors_of_others_are_not_blamed_on_the_file_or_the_cache(
    cache: VectorCache, other: VectorCache, tmp_path: Path, error: Exception
) -> None:
    file = exported(cache, tmp_path / "x", HashEncoder(), 30)

    def failing() -> Iterator[tuple[str, str]]:
        yield text_hash("a"), "a"
        raise error

    with pytest.raises(type(error), match="somebody else's"):
        import_cache(other, file, texts=failing, encoder_for=only(HashEncoder()))
