"""`chunksink serve` as a real process: start, changes by other processes, and shutdown."""

import gc
import json
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import IO

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from chunksink.search.page.security import Hosts
from tests.chunksink.shell import Shell
from tests.conftest import HEAVY
from tests.embeddings.endpoint import serve as serve_endpoint
from tests.engines.servers import free_port
from tests.journey.support import chunksink, command_line, environment
from tests.support.bus import FEBRUARY, MARCH, commit, source
from tests.support.waiting import eventually

FOLLOWS_WITHIN = 2.0
WORDS = {"CHUNKSINK_SINKS": "fts"}
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server:
    """A process that serves a folder. Its output is read all the time."""

    def __init__(self, folder: Path, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            command_line("serve", *arguments),
            cwd=folder,
            env=environment(PYTHONUNBUFFERED="1", **variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.printed: list[str] = []
        self.complained: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self.printed), (self.process.stderr, self.complained))
        ]
        for thread in self._threads:
            thread.start()
        eventually(lambda: self.printed or self.process.poll() is not None, 60)
        self.address = self.printed[0].split(" at ")[1].split()[0] if self.printed else ""

    def get(self, path: str, token: str = "", data: dict[str, str] | None = None, **headers: str) -> tuple[int, str]:
        """With `data`, sends a form."""
        body = urllib.parse.urlencode(data).encode() if data else None
        request = urllib.request.Request(self.address.rstrip("/") + path, body, headers)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with _opener.open(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def texts(self, query: str) -> list[str]:
        status, body = self.get(f"/api/search?q={query}&limit=50")
        answer = json.loads(body)
        assert status == 200, body
        assert answer["unavailable"] == {}, body
        return [hit["text"] for hit in answer["hits"]]

    def end(self, sign: int = signal.SIGINT) -> int:
        self.process.send_signal(sign)
        code = self.process.wait(30)
        for thread in self._threads:
            thread.join(10)
        return code

    @staticmethod
    def _read(stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line)  # noqa: PERF402 (seen by others as it comes)


@contextmanager
def running(folder: Path, *arguments: str, **variables: str) -> Iterator[Server]:
    server = Server(folder, "--port", "0", *arguments, **variables)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait(30)


@pytest.fixture
def bus(quick_shell: Shell) -> FolderRoot:
    sources = [source("pets.md", "the cat sleeps"), source("sea.md", "a boat at sea")]
    return quick_shell.begin("served", "rebuild", p1=sources).root


def test_serve_prints_its_address_and_ends_with_a_signal(tmp_path: Path, bus: FolderRoot) -> None:
    with running(tmp_path, **WORDS) as server:
        assert server.address.startswith("http://127.0.0.1:")
        assert server.texts("cat") == ["the cat sleeps"]
        assert "<mark>cat</mark>" in server.get("/?q=cat")[1]
        status, page = server.get("/status")
        assert (status, "Index" in page, "Cache of vectors" in page) == (200, True, True)
        with _opener.open(f"{server.address}?q=cat"):  # an open connection does not delay the shutdown
            assert server.end(signal.SIGINT) == Exit.OK
    assert server.printed[-1] == "stopped\n"
    assert server.complained == [], "no log of what was asked, no complaint"


def test_serve_can_be_ended_during_its_start(tmp_path: Path, bus: FolderRoot) -> None:
    port = free_port()
    server = Server(tmp_path, "--port", str(port), **WORDS)
    assert server.address == f"http://127.0.0.1:{port}/"
    assert server.end(signal.SIGTERM) == Exit.OK
    assert (server.printed[-1], server.complained) == ("stopped\n", [])


@pytest.mark.skipif(not HEAVY, reason="it waits until the server closes them; CHUNKSINK_SOAK_HEAVY")
def test_silent_connections_do_not_block_others(tmp_path: Path, bus: FolderRoot) -> None:
    with running(tmp_path, **WORDS) as server, ExitStack() as stack:
        there = ("127.0.0.1", urllib.parse.urlsplit(server.address).port)
        silent = [
            stack.enter_context(socket.create_connection(there, 20, source_address=("127.0.0.2", 0)))
            for _ in range(520)
        ]
        silent[0].sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        started = time.monotonic()
        assert server.texts("cat") == ["the cat sleeps"]
        assert time.monotonic() - started < FOLLOWS_WITHIN
        assert {each.recv(1) for each in silent} == {b""}, "in the end all are closed"
        assert server.texts("boat") == ["a boat at sea"]


def test_malformed_body_is_a_client_error(tmp_path: Path, bus: FolderRoot) -> None:
    with running(tmp_path, CHUNKSINK_TOKENS=f"{'0' * 64}=*", **WORDS) as server:
        there = ("127.0.0.1", urllib.parse.urlsplit(server.address).port)
        for path, parts in product(("/sign-in", "/api/search"), (["ZZ\r\n"], ["3\r\nabc\r\n", "-1\r\n"])):
            with socket.create_connection(there, 20) as raw:
                head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{there[1]}\r\nTransfer-Encoding: chunked\r\n\r\n"
                for part in (head, *parts):
                    raw.sendall(part.encode())
                    time.sleep(0.05)
                assert raw.recv(12)[9:10] == b"4"
        assert server.get("/healthz")[0] == 200
        server.end()
    assert "Traceback" not in "".join(server.complained)


def test_serve_on_a_used_port_is_a_usage_error(quick_shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = quick_shell("serve", "--port", str(port))
    assert (ended.code, "--port" in ended.err) == (Exit.USAGE, True)
    assert f"cannot listen on 127.0.0.1, port {port}: Address already in use" in ended.err


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--host", "no-such-host.invalid", "no-such-host.invalid"),
        ("--host", "192.0.2.1", "192.0.2.1"),
        ("--host", ".example.org", ".example.org"),
        ("--host", f"{'a' * 64}.example.org", ".example.org"),
        ("--source-url", "javascript:alert(1)//", "https://example.org/docs/"),
        ("--source-url", "https://[", "https://example.org/docs/"),
    ],
)
def test_serve_with_an_unusable_address_is_a_usage_error(
    option: str, value: str, expected: str, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_TOKENS", f"{'0' * 64}=*")
    ended = quick_shell("serve", "--port", "0", option, value)
    assert (ended.code, expected in ended.err) == (Exit.USAGE, True)


@pytest.mark.parametrize("host", ["0.0.0.0", *(["::", ""] if HEAVY else [])])
def test_other_addresses_require_tokens(tmp_path: Path, bus: FolderRoot, host: str) -> None:
    ended = chunksink(tmp_path, "serve", "--host", host, "--port", "0", **WORDS)
    assert ended.code == Exit.USAGE
    assert "[tokens]" in ended.err
    (recipe,) = [line.strip() for line in ended.err.splitlines() if "python3 -c" in line]
    made = subprocess.run(recipe, shell=True, capture_output=True, text=True, check=True).stdout.split()
    assert sha256(made[0].encode()).hexdigest() == made[1], "the remedy works as it stands"
    with running(tmp_path, "--host", host, CHUNKSINK_TOKENS=f"{made[1]}=*", **WORDS) as server:
        server.address = (
            server.address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]").replace("//:", "//127.0.0.1:")
        )
        assert server.get("/api/search?q=cat")[0] == 401
        assert server.get("/api/search?q=cat", token=made[0])[0] == 200
        assert server.get("/api/search?q=cat", token=made[0], Host="evil.example")[0] == 421
        server.end()
        assert made[0] not in "".join([*server.printed, *server.complained])


