"""Starts real servers on free loopback ports and always ends them.

The session's fixtures (`meilisearch_server`, `chroma_server`) use these functions. A test that kills its engine,
restarts it or needs its own key uses the context managers directly:

    with run_meilisearch(data=tmp_path / "data") as server: ...
    with run_meilisearch(data=tmp_path / "data", key=server.key, port=server.port) as again: ...
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meilisearch import Client

from tests.engines import postgres_folders
from tools import engines

START_TIMEOUT = 60.0  # seconds; generous, since two busy cores may also be running the rest of the suite
HOST = "127.0.0.1"
LOG = "engine.log"  # in the server's scratch folder, as keeper.py names it
KEEPER = Path(__file__).with_name("keeper.py")

# No proxy from the environment must be used between a test and its own loopback server.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class MeilisearchServer:
    port: int
    pid: int
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"


@dataclass(frozen=True)
class ChromaServer:
    port: int
    pid: int
    host: str = HOST

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@dataclass(frozen=True)
class S3Server:
    """SeaweedFS with the S3 interface. It creates a bucket with its first object."""

    port: int
    pid: int
    key_id: str
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def variables(self, url: str = "") -> dict[str, str]:
        """The environment of a client that reaches the server at `url`."""
        return {
            "AWS_ENDPOINT_URL": url or self.url,
            "AWS_ACCESS_KEY_ID": self.key_id,
            "AWS_SECRET_ACCESS_KEY": self.key,
            "AWS_REGION": "us-east-1",
        }


@dataclass(frozen=True)
class PostgresServer:
    """PostgreSQL with pgvector and a superuser. Each test needs its own schema."""

    port: int
    pid: int
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        """The address with the password."""
        return f"postgresql://{postgres_folders.SUPERUSER}:{self.key}@{HOST}:{self.port}/postgres"

    def kill(self) -> None:
        """End the server at once. It recovers when it starts again."""
        kill(self.pid)


def kill(pid: int) -> None:
    """End a server and its processes at once, as a power cut does. Returns when they are gone: until then they keep the
    port and the lock of the database."""
    import psutil

    try:
        server = psutil.Process(pid)
        processes = [*server.children(recursive=True), server]
    except psutil.NoSuchProcess:
        return
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a child may end with another one
            process.kill()
    psutil.wait_procs(processes, START_TIMEOUT)


class DidNotStart(Exception):
    """The engine ended or did not answer. The message contains the end of its log."""


@contextmanager
def run_meilisearch(
    *, data: Path | None = None, key: str | None = None, port: int | None = None, arguments: Sequence[str] = ()
) -> Iterator[MeilisearchServer]:
    """A separate Meilisearch. With `data`, its database outlives the server; otherwise nothing is left."""
    key = key or secrets.token_hex(16)

    def command(port: int, scratch: Path) -> list[str]:
        return [
            *(_program("meilisearch"), "--no-analytics", "--http-addr", f"{HOST}:{port}"),
            *("--db-path", str(data or scratch / "data")),
            *("--max-indexing-memory", "1GiB", "--log-level", "WARN"),
            *arguments,
        ]

    def ready(port: int, _scratch: Path) -> bool:
        # The second call needs our key: it proves that the server which answers is ours.
        healthy = get_json(f"http://{HOST}:{port}/health")["status"] == "available"
        return healthy and "pkgVersion" in get_json(f"http://{HOST}:{port}/version", key)

    # The key goes through the environment: arguments can be read by every user of the machine.
    with _run(command, ready, {"MEILI_MASTER_KEY": key}, port) as (port, pid):
        yield MeilisearchServer(port, pid, key)


@contextmanager
def run_chroma(*, data: Path | None = None, port: int | None = None) -> Iterator[ChromaServer]:
    """A separate Chroma server. With `data`, its directory outlives the server; otherwise nothing is left."""

    def command(port: int, scratch: Path) -> list[str]:
        folder = data or scratch / "data"
        return [_program("chroma"), "run", "--path", str(folder), "--host", HOST, "--port", str(port)]

    def ready(port: int, scratch: Path) -> bool:
        # Another Chroma may answer on this port. Ours names its folder once it has found the port free.
        ours = str(data or scratch / "data") in (scratch / LOG).read_text(encoding="utf-8", errors="replace")
        return ours and "nanosecond heartbeat" in get_json(f"http://{HOST}:{port}/api/v2/heartbeat")

    with _run(command, ready, {"ANONYMIZED_TELEMETRY": "False"}, port) as (port, pid):
        yield ChromaServer(port, pid)


@contextmanager
def run_s3() -> Iterator[S3Server]:
    """A separate SeaweedFS. Nothing is left of it."""
    key_id, key = secrets.token_hex(8), secrets.token_hex(16)
    others = [free_port() for _ in range(9)]

    def command(port: int, scratch: Path) -> list[str]:
        keys = {"credentials": [{"accessKey": key_id, "secretKey": key}]}
        allowed = {"name": "tests", "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        (scratch / "s3.json").write_text(json.dumps({"identities": [keys | allowed]}), encoding="utf-8")
        (scratch / "data").mkdir()
        names = ("master", "master", "volume", "volume", "filer", "filer", "s3", "s3", "s3")
        kinds = (
            "port",
            "port.grpc",
            "port",
            "port.grpc",
            "port",
            "port.grpc",
            "port.grpc",
            "port.iceberg",
            "port.lance",
        )
        ports = [f"-{name}.{kind}={other}" for name, kind, other in zip(names, kinds, others, strict=True)]
        return [
            *(_program("s3"), "server", f"-dir={scratch / 'data'}", f"-ip={HOST}", f"-ip.bind={HOST}", *ports),
            *("-s3", f"-s3.port={port}", f"-s3.config={scratch / 's3.json'}", "-s3.iam=false"),
            *("-master.telemetry=false", "-master.volumeSizeLimitMB=256", "-volume.max=0"),
        ]

    def ready(port: int, _scratch: Path) -> bool:
        from chunksink.chunkbus.bucket import BucketStorage
        from chunksink.chunkbus.errors import StorageError

        socket.create_connection((HOST, port)).close()  # its client would wait a long time before its next attempt
        found = S3Server(port, 0, key_id, key)
        try:
            with patched_environment(found.variables()):
                BucketStorage("s3://tests/ready").write("x", b"ours")
        except StorageError:
            return False
        return True

    with _run(command, ready, {"CHUNKSINK_TEST_GRACE": "0"}, None) as (port, pid):  # it takes 20 s to end when asked
        yield S3Server(port, pid, key_id, key)


@contextmanager
def run_postgres(
    *, data: Path | None = None, key: str | None = None, port: int | None = None, arguments: Sequence[str] = ()
) -> Iterator[PostgresServer]:
    """A separate PostgreSQL. With `data`, its database outlives the server; otherwise nothing is left.

    Files are not synced to the disk: killing the server loses nothing, only a crash of the machine would.
    """
    key = key or secrets.token_hex(16)

    def command(port: int, scratch: Path) -> list[str]:
        programs, folder = postgres_folders.programs(Path(_program("postgres")), scratch), data or scratch / "data"
        postgres_folders.database(programs, folder, key)
        settings = [f"listen_addresses={HOST}", f"port={port}", "unix_socket_directories=", "fsync=off"]
        chosen = (part for setting in (*settings, "full_page_writes=off") for part in ("-c", setting))
        return [str(programs / "postgres"), "-D", postgres_folders.name(folder), *chosen, *arguments]

    def ready(port: int, _scratch: Path) -> bool:
        import psycopg

        try:
            psycopg.connect(PostgresServer(port, 0, key).url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    # SIGTERM would wait until all clients have left.
    variables = {"CHUNKSINK_TEST_SIGNAL": "SIGINT", "CHUNKSINK_TEST_USER": postgres_folders.USER}
    with _run(command, ready, variables | {"CHUNKSINK_TEST_FOLDER": str(data or "data")}, port) as (port, pid):
        yield PostgresServer(port, pid, key)


@contextmanager
def patched_environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def get_json(url: str, key: str = "") -> Any:
    """The answer of a GET request. Raises the errors of urllib for the network and the status."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"} if key else {})
    with _opener.open(request, timeout=5) as answer:
        return json.load(answer)


