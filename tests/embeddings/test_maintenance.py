"""The functions behind `chunksink cache stats | long-texts | show | gc`. (`verify` is in test_damage.)"""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.maintenance import drop, unneeded_rows
from chunksink.embeddings.references import embedding_ref
from chunksink.embeddings.stats import lengths, model_limits, show, stats
from tests.embeddings.helpers import HashEncoder, embed, numbered, tamper, text_hash


def without_constraints(path: Path) -> None:
    """NOT NULL restricts what SQL writes, not what a bad disk does to the file."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '        ') WHERE name = 'vector'")
    connection.commit()
    connection.close()


def hashes(texts: list[str]) -> list[str]:
    return [text_hash(text) for text in texts]


def test_stats_count_by_model_and_precision(cache: VectorCache) -> None:
    one, other = HashEncoder(name="one", max_length=5), HashEncoder(name="other", precision="bfloat16", dimension=8)
    embed(numbered(10), one, cache)
    embed(numbered(4), other, cache)
    cache.put(one.info, [b"\1" * 32], one.encode(["x"]), [9])
    models = {model.name: model for model in stats(cache).models}
    assert models["one"].rows == 11
    assert models["one"].long_texts == 1
    assert models["one"].rows_by_precision == {"float32": 11}
    assert models["other"].rows_by_precision == {"bfloat16": 4}
    assert models["other"].vector_bytes == 4 * 8 * 4
    assert models["one"].producers[0]["libraries"] == {"hash": "1"}


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


def test_show_returns_the_vector_of_a_reference_or_nothing(cache: VectorCache) -> None:
    encoder = HashEncoder()
    embed(["a"], encoder, cache)
    ref = embedding_ref(encoder.fingerprint, text_hash("a"))
    shown = show(cache, ref)
    assert shown is not None
    assert shown.ref == ref
    assert (shown.model, shown.dimension, shown.precision) == ("hash", 16, "float32")
    assert (shown.vector == encoder.vector("a")).all()
    assert show(cache, embedding_ref(encoder.fingerprint, text_hash("b"))) is None
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64)")
    assert show(cache, ref) is None


def test_surplus_is_reported_and_then_dropped(cache: VectorCache) -> None:
    live, old = HashEncoder(name="live"), HashEncoder(name="old")
    embed(numbered(3000), live, cache)
    embed(numbered(100), old, cache)
    unneeded = unneeded_rows(cache, keys=hashes(numbered(1000)), fingerprints=[live.fingerprint])
    assert (unneeded.rows, unneeded.kept_rows, unneeded.vector_bytes) == (2100, 1000, 2100 * 16 * 4)
    assert unneeded.rows_by_model == {live.fingerprint: 2000, old.fingerprint: 100}
    assert stats(cache).rows == 3100
    drop(cache, unneeded)
    assert [(model.name, model.rows) for model in stats(cache).models] == [("live", 1000)]
    for table in ("model", "producer"):
        assert cache.read(f"SELECT hex(fingerprint) FROM {table}") == [(live.fingerprint.upper(),)]
    assert cache.read("PRAGMA freelist_count") == [(0,)]
    live.asked.clear()
    embed(numbered(1000), live, cache)
    assert live.asked == []
    embed(["a"], old, cache)  # a dropped model is recorded again
    assert "old" in {model.name for model in stats(cache).models}


def test_surplus_without_a_model_list_depends_on_texts_only(cache: VectorCache) -> None:
    for name in ("one", "other"):
        embed(numbered(10), HashEncoder(name=name), cache)
    assert unneeded_rows(cache, keys=hashes(numbered(4)), fingerprints=None).rows == 12
    assert unneeded_rows(cache, keys=hashes(numbered(4)), fingerprints=[]).rows == 20
    assert unneeded_rows(cache, keys=[], fingerprints=None).kept_rows == 0


def test_lengths_are_reported_for_sound_rows(cache: VectorCache) -> None:
    encoder = HashEncoder()
    keys = [bytes([number]) * 32 for number in range(5)]
    cache.put(encoder.info, keys, encoder.encode(numbered(5)), [9, 9, 9, 9, 300])
    tamper(cache.path, "UPDATE vector SET tokens = 5000 WHERE id = 1")
    tamper(cache.path, "UPDATE vector SET tokens = 'many' WHERE id = 2")
    tamper(cache.path, "UPDATE vector SET vector = zeroblob(64) WHERE id = 3")
    assert lengths(cache, encoder.fingerprint, [*keys, b"\7" * 32]) == {keys[3]: 9, keys[4]: 300}
    assert lengths(cache, HashEncoder(name="other").fingerprint, keys) == {}


def test_limits_of_a_model_are_reported(cache: VectorCache) -> None:
    encoder, endless = HashEncoder(max_length=256), HashEncoder(name="endless")
    embed(["a"], encoder, cache)
    embed(["a"], endless, cache)
    assert model_limits(cache, encoder.fingerprint) == (256, "tokens")
    assert model_limits(cache, endless.fingerprint) is None
    assert model_limits(cache, "ab" * 32) is None
    tamper(cache.path, "UPDATE model SET max_length = 'none', details = '{'")
    assert model_limits(cache, encoder.fingerprint) is None


@pytest.mark.parametrize(
    "details",
    ["{", "[]", b"\xff\xfe"],
)
def test_recorded_model_information_may_be_anything(cache: VectorCache, details: object) -> None:
    encoder = HashEncoder(max_length=5)
    embed(["a"], encoder, cache)
    tamper(cache.path, "UPDATE model SET details = ?, dimension = 'x', name = x'ff'", details)
    tamper(cache.path, "UPDATE producer SET details = ?", details)
    (model,) = stats(cache).models
    assert (model.name, model.dimension, model.length_unit, model.rows) == ("\ufffd", None, "tokens", 1)
    assert model.producers[0].get("libraries", {}) == {}
    shown = show(cache, embedding_ref(encoder.fingerprint, text_hash("a")))
    assert shown is not None
    assert shown.model == "\ufffd"


def test_surplus_counts_a_row_without_a_vector(cache: VectorCache) -> None:
    embed(numbered(3), HashEncoder(), cache)
    without_constraints(cache.path)
    tamper(cache.path, "UPDATE vector SET vector = NULL WHERE id = 2")
    unneeded = unneeded_rows(cache, keys=[], fingerprints=None)
    assert (unneeded.rows, unneeded.vector_bytes) == (3, 2 * 16 * 4)
    drop(cache, unneeded)
    assert stats(cache).rows == 0


def test_failing_list_is_not_blamed_on_the_cache(cache: VectorCache) -> None:
    def failing(error: Exception) -> Iterator[str]:
        yield text_hash("a")
        raise error

    embed(["a"], HashEncoder(), cache)
    for error in (sqlite3.DatabaseError("somebody else's file is malformed"), OSError("somebody else's disk")):
        with pytest.raises(type(error), match="somebody else's"):
            unneeded_rows(cache, keys=failing(error), fingerprints=None)
    assert unneeded_rows(cache, keys=hashes(["a"]), fingerprints=None).kept_rows == 1
