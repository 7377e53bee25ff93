"""No secret is shown: keys in variables and addresses, with engines that work, fail, refuse or echo them.

All commands run in one real process, in Python's development mode and at debug level, so that the libraries log all
they can.
"""

import json
import subprocess
import sys
import time
from email.message import Message
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from tests.conftest import need, sampled
from tests.embeddings.endpoint import serve
from tests.engines.other_servers import answering
from tests.engines.servers import ChromaServer, run_meilisearch
from tests.faults import proxy as p
from tests.faults.proxy import Proxy
from tests.journey.support import command_line, environment
from tests.support.bus import FEBRUARY, commit, source

pytestmark = pytest.mark.promise(12)

KEYS = {
    "MEILI_MASTER_KEY": "canary-meili-7f3a90c1d2e4b586",
    "TEST_ENDPOINT_KEY": "canary-endpoint-55aa01ffe2",
    "TEST_CHROMA_TOKEN": "canary-chroma-c0ffee4411",
}
PASSWORD = "canary-password-81bd27"
CANARY = "canary-"

DRIVER = """
import json, logging, os, sys, traceback
logging.basicConfig(level=logging.DEBUG)
from chunksink.command_line.cli import run
codes = []
for arguments, variables, broken in json.load(sys.stdin):
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    print("==>", *arguments, *variables, file=sys.stderr)
    if broken:
        from chunksink.sinks.meilisearch.connection import Connection
        real = Connection.get
        Connection.get = lambda self, *asked, **named: (_ for _ in ()).throw(RuntimeError("a bug"))
    try:
        codes.append(run(arguments))
    except Exception:
        traceback.print_exc()
        codes.append(1)
    if broken:
        Connection.get = real
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})
with open(sys.argv[1], "w") as file:
    json.dump(codes, file)
"""
"""Commands from standard input, each with its variables and whether a bug befalls it; their exit codes into a file."""


def all_headers(headers: Message) -> str:
    return json.dumps({"message": f"bad request: {dict(headers)}", "error": str(headers)})


def the_key(headers: Message) -> str:
    return json.dumps(headers.get("x-chroma-token") or headers.get("authorization"))


def watched(command: list[str], folder: Path, given: str, variables: dict[str, str]) -> tuple[int, str, str, set[str]]:
    """Run the program. Also returns the arguments of all its processes, which every user can see."""
    seen: set[str] = set()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.PIPE, stdout=out, stderr=err, text=True
        )
        assert process.stdin is not None
        process.stdin.write(given)
        process.stdin.close()
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            seen |= arguments_below(process.pid)
            time.sleep(0.05)
        process.kill()
        process.wait()
        out.seek(0)
        err.seek(0)
        return process.returncode, out.read(), err.read(), seen


