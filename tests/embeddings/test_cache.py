"""The cache returns exactly what was stored under a key, and survives damage to its file."""

import hashlib
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import (
    BadReference,
    CacheBusy,
    CacheDamaged,
    CacheError,
    CacheTooNew,
    CacheUnavailable,
    WrongVectors,
)
from chunksink.embeddings.maintenance import verify
from chunksink.embeddings.references import embedding_ref, parse_ref, raw_key
from tests.embeddings.helpers import HashEncoder, embed, filled, numbered, tamper


def hashes_of(texts: list[str]) -> list[bytes]:
    return [hashlib.sha256(text.encode()).digest() for text in texts]


def test_cache_returns_exactly_the_stored_vectors(cache: VectorCache) -> None:
    encoder, texts = HashEncoder(), numbered(2500)  # more than one query's worth
    keys = hashes_of(texts)
    cache.put(encoder.info, keys, encoder.encode(texts), range(2500))
    found = cache.lookup(encoder.fingerprint, [*keys[::-1], b"\0" * 32], dimension=16)
    assert sorted(found.positions) == list(range(2500))
    for position, vector, tokens in zip(found.positions, found.vectors, found.lengths, strict=True):
        assert (vector == encoder.vector(texts[2499 - position])).all()
        assert tokens == 2499 - position
    assert found.corrupt == ()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8), st.sampled_from(["float32", "bfloat16"])), max_size=30))
def test_cache_behaves_like_a_dict_that_prefers_float32(puts: list[tuple[int, int, str]]) -> None:
    model: dict[tuple[str, bytes], tuple[str, str]] = {}
    encoders = {
        (number, precision): HashEncoder(name=f"m{number}", precision=precision)
        for number in range(6)
        for precision in ("float32", "bfloat16")
    }
    with TemporaryDirectory() as folder, VectorCache.open(f"{folder}/vectors.db") as memory:
        for number, text_number, precision in puts:
            encoder, text = encoders[number, precision], f"{text_number}"
            key = hashes_of([text])
            vector = encoder.encode([text + precision])
            memory.put(encoder.info, key, vector)
            place = (encoder.fingerprint, key[0])
            if place not in model or (model[place][0] == "bfloat16" and precision == "float32"):
                model[place] = (precision, text + precision)
        for (fingerprint, text_hash), (precision, text) in model.items():
            found = memory.lookup(fingerprint, [text_hash], dimension=16)
            assert (found.vectors[0] == HashEncoder().vector(text)).all()
            strict = memory.lookup(fingerprint, [text_hash], dimension=16, request="float32")
            assert len(strict.positions) == (precision == "float32")


@pytest.mark.parametrize("spoil", [np.nan, np.inf, -np.inf])
def test_put_when_vector_is_not_finite_is_refused(cache: VectorCache, spoil: float) -> None:
    encoder = HashEncoder()
    vectors = encoder.encode(["a", "b"])
    vectors[1, 3] = spoil
    with pytest.raises(WrongVectors):
        cache.put(encoder.info, hashes_of(["a", "b"]), vectors)
    with pytest.raises(WrongVectors):
        cache.put(encoder.info, hashes_of(["a"]), vectors[:1, :5])
    assert cache.read("SELECT count(*) FROM vector") == [(0,)]


@pytest.mark.parametrize("content", [b"my only copy " * 1000, b"SQL is a language"], ids=["long", "short"])
def test_open_when_file_is_no_database_renames_it(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content)
    with VectorCache.open(path) as cache:
        (kept,) = cache.set_aside
    assert Path(kept).read_bytes() == content


def test_open_when_cache_is_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    filled(path, HashEncoder(), 3)
    tamper(
        path,
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, '')",
        "chunksink.embeddings",
        "m999_from_the_future",
    )
    before = path.read_bytes()
    with pytest.raises(CacheTooNew, match=r"m999_from_the_future.*move it away"):
        VectorCache.open(path)
    assert path.read_bytes() == before


def test_damage_when_found_while_reading_names_the_repair(cache: VectorCache) -> None:
    tamper(cache.path, "DROP TABLE vector")
    with pytest.raises(
        CacheDamaged, match=r"`chunksink cache verify --repair` sets it aside, and its vectors are computed again$"
    ):
        cache.read("SELECT count(*) FROM vector")


def test_empty_file_when_opened_becomes_a_cache(tmp_path: Path) -> None:
    for suffix in ("", "-wal"):
        (tmp_path / f"vectors.db{suffix}").touch()
    with VectorCache.open(tmp_path / "vectors.db") as cache:
        assert cache.set_aside == ()
        assert cache.read("SELECT count(*) FROM vector") == [(0,)]
        assert cache.read("PRAGMA journal_mode") == [("wal",)]


def test_cache_of_an_earlier_version_opens_unchanged(cache: VectorCache) -> None:
    """A new schema needs a new migration, and a new digest here."""
    tables = cache.read(
        "SELECT sql FROM sqlite_master WHERE tbl_name IN ('model', 'producer', 'segment', 'vector') AND sql NOT NULL "
        "ORDER BY sql"
    )
    digest = hashlib.sha256("\n".join(sql for (sql,) in tables).encode()).hexdigest()
    assert (len(tables), digest[:16]) == (5, "0b028b91d5a6390d")
    pragmas = ("application_id", "page_size", "auto_vacuum")
    assert [cache.read(f"PRAGMA {pragma}") for pragma in pragmas] == [[(0x43534B45,)], [(16384,)], [(2,)]]
    steps = cache.read("SELECT migration_set, name FROM _sqlite_migrations")
    assert steps == [("chunksink.embeddings", "create_tables")]


