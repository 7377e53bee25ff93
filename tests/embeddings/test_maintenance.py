"""What stands behind `chunksink cache ...`: stats, show, gc, export, import. (`verify` is in test_damage.)"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from embeddings.cache import VectorCache
from embeddings.encoder import Encoder, ModelInfo, Vectors
from embeddings.errors import BadExport, ExchangeError, ImportRefused
from embeddings.exchange import EncoderFor, export_cache, import_cache
from embeddings.maintenance import drop, find_surplus
from embeddings.references import embedding_ref
from embeddings.stats import lengths, show, stats
from embeddings.transformer import TransformerEncoder
from embeddings.vectors import vectors_for
from tests.embeddings.helpers import HashEncoder, embed, numbered, stream, tamper, text_hash


def hashes(texts: list[str]) -> list[str]:
    return [text_hash(text) for text in texts]


def test_stats_of_an_empty_cache(cache: VectorCache) -> None:
    told = stats(cache)
    assert (told.rows, told.models, told.path) == (0, (), str(cache.path))


def test_stats_count_by_model_and_precision(cache: VectorCache) -> None:
    one, other = HashEncoder(name="one", max_length=5), HashEncoder(name="other", precision="bfloat16", dimension=8)
    embed(numbered(10), one, cache)
    embed(numbered(4), other, cache)
    cache.put(one.info, [b"\1" * 32], one.encode(["x"]), [9])
    told = {model.name: model for model in stats(cache).models}
    assert told["one"].rows == 11
    assert told["one"].long_texts == 1
    assert told["one"].rows_by_precision == {"float32": 11}
    assert told["other"].rows_by_precision == {"bfloat16": 4}
    assert told["other"].vector_bytes == 4 * 8 * 4
    assert told["one"].producers[0]["libraries"] == {"hash": "1"}


def test_library_versions_are_recorded_beside_the_fingerprint(cache: VectorCache) -> None:
    encoder, upgraded = HashEncoder(), HashEncoder()
    object.__setattr__(upgraded.info, "libraries", {"hash": "2"})
    embed(["a"], encoder, cache)
    embed(["a", "b"], upgraded, cache)
    assert upgraded.asked == ["b"], "an upgrade does not embed again"
    assert [producer["libraries"]["hash"] for producer in stats(cache).models[0].producers] == ["1", "2"]
    for text, version in (("a", "1"), ("b", "2")):
        shown = show(cache, embedding_ref(encoder.fingerprint, text_hash(text)))
        assert shown is not None
        assert shown.producer["libraries"] == {"hash": version}


def test_show_gives_the_vector_of_a_reference_or_nothing(cache: VectorCache) -> None:
    encoder = HashEncoder()
    embed(["a"], encoder, cache)
    ref = str(embedding_ref(encoder.fingerprint, text_hash("a")))
    shown = show(cache, ref)
    assert shown is not None
    assert str(shown.ref) == ref
    assert (shown.model, shown.dimension, shown.precision) == ("hash", 16, "float32")
    assert (shown.vector == encoder.vector("a")).all()
    assert show(cache, str(embedding_ref(encoder.fingerprint, text_hash("b")))) is None
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64)")
    assert show(cache, ref) is None


def test_surplus_is_told_and_then_dropped(cache: VectorCache) -> None:
    live, old = HashEncoder(name="live"), HashEncoder(name="old")
    embed(numbered(3000), live, cache)
    embed(numbered(100), old, cache)
    surplus = find_surplus(cache, text_hashes=hashes(numbered(1000)), fingerprints=[live.fingerprint])
    assert (surplus.rows, surplus.kept_rows, surplus.vector_bytes) == (2100, 1000, 2100 * 16 * 4)
    assert surplus.rows_by_model == {live.fingerprint: 2000, old.fingerprint: 100}
    assert stats(cache).rows == 3100
    drop(cache, surplus)
    assert [(model.name, model.rows) for model in stats(cache).models] == [("live", 1000)]
    assert stats(cache).free_bytes == 0
    live.asked.clear()
    embed(numbered(1000), live, cache)
    assert live.asked == []
    embed(["a"], old, cache)  # a model that was dropped is recorded anew
    assert "old" in {model.name for model in stats(cache).models}


def test_without_a_list_of_models_only_texts_decide(cache: VectorCache) -> None:
    for name in ("one", "other"):
        embed(numbered(10), HashEncoder(name=name), cache)
    assert find_surplus(cache, text_hashes=hashes(numbered(4)), fingerprints=None).rows == 12
    assert find_surplus(cache, text_hashes=hashes(numbered(4)), fingerprints=[]).rows == 20
    assert find_surplus(cache, text_hashes=[], fingerprints=None).kept_rows == 0


def test_lengths_of_texts(cache: VectorCache) -> None:
    encoder = HashEncoder()
    cache.put(encoder.info, [b"\1" * 32, b"\2" * 32], encoder.encode(["x", "y"]), [9, 300])
    asked = [b"\1" * 32, b"\2" * 32, b"\3" * 32]
    assert lengths(cache, encoder.fingerprint, asked) == {b"\1" * 32: 9, b"\2" * 32: 300}
    assert lengths(cache, HashEncoder(name="other").fingerprint, asked) == {}


# -- export and import -----------------------------------------------------------------------------------------------


def only(encoder: Encoder) -> EncoderFor:
    def encoder_for(info: ModelInfo) -> Encoder | None:
        return encoder if (info.fingerprint, info.precision) == (encoder.fingerprint, encoder.precision) else None

    return encoder_for


def exported(cache: VectorCache, file: Path, encoder: HashEncoder, count: int = 3000) -> Path:
    embed(numbered(count), encoder, cache)
    report = export_cache(cache, file)
    assert (report.rows, report.skipped, report.file_bytes) == (count, 0, file.stat().st_size)
    return file


def test_a_cache_travels(cache: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder())
    encoder = HashEncoder()
    with VectorCache.open(tmp_path / "other.db") as other:
        report = import_cache(
            other,
            file,
            texts=lambda: stream(numbered(3000)),
            encoder_for=only(encoder),
        )
        assert report.rows == 3000
        assert report.proofs[0].checked == 16
        assert report.proofs[0].least_cosine == pytest.approx(1)
        assert len(encoder.asked) == 16
        again = HashEncoder()
        assert all(item.cached for item in embed(numbered(3000), again, other))
        assert stats(other).models[0].name == "hash"


def test_an_export_of_one_model(cache: VectorCache, tmp_path: Path) -> None:
    one, other = HashEncoder(name="one"), HashEncoder(name="other")
    embed(numbered(5), one, cache)
    embed(numbered(7), other, cache)
    assert export_cache(cache, tmp_path / "x", fingerprints=[other.fingerprint]).rows == 7


def test_bad_rows_are_left_out_of_an_export(cache: VectorCache, tmp_path: Path) -> None:
    embed(numbered(10), HashEncoder(), cache)
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64) WHERE id = 3")
    report = export_cache(cache, tmp_path / "x")
    assert (report.rows, report.skipped) == (9, 1)


def test_a_damaged_export_is_refused_wherever_the_damage_is(cache: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder(), 20)
    content = file.read_bytes()
    other = VectorCache.open(tmp_path / "other.db")
    bad = [content[:length] for length in range(0, len(content), 97)]
    for place in range(0, len(content), 61):
        flipped = bytearray(content)
        flipped[place] ^= 4
        bad.append(bytes(flipped))
    for damaged in [*bad, content + b"x", b"", b"SQLite format 3\0" + bytes(1000)]:
        file.write_bytes(damaged)
        with pytest.raises(BadExport):
            import_cache(other, file, texts=lambda: stream(numbered(20)), encoder_for=only(HashEncoder()))
    assert stats(other).rows == 0
    with pytest.raises(ExchangeError):
        import_cache(other, tmp_path / "none", texts=list, encoder_for=only(HashEncoder()))
    other.close()


class Impostor(HashEncoder):
    """Another model under the same fingerprint."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        return super().encode([text + "!" for text in texts])