@pytest.mark.promise(11)
def test_token_sees_only_its_tenant(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    owned = [source("a.md", f"secret of {name}", ids=name, tenant_id=name) for name in ("acme", "other")]
    commit(root, "p1", [*owned[0], *owned[1], *source("b.md", "secret of nobody")])
    tokens = {name: sha256(name.encode()).hexdigest() for name in ("token-acme", "token-all")}
    table = f'[tokens]\n"{tokens["token-acme"]}" = "acme"\n"{tokens["token-all"]}" = "*"\n'
    (tmp_path / "chunksink.toml").write_text(f'sinks = ["fts"]\ntenants = "required"\n{table}')
    assert chunksink(tmp_path, "rebuild").code == Exit.OK
    with running(tmp_path) as server:
        for path in ("/api/search?q=secret&limit=50&facet=tenant_key", "/?q=secret"):
            status, body = server.get(path, token="token-acme")
            assert (status, "of other" in body or "nobody" in body) == (200, False)
            assert "acme" in body
            assert server.get(f"{path}&tenant=other", token="token-acme")[0] == 403
        assert json.loads(server.get("/api/search?q=secret", token="token-all")[1])["hits"] == []
        assert server.get("/status", token="token-acme")[0] == 403
        status, page = server.get("/status", token="token-all")
        assert (status, "<dd>3</dd>" in page) == (200, True)


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("kb.example.org", True),
        ("fd00::7", True),
        ("https://kb.example.org", False),
        ("kb.example.org:443", False),
        ("10.0.0.7:80", False),
        ("*.example.org", False),
        ("kb.example.org/search", False),
        ("kb.example.org.", False),
        ("", False),
    ],
)
def test_name_that_no_request_can_have_is_refused(quick_shell: Shell, name: str, usable: bool) -> None:
    """A usable name is followed by the refusal of the other option."""
    ended = quick_shell("serve", "--name", name, "--host", "no host")
    assert (ended.code, "--name" in ended.err) == (Exit.USAGE, not usable)
    assert not usable or Hosts("127.0.0.1", [name]).serves(f"[{name}]" if ":" in name else name)


