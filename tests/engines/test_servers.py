"""The test servers leave nothing behind after any end of a run; a missing engine skips or fails its tests."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, need
from tests.engines.servers import alive
from tests.support.waiting import eventually
from tools.engines import ENGINES, REMEDY

# Starts a server in its own process, prints its address, and waits for the signal to end.
HOLDER = """
import signal
from tests.engines.servers import run_meilisearch
with run_meilisearch() as server:
    print(server.pid, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_leaves_no_server_and_no_folder(ending: signal.Signals, tmp_path: Path) -> None:
    need("meilisearch")
    variables = os.environ | {"PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        server = int(holder.stdout.readline())
        assert alive(server)
        assert list(tmp_path.iterdir())
        holder.send_signal(ending)
    eventually(lambda: not alive(server) and not list(tmp_path.iterdir()))


# --- a missing engine ------------------------------------------------------------------------------------------


FIXTURES = {
    "meilisearch": "meilisearch_server",
    "chroma": "chroma_server",
    "browser": "browser",
    "postgres": "postgres_server",
    "s3": "s3_server",
    "promtool": "promtool",
}


def run_all(tmp_path: Path, required: str) -> tuple[int, str]:
    """Run pytest on tests that need each engine, in an environment without any engine's program."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n", encoding="utf-8")
    test = tmp_path / "test_wants.py"
    wanting = (f"def test_wants_{engine}({fixture}):\n    pass\n" for engine, fixture in FIXTURES.items())
    test.write_text("\n".join(wanting), encoding="utf-8")
    missing = {f"CHUNKSINK_TEST_{engine.upper()}": str(tmp_path / "no-such-program") for engine in ENGINES}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--rootdir", tmp_path, test],
        cwd=tmp_path,
        # Without the installed plugins, because loading them takes longer than the tests.
        env=os.environ
        | missing
        | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CHUNKSINK_REQUIRE": required},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_missing_engine_without_the_variable_is_skipped_with_its_remedy(tmp_path: Path) -> None:
    code, output = run_all(tmp_path, required="")
    assert (code, f"{len(FIXTURES)} skipped" in output) == (0, True), output
    assert [engine for engine in FIXTURES if REMEDY[engine] not in output] == []


def test_missing_engine_with_the_variable_fails_with_its_remedy(tmp_path: Path) -> None:
    code, output = run_all(tmp_path, required=",".join(FIXTURES))
    assert (code, f"{len(FIXTURES)} errors" in output) == (1, True), output
    assert [engine for engine in FIXTURES if REMEDY[engine] not in output] == []
