"""A missing engine is a skip that says how to get it, and a failure where CHUNKSINK_REQUIRE names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT
from tools.engines import ENGINES, REMEDY

FIXTURES = {"meilisearch": "meilisearch_server", "chroma": "chroma_server", "browser": "browser"}


def run_all(tmp_path: Path, required: str) -> tuple[int, str]:
    """Run pytest on tests that want each engine, where no program of any engine can be found."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n", encoding="utf-8")
    test = tmp_path / "test_wants.py"
    wanting = (f"def test_wants_{engine}({fixture}):\n    pass\n" for engine, fixture in FIXTURES.items())
    test.write_text("\n".join(wanting), encoding="utf-8")
    missing = {f"CHUNKSINK_TEST_{engine.upper()}": str(tmp_path / "no-such-program") for engine in ENGINES}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--rootdir", tmp_path, test],
        cwd=tmp_path,
        # Without the plugins that are installed: loading them takes longer than the tests.
        env=os.environ
        | missing
        | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CHUNKSINK_REQUIRE": required},
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_without_the_variable_a_missing_engine_is_skipped_with_its_remedy(tmp_path: Path) -> None:
    code, output = run_all(tmp_path, required="")
    assert (code, "3 skipped" in output) == (0, True), output
    assert [engine for engine in ENGINES if REMEDY[engine] not in output] == []


def test_with_the_variable_a_missing_engine_fails_with_its_remedy(tmp_path: Path) -> None:
    code, output = run_all(tmp_path, required=",".join(ENGINES))
    assert (code, "3 errors" in output) == (1, True), output
    assert [engine for engine in ENGINES if REMEDY[engine] not in output] == []