@pytest.mark.promise(12)
def test_tokens_are_never_shown_or_stored(tmp_path: Path) -> None:
    """Valid and invalid tokens in the header and in the form, and a token in the address, where none is accepted."""
    good, wrong = "canary-good-8c21", "canary-wrong-77ab"
    commit(FolderRoot(tmp_path / "chunks"), "p1", source("a.md", "a cat"))
    table = f'[tokens]\n"{sha256(good.encode()).hexdigest()}" = "*"\n'
    (tmp_path / "chunksink.toml").write_text(f'sinks = ["fts"]\n{table}')
    assert chunksink(tmp_path, "rebuild").code == Exit.OK
    with running(tmp_path) as server:
        answers = [server.get("/api/search?q=cat", token=token) for token in (good, wrong)]
        answers += [
            server.get(f"{path}&token={token}", token=good)
            for path in ("/?q=x", "/api/search?q=x&filter=no")
            for token in (good, wrong)
        ]
        answers += [server.get("/sign-in", data={"token": token, "target": "/?q=cat"}) for token in (good, wrong)]
        assert [status for status, _ in answers[:2]] == [200, 401]
        listed = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        server.end()
        output = "".join([*server.printed, *server.complained, *(body for _, body in answers)])
    files = b"".join(file.read_bytes() for file in (tmp_path / ".chunksink").rglob("*") if file.is_file())
    assert "serving" in output and "a cat" in output and b"a cat" in files, "or nothing was looked at"
    for secret in (good, wrong):
        assert secret not in output
        assert secret.encode() not in files + listed