def arguments_below(pid: int) -> set[str]:
    found = set()
    try:
        found.add(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found |= arguments_below(int(child))
    except (OSError, ValueError):
        pass  # removed meanwhile
    return found


def lines_with(text: str, secret: str) -> list[str]:
    return [line[:300] for line in text.splitlines() if secret in line]


def test_no_secret_is_shown(chroma_server: ChromaServer, tmp_path: Path) -> None:
    need("meilisearch")
    root = FolderRoot(tmp_path / "chunks")
    commit(root, "p1", [*source("a.md", "a cat", "a mat"), *source("b.md", "please refuse this")])
    tokens: list[bool] = []

    def note(_: int, request: bytes) -> bool:
        tokens.append(KEYS["TEST_CHROMA_TOKEN"].encode() in request)
        return False

    with (
        run_meilisearch(key=KEYS["MEILI_MASTER_KEY"]) as server,
        serve() as endpoint,
        Proxy(server.url) as meili,
        Proxy(chroma_server.url) as chroma,
        # Gateways that return the request in their answer.
        answering(all_headers, 400) as bad,
        answering(all_headers, 500) as failing,
        answering(the_key) as odd,
    ):
        (tmp_path / "chunksink.toml").write_text(
            f"""
sinks = ["meilisearch", "chroma", "fts"]
model = "hash"
endpoint = "{endpoint.url}"
endpoint_key_variable = "TEST_ENDPOINT_KEY"
patience = 0.3
[sink.meilisearch]
url = "{meili.url}"
[sink.chroma]
url = "{chroma.url}"
token_variable = "TEST_CHROMA_TOKEN"
prefix = "secrets"
"""
        )
        chroma.inject(p.NOTHING, note)
        variables = environment(**KEYS)

        def drive(*commands: tuple[list[str], dict[str, str], bool]) -> list[int]:
            line = [sys.executable, "-X", "dev", "-c", DRIVER, "codes.json"]
            code, out, err, seen = watched(line, tmp_path, json.dumps(commands), variables)
            assert code == 0, err[-2000:]
            assert_silent(tmp_path, out, err, *seen)
            codes: list[int] = json.loads((tmp_path / "codes.json").read_text())
            return codes

        works = [["rebuild"], ["sync"], ["verify", "--deep"], ["doctor"], ["status"], ["runs"], ["endpoints"]]
        codes = drive(*((one, {}, False) for one in works), (["sync"], {}, True))
        assert codes[0] in (0, 6), codes
        assert codes[-1] == 1, "a bug has its traceback"
        assert any(tokens)
        assert f"Bearer {KEYS['TEST_ENDPOINT_KEY']}" in endpoint.keys
        changed = [*source("a.md", "a dog", version="2", at=FEBRUARY), *source("b.md", "refuse", version="2")]
        commit(root, "p1", changed, at=FEBRUARY)
        urls = {
            "CHUNKSINK_SINK_MEILISEARCH_URL": server.url,
            "CHUNKSINK_SINK_CHROMA_URL": chroma_server.url,
            "CHUNKSINK_ENDPOINT": endpoint.url,
        }
        misplaced = [
            *((name, url.replace("//", f"//user:{PASSWORD}@")) for name, url in urls.items()),
            *((name, f"{url}?key={PASSWORD}") for name, url in urls.items()),
            *((name, f"{url}#{PASSWORD}") for name, url in urls.items()),
            ("CHUNKSINK_ENDPOINT_KEY_VARIABLE", PASSWORD),
            ("CHUNKSINK_SINK_CHROMA_TOKEN_VARIABLE", PASSWORD),
        ]
        wrong = {name: f"{value}-wrong" for name, value in KEYS.items()}
        places = [
            ("CHUNKSINK_SINK_MEILISEARCH_URL", ""),
            ("CHUNKSINK_SINK_CHROMA_URL", ""),
            ("CHUNKSINK_ENDPOINT", "/v1"),
        ]
        echoes = sampled(
            [
                (command, {name: url + path}, False)
                for command in (["sync"], ["doctor"])
                for name, path in places
                for url in (bad, failing, odd)
            ],
            9,
        )
        named = sampled(
            (
                (command, {name: value}, False)
                for command in (["sync"], ["doctor"], ["rebuild"])
                for name, value in misplaced
            ),
            11,
        )
        refused = [(one, wrong, False) for one in (["sync"], ["verify"], ["doctor"], ["rebuild"])]
        codes = drive(*echoes, *named, *refused)
        of_sinks = [
            code
            for (command, given, _), code in zip(echoes, codes, strict=False)
            if command == ["sync"] and "CHUNKSINK_ENDPOINT" not in given
        ]
        assert set(of_sinks) == {Exit.ENGINE}
        assert set(codes) <= set(Exit) - {Exit.BUG}
        meili.inject(p.RESET)
        chroma.inject(p.UNAVAILABLE)
        drive(*((one, {}, False) for one in (["sync"], ["verify"], ["rebuild"], ["doctor"])))
        meili.heal()
        chroma.heal()
        # And as users run it: the command line itself.
        code, out, err, seen = watched(command_line("sync"), tmp_path, "", variables)
        assert code in (0, 6), err
        assert any("chunksink sync" in one for one in seen)
        assert_silent(tmp_path, out, err, *seen)


def assert_silent(folder: Path, *outputs: str) -> None:
    """Neither the outputs nor any file contain a secret."""
    for text in outputs:
        assert lines_with(text, CANARY) == []
    written = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("out", "err")]
    assert any(path.suffix == ".jsonl" and path.parent.name == "runs" for path in written)
    assert [path.name for path in written if CANARY.encode() in path.read_bytes()] == []
