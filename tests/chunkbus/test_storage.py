"""One conformance suite for folders and buckets."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from chunksink.chunkbus.bucket import BucketStorage, checked_address
from chunksink.chunkbus.errors import (
    ExtraMissing,
    StorageConflict,
    StorageDenied,
    StorageEndpointInvalid,
    StorageError,
)
from chunksink.chunkbus.storage import Entry, Storage, is_bucket, open_storage
from tests.conftest import HEAVY

WRITERS = 20 if HEAVY else 8


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    place = str(tmp_path) if request.param == "folder" else request.getfixturevalue("bucket")
    return open_storage(place)


def names(storage: Storage, folder: str) -> list[str]:
    return sorted(entry.name for entry in storage.entries(folder))


def entry_of(storage: Storage, name: str) -> Entry:
    [entry] = [entry for entry in storage.entries("a") if entry.name == name]
    return entry


def test_written_file_when_read_has_its_content(storage: Storage, tmp_path: Path) -> None:
    source = tmp_path / "local"
    source.write_bytes(b"x" * 100_000)
    storage.write("a/one", b"1")
    storage.write("a/one", b"22")
    storage.write("a/large", source)
    assert storage.read("a/one") == b"22"
    assert storage.read_version("a/large")[0] == source.read_bytes()
    assert entry_of(storage, "one").size == 2


def test_object_when_opened_can_be_read_from_any_place(bucket: str) -> None:
    storage = BucketStorage(bucket)
    storage.write("a", bytes(range(256)) * 4000)
    with storage.open("a") as file:
        assert file.seek(0, 2) == 1_024_000
        file.seek(1_000_000)
        assert file.read(4) == bytes([64, 65, 66, 67])
        assert file.tell() == 1_000_004
        file.seek(3)
        assert file.readline(2) == b"\x03\x04"
        assert len(file.read()) == 1_023_995
        assert file.read(1) == b""


def test_missing_file_raises_file_not_found(storage: Storage) -> None:
    storage.write("a", b"")
    calls: list[Callable[[], object]] = [
        lambda: storage.read("b"),
        lambda: storage.read_version("b"),
    ]
    if isinstance(storage, BucketStorage):
        calls += [partial(storage.stat, "b"), partial(storage.open, "b")]
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()
    storage.remove("b")
    storage.remove("a")
    with pytest.raises(FileNotFoundError):
        storage.read("a")


def test_entries_are_the_files_directly_in_the_folder(storage: Storage) -> None:
    for name in ("a/1", "a/2", "a/.unfinished", "a/deeper/3", "ab/4", "5"):
        storage.write(name, b"x" * len(name))
    assert names(storage, "a") == ["1", "2"]
    assert names(storage, "") == ["5"]
    assert names(storage, "none") == []
    [entry] = storage.entries("ab")
    assert (entry.name, entry.size) == ("4", 4)
    if isinstance(storage, BucketStorage):
        assert [each.name for each in storage.entries("a", after="1")] == ["2"]
        assert entry == storage.stat("ab/4")


def test_entry_when_the_file_changes_has_another_version(storage: Storage) -> None:
    storage.write("a/1", b"x")
    before = entry_of(storage, "1").version
    storage.write("a/1", b"y")
    assert entry_of(storage, "1").version != before


def test_listing_of_several_pages_is_complete(bucket: str) -> None:
    storage = open_storage(bucket)
    count = 100_000 if HEAVY else 2_500
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: storage.write(f"many/{number:06}", b""), range(count)))
    assert names(storage, "many") == [f"{number:06}" for number in range(count)]


def test_creation_when_the_file_exists_is_a_conflict_unless_equal(storage: Storage) -> None:
    storage.write_if_unchanged("a", b"1", None)
    storage.write_if_unchanged("a", b"1", None)
    with pytest.raises(StorageConflict):
        storage.write_if_unchanged("a", b"2", None)
    assert storage.read("a") == b"1"


def test_replacement_when_the_version_is_another_is_a_conflict_unless_equal(storage: Storage) -> None:
    storage.write("a", b"1")
    first = storage.read_version("a")[1]
    storage.write_if_unchanged("a", b"2", first)
    assert storage.read("a") == b"2"
    with pytest.raises(StorageConflict):
        storage.write_if_unchanged("a", b"3", first)
    assert storage.read("a") == b"2"
    storage.write_if_unchanged("a", b"2", first)
    with pytest.raises(StorageConflict):
        storage.write_if_unchanged("b", b"1", first)


def race(attempt: Callable[[int], object], many: int) -> list[int]:
    """Who succeeded of so many at once."""
    barrier = threading.Barrier(many)

    def run(number: int) -> bool:
        barrier.wait()
        try:
            attempt(number)
        except StorageConflict:
            return False
        return True

    with ThreadPoolExecutor(many) as threads:
        return [number for number, ok in enumerate(threads.map(run, range(many))) if ok]


def test_of_many_writers_at_once_exactly_one_wins(storage: Storage) -> None:
    [first] = race(lambda number: storage.write_if_unchanged("a", b"%d" % number, None), WRITERS)
    assert storage.read("a") == b"%d" % first
    version = storage.read_version("a")[1]
    [second] = race(lambda number: storage.write_if_unchanged("a", b"new %d" % number, version), WRITERS)
    assert storage.read("a") == b"new %d" % second


def test_bucket_without_obstore_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ExtraMissing, match=r"\.\[s3\]"):
        open_storage("s3://bucket/a")


def test_bucket_without_an_account_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(StorageDenied) as denied:
        open_storage("az://container/a")
    assert "AZURE_STORAGE_ACCOUNT_NAME" in str(denied.value)


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("value", ["localhost:9000", "http://", "ftp://host", " http://host", "https://id:secret@"])
def test_endpoint_that_is_no_url_is_refused_when_opened(
    value: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(StorageEndpointInvalid) as refused:
        open_storage("s3://bucket/a")
    assert str(refused.value).split()[0] == variable
    assert "secret" not in str(refused.value)


def test_endpoint_when_empty_counts_as_unset(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "")  # it would count before AWS_ENDPOINT_URL
    storage = open_storage(bucket)
    storage.write("a", b"1")
    assert storage.read("a") == b"1"


def test_empty_endpoint_that_another_thread_has_just_unset_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT", raising=False)
    monkeypatch.setattr(type(os.environ), "get", lambda *_: "")
    open_storage("s3://bucket/a")


def test_panic_of_obstore_is_a_storage_error(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://a:b:c")
    storage = open_storage(bucket)
    for call in (lambda: storage.read("a"), lambda: storage.write("a", b""), lambda: names(storage, "a")):
        with pytest.raises(StorageError):
            call()


def test_address_is_normalised_and_refused_with_credentials() -> None:
    assert checked_address("S3://bucket//a/b/") == "s3://bucket/a/b"
    assert checked_address("gs://bucket") == "gs://bucket"
    for wrong in ("s3://", "s3:///a", "s3://id:secret@bucket/a", "s3://bucket/a?key=secret", "s3://bucket:80x/a"):
        with pytest.raises(StorageError) as refused:
            checked_address(wrong)
        assert "secret" not in str(refused.value)
    assert [is_bucket(place) for place in ("s3://a", "az://a", "a/b", "s3:/a", "http://a")] == [
        True,
        True,
        *[False] * 3,
    ]
