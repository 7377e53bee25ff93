"""Partitions in a real bucket: committed by one write, read through a cache, never mixed."""

import json
import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from chunksink.chunkbus import bucket_partitions, findings
from chunksink.chunkbus.bucket import BucketStorage
from chunksink.chunkbus.errors import NotABusRoot, PartitionLocked
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.partition_cache import PartitionCache
from chunksink.chunkbus.reader import PartitionReader, read_partition
from chunksink.chunkbus.validation import Validation
from chunksink.chunkbus.writer import PartitionWriter
from tests.chunkbus.buckets import KEY, copies, elsewhere, read
from tests.chunkbus.crash_writer import version, write
from tests.chunkbus.samples import NOON, PRODUCER, codes, lines_of, manifest, validate
from tests.conftest import HEAVY
from tests.engines.servers import S3Server
from tests.support.forking import FORKING


def names(root: BusRoot, folder: str) -> list[str]:
    return sorted(entry.name for entry in root.storage.entries(folder))


def put(root: BusRoot, key: str, chunks: bytes, *, named: str | None = None) -> None:
    """A partition as `aws s3 sync` copies it from a folder, or with another name for the chunks."""
    root.storage.write(f"canonical/{named or key}.jsonl", chunks)
    root.storage.write(f"manifest/{key}.manifest.json", json.dumps(manifest(key, chunks)).encode())
    root.refresh()


def test_commit_leaves_two_objects(root: BusRoot) -> None:
    write(root, KEY, 1)
    [chunks] = names(root, "canonical")
    assert chunks.startswith(f"{KEY}.")
    assert names(root, "manifest") == [f"{KEY}.manifest.json"]
    assert root.partition_keys() == [KEY]
    assert read(root) == version(1)
    assert validate(root) == []


def test_rewritten_partition_is_read_by_another_machine(root: BusRoot, tmp_path: Path) -> None:
    write(root, KEY, 1)
    other = elsewhere(root, tmp_path / "other")
    assert read(other) == version(1)
    write(root, KEY, 2)
    assert read(other) == version(2)
    assert validate(other) == []
    assert len(copies(tmp_path / "other")) == 2


def test_folder_that_was_copied_into_the_bucket_is_read_and_rewritten(root: BusRoot, tmp_path: Path) -> None:
    put(root, KEY, lines_of(version(1)))
    root.storage.write("canonical/.2026.lock", b"")
    assert validate(root) == []
    assert read(root) == version(1)
    write(root, KEY, 2)
    assert read(elsewhere(root, tmp_path / "other")) == version(2)
    assert validate(root) == []


def test_root_without_objects_is_no_bus(root: BusRoot) -> None:
    assert not root.exists
    with pytest.raises(NotABusRoot):
        root.require()


def test_chunks_without_a_manifest_are_no_partition(root: BusRoot) -> None:
    """A writer was killed before its first commit."""
    write(root, "other", 1)
    root.storage.write(f"canonical/{KEY}.{'a' * 64}.jsonl", b"")
    root.refresh()
    assert root.partition_keys() == ["other"]
    assert validate(root) == []


def test_key_that_ends_like_a_digest_is_a_partition_of_its_own(root: BusRoot) -> None:
    key = f"a.{'0' * 64}"
    put(root, key, lines_of(version(1)))
    write(root, "a", 2)
    assert root.partition_keys() == ["a", key]
    assert validate(root) == []
    write(root, key, 3)
    assert (read(root, "a"), read(root, key)) == (version(2), version(3))


def test_damaged_chunks_are_a_finding_and_never_cached(root: BusRoot, tmp_path: Path) -> None:
    write(root, KEY, 1)
    [name] = names(root, "canonical")
    root.storage.write(f"canonical/{name}", lines_of(version(2)))
    other = elsewhere(root, tmp_path / "other")
    [found] = [each for each in validate(other) if each.code == findings.CHECKSUM_MISMATCH]
    assert found.detail.split()[0] == f"canonical/{name}"
    assert copies(tmp_path / "other") == []