def test_vectors_of_another_model_are_refused_before_anything_is_written(cache: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", Impostor(), 100)
    with VectorCache.open(tmp_path / "other.db") as other:
        with pytest.raises(ImportRefused, match=r"0\.999 is the least"):
            import_cache(other, file, texts=lambda: stream(numbered(100)), encoder_for=only(HashEncoder()))
        with pytest.raises(ImportRefused, match="another model or precision"):
            import_cache(
                other, file, texts=lambda: stream(numbered(100)), encoder_for=lambda _: HashEncoder(name="unasked")
            )
        assert stats(other).rows == 0


def test_rows_that_nothing_proves_are_left_out(cache: VectorCache, tmp_path: Path) -> None:
    file = exported(cache, tmp_path / "export.bin", HashEncoder(), 10)
    with VectorCache.open(tmp_path / "other.db") as other:
        for texts, known in ((["unrelated"], HashEncoder()), (numbered(10), HashEncoder(name="x"))):
            report = import_cache(other, file, texts=partial(stream, texts), encoder_for=only(known))
            assert (report.rows, report.unproved, report.proofs[0].checked) == (0, 10, 0)


def test_float32_here_is_not_replaced_by_bfloat16_from_there(cache: VectorCache, tmp_path: Path) -> None:
    class Rounded(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            return (super().encode(texts).astype(np.float16)).astype(np.float32)

    file = exported(cache, tmp_path / "export.bin", Rounded(precision="bfloat16"), 10)
    with VectorCache.open(tmp_path / "other.db") as other:
        full = HashEncoder()
        embed(numbered(5), full, other)
        import_cache(
            other,
            file,
            texts=lambda: stream(numbered(10)),
            encoder_for=only(Rounded(precision="bfloat16")),
        )
        assert stats(other).models[0].rows_by_precision == {"float32": 5, "bfloat16": 5}
        assert np.array_equal(embed(numbered(1), full, other)[0].vector, full.vector(numbered(1)[0]))  # type: ignore[arg-type]


def test_the_real_model_proves_its_own_export(
    cache: VectorCache, tmp_path: Path, real_bfloat16: TransformerEncoder, real_float32: TransformerEncoder
) -> None:
    texts = [f"{text} and some more words about wings and slipstreams" for text in numbered(40)]
    list(vectors_for(stream(texts), real_bfloat16, cache))
    export_cache(cache, tmp_path / "x")
    with VectorCache.open(tmp_path / "other.db") as other:
        report = import_cache(
            other,
            tmp_path / "x",
            texts=lambda: stream(texts),
            encoder_for=only(real_bfloat16),
        )
        assert report.rows == 40
        assert report.proofs[0].checked == 16
        # At float32 this machine has nothing to compare with, so nothing is proved.
        report = import_cache(
            other,
            tmp_path / "x",
            texts=lambda: stream(texts),
            encoder_for=only(real_float32),
        )
        assert report.unproved == 40