def test_backup_of_an_open_cache_serves_its_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    with VectorCache.open(path) as cache:
        embed(numbered(20), HashEncoder(), cache)
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "copy.db")) as target:
            source.backup(target)
    with VectorCache.open(tmp_path / "copy.db") as copied:
        assert all(item.cached for item in embed(numbered(20), HashEncoder(), copied))
        assert verify(copied).is_sound


def test_file_name_with_uri_characters_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a folder?mode=memory" / "50% #1 vectors.db"
    encoder = HashEncoder()
    with VectorCache.open(path) as cache:
        cache.put(encoder.info, hashes_of(["a"]), encoder.encode(["a"]))
    assert path.stat().st_size > 0


def test_lock_when_another_writer_never_ends_is_named(tmp_path: Path) -> None:
    path, encoder = tmp_path / "vectors.db", HashEncoder()
    filled(path, encoder, 1)
    hog = sqlite3.connect(path, isolation_level=None)
    hog.execute("BEGIN IMMEDIATE")
    with VectorCache.open(path) as cache:
        cache.read("PRAGMA busy_timeout = 200")
        assert cache.read("SELECT count(*) FROM vector") == [(1,)]
        with pytest.raises(CacheBusy, match="another process"):
            cache.put(encoder.info, hashes_of(["x"]), encoder.encode(["x"]))
        hog.execute("ROLLBACK")
        cache.put(encoder.info, hashes_of(["x"]), encoder.encode(["x"]))
    hog.close()


def test_transaction_when_it_fails_writes_nothing(cache: VectorCache) -> None:
    with pytest.raises(ZeroDivisionError), cache.transaction() as connection:
        connection.execute("INSERT INTO producer (fingerprint, details) VALUES (x'00', '{}')")
        raise ZeroDivisionError
    assert cache.read("SELECT count(*) FROM producer") == [(0,)]


def test_commit_when_it_fails_is_rolled_back(cache: VectorCache) -> None:
    encoder = HashEncoder()
    cache.read("PRAGMA foreign_keys = ON")  # all other failures of a commit need a full disk
    cache.read("CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY)")
    cache.read("CREATE TEMP TABLE child (id INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(CacheError), cache.transaction() as connection:
        connection.execute("INSERT INTO producer (fingerprint, details) VALUES (x'00', '{}')")
        connection.execute("INSERT INTO child VALUES (1)")
    assert cache.read("SELECT count(*) FROM producer") == [(0,)]
    cache.put(encoder.info, hashes_of(["x"]), encoder.encode(["x"]))


def test_model_when_its_first_vectors_failed_is_recorded_with_the_next(cache: VectorCache) -> None:
    encoder = HashEncoder()
    tamper(cache.path, "CREATE TRIGGER full BEFORE INSERT ON vector BEGIN SELECT raise(ABORT, 'no room'); END")
    with pytest.raises(CacheError):
        cache.put(encoder.info, hashes_of(["x"]), encoder.encode(["x"]))
    tamper(cache.path, "DROP TRIGGER full")
    cache.put(encoder.info, hashes_of(["x"]), encoder.encode(["x"]))
    assert cache.read("SELECT count(*) FROM producer JOIN vector ON producer.id = producer") == [(1,)]


def test_cache_when_used_by_many_threads_serves_all(cache: VectorCache) -> None:
    encoder, failures = HashEncoder(), []

    def work(number: int) -> None:
        texts = [f"{number} {each}" for each in range(50)]
        try:
            for text in texts:
                cache.put(encoder.info, hashes_of([text]), encoder.encode([text]))
            assert len(cache.lookup(encoder.fingerprint, hashes_of(texts), dimension=16).positions) == 50
        except Exception as exc:
            failures.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CacheUnavailable):
        VectorCache.open(tmp_path / "vectors.db")


@pytest.mark.parametrize("form", ["sha256:" + "ab" * 32, "AB" * 32])
def test_text_hash_in_every_accepted_form_is_read(form: str) -> None:
    assert raw_key(form) == b"\xab" * 32


@pytest.mark.parametrize("form", ["", "sha256:", "ab" * 31, "zz" * 32, "md5:" + "ab" * 32, "ab" * 32 + "\n"])
def test_text_hash_in_any_other_form_is_refused(form: str) -> None:
    with pytest.raises(BadReference):
        raw_key(form)


def test_reference_is_read_as_it_is_written() -> None:
    ref = embedding_ref("ab" * 32, "sha256:" + "cd" * 32)
    assert ref == f"cache:{'ab' * 32}/{'cd' * 32}"
    assert parse_ref(ref) == (b"\xab" * 32, b"\xcd" * 32)
    for wrong in ("", "cache:", f"cache:{'ab' * 32}", f"file:{'ab' * 32}/{'cd' * 32}", f"cache:../{'cd' * 32}"):
        with pytest.raises(BadReference):
            parse_ref(wrong)
