"""Partitions in a real bucket whose requests fail, are refused or get no answer."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from chunksink.chunkbus import bucket as bucket_module
from chunksink.chunkbus.bucket import BucketStorage
from chunksink.chunkbus.errors import PartitionLocked, StorageDenied, StorageError
from chunksink.chunkbus.layout import BusRoot
from tests.chunkbus.buckets import KEY, copies, elsewhere, read
from tests.chunkbus.crash_writer import version, write
from tests.chunkbus.samples import validate
from tests.engines.servers import S3Server
from tests.faults.proxy import ANSWER_LOST, CUT_ANSWER, RESET, UNAVAILABLE, Fault, Proxy, always, only
from tests.support.forking import FORKING


@pytest.fixture
def proxy(s3_server: S3Server, root: BusRoot, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    retries = {"max_retries": 3, "backoff": {"init_backoff": timedelta(milliseconds=5)}}
    monkeypatch.setattr(bucket_module, "RETRIES", retries)
    with Proxy(s3_server.url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield proxy


SLOW = Fault("slow", delay=0.1)


def write_elsewhere(place: str, home: Path, variables: dict[str, str], number: int) -> None:
    os.environ.update(variables)
    write(BusRoot.at(place, home), KEY, number)


@pytest.mark.promise(2)
@pytest.mark.parametrize("moment", [RESET, ANSWER_LOST], ids=["before", "after"])
@pytest.mark.parametrize("existing", [True, False], ids=["replacing", "first"])
def test_writer_when_killed_at_any_request_leaves_one_complete_version(
    existing: bool, moment: Fault, root: BusRoot, proxy: Proxy, tmp_path: Path, s3_server: S3Server
) -> None:
    variables = s3_server.variables() | {"AWS_ENDPOINT_URL": proxy.url}
    seen: list[bool] = []
    for number in range(1, 100):
        one = BusRoot.at(f"{root.address}/{number}", tmp_path / "reader")
        if existing:
            write(one, KEY, 1)
        process = FORKING.Process(target=write_elsewhere, args=(one.address, tmp_path / "writer", variables, 2))
        proxy.inject(replace(moment, act=process.kill), only(number))
        process.start()
        process.join(60)
        if not proxy.faulted:
            break
        assert process.exitcode == -signal.SIGKILL
        [request] = proxy.faulted
        proxy.heal()
        is_commit = request.startswith("PUT") and "/manifest/" in request
        is_new = any(seen) or (is_commit and moment is ANSWER_LOST)
        one.refresh()
        assert one.partition_keys() == ([KEY] if is_new or existing else [])
        if is_new or existing:
            assert read(one) == version(2 if is_new else 1)
            assert validate(one) == []
        seen.append(is_new or is_commit)
        write(one, KEY, 3)
        assert read(one) == version(3)
    assert (seen[0], seen[-1]) == (False, True)
    assert process.exitcode == 0


@pytest.mark.parametrize("number", range(1, 4))
@pytest.mark.parametrize("fault", [UNAVAILABLE, RESET, ANSWER_LOST, CUT_ANSWER, SLOW], ids=str)
def test_commit_when_one_request_fails_succeeds_or_can_run_again(
    fault: Fault, number: int, root: BusRoot, proxy: Proxy, tmp_path: Path
) -> None:
    write(root, KEY, 1)
    behind = elsewhere(root, tmp_path / "other")
    proxy.inject(fault, only(number))
    try:
        write(behind, KEY, 2)
    except StorageError:
        assert read(root) in (version(1), version(2))
        proxy.heal()
        write(behind, KEY, 2)
    assert read(root) == version(2)
    assert validate(root) == []


@pytest.mark.parametrize("fault", [UNAVAILABLE, RESET, CUT_ANSWER, SLOW], ids=str)
def test_reader_when_a_request_fails_never_caches_a_part(
    fault: Fault, root: BusRoot, proxy: Proxy, tmp_path: Path
) -> None:
    write(root, KEY, 1)
    for number in (1, 2):
        folder = tmp_path / f"other-{number}"
        behind = elsewhere(root, folder)
        proxy.inject(fault, only(number))
        try:
            assert read(behind) == version(1)
        except StorageError:
            assert copies(folder) == []
            proxy.heal()
        assert read(behind) == version(1)
        [copy] = folder.iterdir()
        assert copy.stem == sha256(copy.read_bytes()).hexdigest()


def test_outage_is_an_error_and_no_finding(root: BusRoot, proxy: Proxy, tmp_path: Path) -> None:
    write(root, KEY, 1)
    behind = elsewhere(root, tmp_path / "other")
    proxy.inject(UNAVAILABLE, always)
    for call in (lambda: validate(behind), lambda: behind.open(KEY), lambda: write(behind, KEY, 2)):
        with pytest.raises(StorageError):
            call()
    proxy.heal()
    assert validate(behind) == []


def test_ctrl_c_ends_a_request_that_gets_no_answer(root: BusRoot, proxy: Proxy, tmp_path: Path) -> None:
    behind = elsewhere(root, tmp_path / "other")
    silence = Fault("silence", request_bytes=0, end="silence", act=lambda: os.kill(os.getpid(), signal.SIGINT))
    proxy.inject(silence, only(1))  # a second signal would reach the test runner
    with pytest.raises(KeyboardInterrupt):
        behind.partition_keys()


def test_denied_request_is_an_error_of_its_own(root: BusRoot, proxy: Proxy, tmp_path: Path) -> None:
    write(root, KEY, 1)
    behind = elsewhere(root, tmp_path / "other")
    proxy.inject(Fault("expired", status=403), always)
    with pytest.raises(StorageDenied):
        validate(behind)
    with pytest.raises(StorageDenied):
        write(behind, KEY, 2)


@pytest.mark.parametrize(
    ("status", "code", "kind", "named"),
    [
        (400, "ExpiredToken", StorageDenied, "credentials"),
        (403, "RequestTimeTooSkewed", StorageDenied, "clock"),
        (400, "AuthorizationHeaderMalformed", StorageError, "AWS_REGION"),
        (301, "PermanentRedirect", StorageError, "AWS_REGION"),
        (307, "TemporaryRedirect", StorageError, "AWS_REGION"),
        (503, "SlowDown", StorageError, "127.0.0.1"),
    ],
)
def test_refused_request_names_what_to_correct(
    status: int, code: str, kind: type[StorageError], named: str, root: BusRoot, proxy: Proxy, tmp_path: Path
) -> None:
    write(root, KEY, 1)
    behind = elsewhere(root, tmp_path / "other")
    proxy.inject(Fault(code, status=status, body=b"<Error><Code>%s</Code></Error>" % code.encode()), always)
    for call in (behind.partition_keys, lambda: behind.manifest_bytes(KEY), lambda: write(behind, KEY, 2)):
        with pytest.raises(StorageError) as refused:
            call()
        assert type(refused.value) is kind
        assert named in str(refused.value)
        assert "AWS_SECRET_ACCESS_KEY" not in str(refused.value)


def test_redirect_outside_s3_does_not_name_a_variable_of_s3(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"ACCOUNT_NAME": "a", "ENDPOINT": proxy.url, "SKIP_SIGNATURE": "true"}
    for name, value in variables.items():
        monkeypatch.setenv(f"AZURE_STORAGE_{name}", value)
        monkeypatch.setenv(f"AZURE_{name}", value)
    proxy.inject(Fault("redirect", status=301), always)
    with pytest.raises(StorageError, match="redirect") as refused:
        BucketStorage("az://container/a").read("b")
    assert proxy.faulted
    assert "AWS" not in str(refused.value)


def test_host_is_not_named_if_there_are_several_endpoints(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT", proxy.url.replace("127.0.0.1", "localhost"))
    proxy.inject(UNAVAILABLE, always)
    with pytest.raises(StorageError, match="the object storage does not answer"):
        BucketStorage("s3://bucket/a").read("b")


@pytest.mark.parametrize("status", [409, 412])
def test_refused_manifest_is_a_lost_race(status: int, root: BusRoot, proxy: Proxy, tmp_path: Path) -> None:
    write(root, KEY, 1)
    behind = elsewhere(root, tmp_path / "other")
    proxy.inject(
        Fault("refused", status=status), lambda _, request: b"PUT" in request[:4] and b"/manifest/" in request[:200]
    )
    with pytest.raises(PartitionLocked):
        write(behind, KEY, 2)
    assert read(root) == version(1)


def test_wrong_key_is_denied(root: BusRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
    with pytest.raises(StorageDenied) as denied:
        elsewhere(root, tmp_path / "other").partition_keys()
    assert "wrong-secret" not in str(denied.value)


def test_bucket_that_does_not_exist_is_an_error(bucket: str, tmp_path: Path) -> None:
    for call in (lambda root: root.require(), lambda root: root.open(KEY)):
        with pytest.raises(StorageError):
            call(BusRoot.at("s3://no-such-bucket/a", tmp_path))
