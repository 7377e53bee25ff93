"""Too few open files: every command reports the shortage, and nothing is lost or created again."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY, sampled
from tests.embeddings.endpoint import serve
from tests.journey.support import environment
from tests.support.forking import execute, outcome_of

COMMAND = """
import os, resource, sys
from chunksink.command_line.cli import run
os.chdir(sys.argv[1])
if int(sys.argv[2]):
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
sys.exit(run(sys.argv[3:]))
"""
LIMITS = (8, 10, 12, 14, 16, 18, 20, 22, 24, 26)


def run(folder: Path, *arguments: str, files: int = 0, **variables: str) -> tuple[int, str]:
    """With `make soak`, in a process that also imports the libraries with few file handles."""
    settings = environment(CHUNKSINK_PATIENCE="1", **variables)
    given = (str(folder), str(files), *arguments)
    if not HEAVY:
        code, out, err = outcome_of(with_settings, settings, *given)
        return code, out + err
    command = [sys.executable, "-c", COMMAND, *given]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def with_settings(settings: dict[str, str], *arguments: str) -> None:
    os.environ.clear()
    os.environ.update(settings)
    execute(COMMAND, *arguments)


@pytest.fixture
def model() -> Iterator[dict[str, str]]:
    """An endpoint. The real model takes seconds to load and is used with `make soak`."""
    with serve() as server:
        yield {} if HEAVY else {"CHUNKSINK_ENDPOINT": server.url, "CHUNKSINK_MODEL": "hash-model"}


def test_too_few_open_files_is_reported_and_breaks_nothing(tmp_path: Path, model: dict[str, str]) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(5):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Page {number}\n\nIt says something of its own.\n")
    assert run(tmp_path, "ingest", "docs", "--sync", **model)[0] == Exit.OK
    seen = set()
    for files in sampled(LIMITS, 6):
        for command in (["sync"], ["verify"], ["search", "page", "--mode", "semantic"]):
            code, output = run(tmp_path, *command, files=files, **model)
            seen.add(code)
            assert code in (Exit.OK, Exit.ENGINE), output
            assert "Traceback" not in output
            assert "verify --repair" not in output, f"{command} with {files} files: {output}"
            assert code == Exit.OK or ("open file" in output and output.count("ulimit -n") <= 1), output
    assert Exit.ENGINE in seen
    code, output = run(tmp_path, "verify", "--deep", **model)
    assert code == Exit.OK, output
