"""Chroma settings in the environment or in a `.env` of the current folder do not affect our Chroma."""

import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from chunksink.sinks.chroma import ChromaSink, EmbeddedChromaSink, Server
from chunksink.sinks.conformance.samples import DIMENSIONS, hashes_in, hashes_of, marker
from tests.conftest import HEAVY
from tests.embeddings.endpoint import serve
from tests.engines.servers import ChromaServer
from tests.journey.support import chunksink, newly_started
from tests.support.bus import commit, source
from tests.support.chroma import FEW

OTHERS = {
    "CHROMA_API_IMPL": "chromadb.api.fastapi.FastAPI",
    "CHROMA_SERVER_HOST": "chroma.example.org",
    "CHROMA_SERVER_HTTP_PORT": "1",
    "CHROMA_CLIENT_AUTH_PROVIDER": "chromadb.auth.token_authn.TokenAuthClientProvider",
    "CHROMA_OTEL_COLLECTION_ENDPOINT": "http://127.0.0.1:1",
    "MIGRATIONS": "none",
    "ALLOW_RESET": "true",
}


def in_the_environment(_folder: Path, patch: pytest.MonkeyPatch) -> None:
    for name, value in OTHERS.items():
        patch.setenv(name, value)


def in_a_file(folder: Path, _patch: pytest.MonkeyPatch) -> None:
    (folder / ".env").write_text("".join(f"{name}={value}\n" for name, value in OTHERS.items()))


@pytest.fixture
def others(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle: Callable[[Path, pytest.MonkeyPatch], None] = request.param
    settle(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(
    ("others", "beside"),
    [*product([in_the_environment, in_a_file], [False, True])] if HEAVY else [(in_the_environment, True)],
    indirect=["others"],
)
def test_embedded_chroma_ignores_the_environment(tmp_path: Path, beside: bool) -> None:
    """In this process or in the worker. A build that is opened again without its seal is checked in another process."""
    root, signed = tmp_path / "chroma", marker()
    sink = EmbeddedChromaSink(root)
    if beside:
        sink.prepare()
    build = sink.create(signed, DIMENSIONS)
    build.replace(FEW)
    build.close()
    [sealed] = root.rglob("chunksink-seal.json")
    sealed.unlink()
    build = sink.open(signed.build_id)
    assert hashes_in(build) == hashes_of(FEW)
    build.close()


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("others", [in_the_environment, in_a_file], indirect=True)
def test_chroma_client_ignores_the_environment(chroma_server: ChromaServer) -> None:
    sink, signed = ChromaSink(Server(chroma_server.url, prefix="ambient")), marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace(FEW)
    assert hashes_in(build) == hashes_of(FEW)
    build.close()
    sink.drop(signed.build_id)


@pytest.mark.parametrize("is_first", [False, True])
def test_other_clients_of_the_folder_may_have_their_own_settings(tmp_path: Path, is_first: bool) -> None:
    import chromadb

    sink, signed = EmbeddedChromaSink(tmp_path / "chroma"), marker()
    build = sink.create(signed, DIMENSIONS)
    build.replace(FEW)
    if is_first:
        build.close()
    [database] = tmp_path.rglob("chroma.sqlite3")
    theirs = chromadb.PersistentClient(
        str(database.parent), chromadb.Settings(anonymized_telemetry=False, allow_reset=True)
    )
    assert theirs.get_collection("chunks", embedding_function=None).count() == 2
    if is_first:
        build = sink.open(signed.build_id)
    assert hashes_in(build) == hashes_of(FEW)
    build.close()
    theirs.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("others", "reason"),
    [(b"ALLOW_RESET=se-cret\n", "does not accept the value of ALLOW_RESET"), (b"X=k\xf6ln\n", "not in UTF-8")],
)
def test_environment_that_chroma_refuses_is_reported(tmp_path: Path, others: bytes, reason: str) -> None:
    """chromadb reads these settings during its import, once per process."""
    with serve() as server:
        is_told(
            tmp_path, others, reason, CHUNKSINK_ENDPOINT=server.url, CHUNKSINK_MODEL="hash", CHUNKSINK_SINKS="chroma"
        )


def is_told(tmp_path: Path, others: bytes, reason: str, **settings: str) -> None:
    commit(FolderRoot(tmp_path / "chunks"), "p1", source("pets.md", "the cat sleeps"))
    assert chunksink(tmp_path, "sync", **settings).code == Exit.OK
    commit(FolderRoot(tmp_path / "chunks"), "p2", source("boats.md", "the boat sails"))
    (tmp_path / ".env").write_bytes(others)
    for command, code in (("sync", Exit.USAGE), ("doctor", Exit.ENGINE)):
        ended = newly_started(tmp_path, command, **settings)
        output = ended.out + ended.err
        assert (ended.code, reason in output, str(tmp_path / ".env") in output) == (code, True, True), command
        assert "se-cret" not in output
        assert "Traceback" not in output
    assert "ok    locks" in output, "all else is looked at"


def test_the_import_of_chromadb_skips_checks_of_its_methods_but_leaves_those_of_other_programs(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
import overrides
from chunksink.sinks.chroma.client import open_folder

module = sys.modules["overrides.overrides"]
checked = []
validate = module._validate_method
module._validate_method = lambda *arguments: checked.append(arguments) or validate(*arguments)
open_folder(Path(sys.argv[1])).close()
assert len(checked) < 10, len(checked)  # of more than a hundred

class Base:
    def size(self) -> int: ...

try:
    class Other(Base):
        @overrides.override
        def size(self) -> str: ...
except TypeError:
    sys.exit(0)
sys.exit("accepted")
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