def test_missing_objects_are_findings(root: BusRoot, tmp_path: Path) -> None:
    write(root, KEY, 1)
    write(root, "b", 1)
    [first, _] = names(root, "canonical")
    root.storage.remove(f"canonical/{first}")
    root.storage.remove("manifest/b.manifest.json")
    root.storage.write("canonical/c.jsonl", b"")
    for here in (elsewhere(root, tmp_path / "other"), root):  # the second one has a copy
        found = validate(here)
        assert codes(found) == [findings.CHUNKS_FILE_MISSING, findings.MANIFEST_MISSING]
        assert found[0].detail.split()[0] == f"canonical/{first}"
        with pytest.raises(FileNotFoundError) as missing:
            here.open(KEY)
        assert missing.value.filename == f"{root.address}/canonical/{first}"


@pytest.mark.parametrize("named", ["by checksum", "by key"])
def test_damaged_manifest_is_the_only_finding(named: str, root: BusRoot, tmp_path: Path) -> None:
    if named == "by key":
        put(root, KEY, lines_of(version(1)))
    else:
        write(root, KEY, 1)
    root.storage.write(f"manifest/{KEY}.manifest.json", b"{")
    for here in (elsewhere(root, tmp_path / "other"), root):
        here.refresh()
        assert codes(validate(here)) == [findings.JSON_PARSE]
        manifest_file, *chunks = here.present_files(KEY)
        assert manifest_file == f"{root.address}/manifest/{KEY}.manifest.json"
        assert chunks == ([f"{root.address}/canonical/{KEY}.jsonl"] if named == "by key" else [])


def test_object_that_differs_from_its_copy_is_a_finding(root: BusRoot) -> None:
    write(root, KEY, 1)
    assert validate(root) == []
    [name] = names(root, "canonical")
    root.storage.write(f"canonical/{name}", b"")
    assert findings.CHECKSUM_MISMATCH in codes(validate(root))


def test_cache_when_it_is_full_removes_the_least_recently_used(root: BusRoot, tmp_path: Path) -> None:
    keys = [f"k{number}" for number in range(4)]
    for key in keys:
        put(root, key, lines_of(version(int(key[1:]))))
    folder = tmp_path / "small"
    sizes = {key: len(lines_of(version(int(key[1:])))) for key in keys}
    small = elsewhere(root, folder, limit=max(sizes.values()) + 1)
    for key in keys:
        assert read(small, key) == version(int(key[1:]))
        assert sum(path.stat().st_size for path in folder.iterdir()) <= max(sizes.values()) + 1


@pytest.mark.parametrize("reason", ["large", "read-only"])
def test_partition_that_cannot_be_cached_is_read_by_ranges(reason: str, root: BusRoot, tmp_path: Path) -> None:
    write(root, KEY, 3)
    folder = tmp_path / "file" / "below" if reason == "read-only" else tmp_path / "other"
    (tmp_path / "file").write_bytes(b"")
    other = elsewhere(root, folder, limit=10 if reason == "large" else 2**30)
    assert read(other) == version(3)
    assert validate(other) == []
    with ThreadPoolExecutor(1) as workers:
        found: list[object] = []
        Validation(other, on_finding=found.append, workers=workers).run([KEY])
    assert found == []
    assert copies(tmp_path / "other") == []
    write(other, KEY, 4)
    assert read(root) == version(4)


def test_clear_removes_copies_and_nothing_else(tmp_path: Path) -> None:
    cache = PartitionCache(tmp_path / "partitions")
    assert not cache.clear()
    with cache.spool() as unfinished:
        unfinished.write_bytes(b"new")
        assert not cache.clear()
        for name in ("a.jsonl", "b.jsonl", "notes.txt"):
            (unfinished.parent / name).touch()
        assert cache.clear()
        assert copies(unfinished.parent) == sorted(["notes.txt", unfinished.name])
    (tmp_path / "partitions" / "not-a-file.jsonl").mkdir()
    with pytest.raises(OSError, match=r"not-a-file\.jsonl"):
        cache.clear()


def test_partition_just_downloaded_is_scanned_by_workers(root: BusRoot, tmp_path: Path) -> None:
    """Workers open the file by its name."""
    write(root, KEY, 3)
    other = elsewhere(root, tmp_path / "other")
    file, _ = other.open(KEY)
    with file:
        assert Path(file.name).samefile(tmp_path / "other" / copies(tmp_path / "other")[0])


def test_single_record_when_there_is_no_copy_is_read_without_a_download(root: BusRoot, tmp_path: Path) -> None:
    write(root, KEY, 3)
    places = [(place, record["hashes"]["text_hash"]) for place, record in read_partition(root, KEY)]
    other = elsewhere(root, tmp_path / "other")
    with PartitionReader(other, KEY) as reader:
        assert [reader.record(*one) for one in reversed(places)] == version(3)[::-1]
    assert copies(tmp_path / "other") == []