def test_serve_before_the_first_index_names_the_remedy_and_then_serves(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p1", source("pets.md", "the cat sleeps"))
    with running(tmp_path, **WORDS) as server:
        for path in ("/api/search?q=cat", "/?q=cat", "/status", "/chunk?id=x"):
            status, body = server.get(path)
            assert (status, "chunksink sync" in body) == (503, True), path
        eventually(lambda: json.loads(server.get("/readyz")[1])["reason"] == "no_index", 10)
        assert (server.get("/readyz")[0], server.get("/healthz")[0]) == (503, 200)
        assert chunksink(tmp_path, "rebuild", **WORDS).code == Exit.OK
        eventually(lambda: server.get("/api/search?q=cat")[0] == 200, FOLLOWS_WITHIN)
        assert server.texts("cat") == ["the cat sleeps"]
        eventually(lambda: json.loads(server.get("/readyz")[1])["status"] == "ok", 10)


def test_unwritable_leases_are_reported_only_to_tokens_for_all(tmp_path: Path, bus: FolderRoot) -> None:
    leases = tmp_path / ".chunksink" / "leases"
    if leases.exists():
        leases.rename(leases.with_name("aside"))
    leases.touch()
    tokens = ",".join(f"{sha256(name.encode()).hexdigest()}={tenant}" for name, tenant in (("all", "*"), ("one", "a")))
    with running(tmp_path, CHUNKSINK_TOKENS=tokens, **WORDS) as server:
        for path in ("/api/search?q=cat", "/?q=cat", "/chunk?id=x"):
            for token in ("all", "one"):
                status, body = server.get(path, token=token)
                assert (status, "leases" in body) == (503, token == "all"), path
        assert (server.get("/readyz")[0], server.get("/healthz")[0]) == (503, 200)
        server.end()
    assert ["leases" in line for line in server.complained] == [False], "one line without a reason, however often asked"


class Poll:
    """Asks all the time. Records when each answer was first seen, and errors."""

    def __init__(self, server: Server, query: str) -> None:
        self._server, self._query = server, query
        self._over = threading.Event()
        self.answers: list[tuple[float, list[str]]] = []
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self.answers.append((time.monotonic(), sorted(self._server.texts(self._query))))
            except BaseException as error:
                self.errors.append(error)
            time.sleep(0.1)

    def end(self) -> None:
        self._over.set()
        self._thread.join(60)

    def first(self, expected: list[str], since: float) -> float:
        """Seconds from a moment to the first appearance of this answer."""
        eventually(lambda: any(texts == expected for _, texts in list(self.answers)), 15)
        return next(at for at, texts in self.answers if texts == expected) - since


def test_serve_follows_syncs_and_flips_of_other_processes(tmp_path: Path) -> None:
    """Vectors come from an endpoint. Two threads ask all the time and get no error."""
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p1", [*source("pets.md", "the cat sleeps"), *source("sea.md", "a cat at sea")])
    with serve_endpoint() as endpoint:
        variables = {"CHUNKSINK_ENDPOINT": endpoint.url, "CHUNKSINK_MODEL": "hash", "CHUNKSINK_SINKS": "fts,chroma"}
        assert chunksink(tmp_path, "rebuild", **variables).code == Exit.OK
        with running(tmp_path, **variables) as server:
            polls = [Poll(server, "cat") for _ in range(2)]
            try:
                for poll in polls:
                    poll.first(["a cat at sea", "the cat sleeps"], time.monotonic())
                commit(root, "p2", source("sea.md", "the cat went ashore", version="2", at=FEBRUARY), at=FEBRUARY)
                assert chunksink(tmp_path, "sync", **variables).code == Exit.OK
                synced = time.monotonic()
                new = ["the cat sleeps", "the cat went ashore"]
                assert max(poll.first(new, synced) for poll in polls) < FOLLOWS_WITHIN
                commit(root, "p3", source("pets.md", "the cat woke up", version="2", at=MARCH), at=MARCH)
                assert chunksink(tmp_path, "rebuild", **variables).code == Exit.OK
                flipped = time.monotonic()
                newest = ["the cat went ashore", "the cat woke up"]
                assert max(poll.first(newest, flipped) for poll in polls) < FOLLOWS_WITHIN
                assert chunksink(tmp_path, "rollback", **variables).code == Exit.OK
                back = time.monotonic()
                for poll in polls:
                    eventually(lambda poll=poll: any(t == new for at, t in poll.answers if at >= back), FOLLOWS_WITHIN)  # type: ignore[misc]
            finally:
                for poll in polls:
                    poll.end()
            assert [error for poll in polls for error in poll.errors] == []
            seen = {tuple(texts) for poll in polls for _, texts in poll.answers}
            assert {len(texts) for texts in seen} == {2}, f"at no moment is a source absent or twice there: {seen}"
            assert server.end() == Exit.OK
        assert server.complained == []


def test_get_ready_excludes_objects_from_garbage_collection(shell: Shell) -> None:
    """A collection of all generations took a third of a second, during which no question was answered."""
    from chunksink.command_line.commands.serve import get_ready
    from chunksink.live import LiveSearch
    from chunksink.settings.config import Config

    shell.synced(p1=[source("a.md", "a cat")])
    try:
        with closing(LiveSearch(Config())) as live:
            get_ready(live)
        get_ready(live)  # closed meanwhile
        assert gc.get_freeze_count() > 10_000
        assert gc.isenabled()
    finally:
        gc.unfreeze()