@contextmanager
def _run(
    command: Callable[[int, Path], list[str]],
    ready: Callable[[int, Path], bool],
    environment: dict[str, str],
    fixed_port: int | None,
) -> Iterator[tuple[int, int]]:
    """Start, wait until it answers, yield (port, pid), end. If another program took the port, try again."""
    attempts = 1 if fixed_port else 3
    for attempt in range(1, attempts + 1):
        port = fixed_port or free_port()
        scratch = Path(tempfile.mkdtemp(prefix="chunksink-test-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
        keeper = _keep(scratch, command(port, scratch), environment)
        try:
            pid = _pid(keeper)
            try:
                _wait(lambda: ready(port, scratch), pid, scratch / LOG)  # noqa: B023 (called here and now)
            except DidNotStart:
                if attempt == attempts:
                    raise
                continue
            yield port, pid
            return
        finally:
            assert keeper.stdin is not None
            assert keeper.stdout is not None
            keeper.stdin.close()
            keeper.wait(START_TIMEOUT)
            keeper.stdout.close()
            shutil.rmtree(scratch, ignore_errors=True)  # normally the keeper has done this, unless it never started


def _keep(scratch: Path, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", str(KEEPER), str(scratch), *command],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for pytest; the keeper ends when pytest closes the pipe
    )


def _pid(keeper: subprocess.Popen[str]) -> int:
    assert keeper.stdout is not None
    line = keeper.stdout.readline().strip()
    if not line:
        raise DidNotStart("the engine's program could not be run")
    return int(line)


def _wait(ready: Callable[[], bool], pid: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if not alive(pid):
            raise DidNotStart(f"the engine ended at once; its log ends:\n{_tail(log)}")
        try:
            if ready() and alive(pid):
                return
        except (OSError, ValueError):
            pass  # not listening yet (urllib's errors are OSErrors), or half an answer
        time.sleep(0.05)
    raise DidNotStart(f"no answer within {START_TIMEOUT:.0f} s; the engine's log ends:\n{_tail(log)}")


@contextmanager
def without_leftovers(server: MeilisearchServer, prefix: str) -> Iterator[Client]:
    """Removes all indexes whose names begin with this prefix, before and after."""
    client = Client(server.url, server.key)
    try:
        yield client
    finally:
        for index in client.get_indexes({"limit": 1000})["results"]:
            if index.uid.startswith(prefix):
                client.delete_index(index.uid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def free_port() -> int:
    """A port that was free a moment ago. Another program may still take it: `_run` tries again."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _program(engine: str) -> str:
    program = engines.find(engine)
    if program is None:
        raise DidNotStart(engines.missing(engine))
    return str(program)


def _tail(log: Path, lines: int = 15) -> str:
    if not log.exists():
        return "(no log)"
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