def test_old_chunks_are_removed_after_a_day_by_the_times_of_the_server(
    root: BusRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, KEY, lines_of(version(1)))
    write(root, KEY, 2)
    write(root, KEY, 3)
    assert len(names(root, "canonical")) == 3
    monkeypatch.setattr(bucket_partitions, "KEPT", timedelta(days=-1))
    write(root, f"{KEY}.b", 1)
    write(root, KEY, 4)
    assert len(names(root, "canonical")) == 2
    assert (read(root), read(root, f"{KEY}.b")) == (version(4), version(1))


def test_reader_when_its_chunks_are_removed_takes_the_new_version(
    root: BusRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_partitions, "KEPT", timedelta(days=-1))
    write(root, KEY, 1)
    other = elsewhere(root, tmp_path / "other")
    fetch = PartitionCache.fetch

    def late(cache: PartitionCache, storage: BucketStorage, name: str, checksum: str | None) -> object:
        monkeypatch.setattr(PartitionCache, "fetch", fetch)
        write(root, KEY, 2)
        return fetch(cache, storage, name, checksum)

    monkeypatch.setattr(PartitionCache, "fetch", late)
    assert read(other) == version(2)


def test_chunks_that_were_removed_before_the_commit_are_written_again(
    root: BusRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_manifest = BucketStorage.write_if_unchanged

    def removes(storage: BucketStorage, name: str, data: bytes, version: str | None) -> None:
        for chunks in names(root, "canonical"):
            storage.remove(f"canonical/{chunks}")
        write_manifest(storage, name, data, version)

    monkeypatch.setattr(BucketStorage, "write_if_unchanged", removes)
    write(root, KEY, 1)
    assert validate(root) == []
    assert len(names(root, "canonical")) == 1


def test_of_two_writers_the_second_is_refused_and_can_run_again(root: BusRoot) -> None:
    write(root, KEY, 1)
    with PartitionWriter(root, KEY) as first:
        first.add(version(2)[0])
        write(root, KEY, 3)
        with pytest.raises(PartitionLocked):
            first.commit(documents=1, producer=PRODUCER, created_at=NOON)
    assert read(root) == version(3)
    write(root, KEY, 2)
    assert read(root) == version(2)


@pytest.mark.parametrize("existing", [True, False], ids=["replacing", "first"])
def test_of_many_writers_at_once_exactly_one_wins(existing: bool, root: BusRoot, tmp_path: Path) -> None:
    many = 20 if HEAVY else 8
    if existing:
        write(root, KEY, 100)
    barrier = threading.Barrier(many)

    def attempt(number: int) -> bool:
        with PartitionWriter(elsewhere(root, tmp_path / str(number)), KEY) as writer:
            for record in version(number):
                writer.add(record)
            barrier.wait()
            try:
                writer.commit(documents=1, producer=PRODUCER, created_at=NOON)
            except PartitionLocked:
                return False
        return True

    with ThreadPoolExecutor(many) as threads:
        [winner] = [number for number, ok in enumerate(threads.map(attempt, range(many))) if ok]
    assert read(root) == version(winner)
    assert validate(root) == []


def write_forever(place: str, home: Path, variables: dict[str, str], done: Path) -> None:
    os.environ.update(variables)
    root = BusRoot.at(place, home)
    for number in range(1, 100_000):
        write(root, KEY, number)
        with done.open("a") as file:
            file.write(f"{number}\n")


@pytest.mark.promise(2)
def test_writer_when_killed_at_any_instant_leaves_one_complete_version(
    root: BusRoot, tmp_path: Path, s3_server: S3Server
) -> None:
    chance = random.Random(1)
    write(root, KEY, 0)
    for kill in range(200 if HEAVY else 8):
        done = tmp_path / f"done-{kill}"
        arguments = (root.address, tmp_path / "writer", s3_server.variables(), done)
        process = FORKING.Process(target=write_forever, args=arguments)
        process.start()
        while not done.exists():
            assert process.is_alive()
            time.sleep(0.002)
        time.sleep(chance.random() / 20)
        process.kill()
        process.join()
        last = max(map(int, done.read_text().split()))
        # The last reported version is durable; the next one may be committed too.
        assert read(root) in (version(last), version(last + 1))
        assert validate(root) == []
