"""A missing engine is a skip that says how to get it, and a failure where CHUNKSINK_REQUIRE names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.engines import ENGINES, REMEDY

FIXTURES = {"meilisearch": "meilisearch_server", "chroma": "chroma_server", "browser": "browser"}


def run_one(tmp_path: Path, engine: str, required: str) -> tuple[int, str]:
    """Run pytest on one test that wants the engine, where no program of that engine can be found."""
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n", encoding="utf-8")
    test = tmp_path / "test_wants.py"
    test.write_text(f"def test_wants({FIXTURES[engine]}):\n    pass\n", encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        f"CHUNKSINK_TEST_{engine.upper()}": str(tmp_path / "no-such-program"),
        "CHUNKSINK_REQUIRE": required,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", "--rootdir", tmp_path, test],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("engine", ENGINES)
def test_without_the_variable_a_missing_engine_is_skipped_with_its_remedy(tmp_path: Path, engine: str) -> None:
    code, output = run_one(tmp_path, engine, required="")
    assert (code, "1 skipped" in output) == (0, True), output
    assert REMEDY[engine] in output


@pytest.mark.parametrize("engine", ENGINES)
def test_with_the_variable_a_missing_engine_fails_with_its_remedy(tmp_path: Path, engine: str) -> None:
    code, output = run_one(tmp_path, engine, required=engine)
    assert code == 1, output
    assert "1 error" in output
    assert REMEDY[engine] in output


def test_naming_one_engine_requires_only_that_one(tmp_path: Path) -> None:
    code, output = run_one(tmp_path, "meilisearch", required="chroma, browser")
    assert (code, "1 skipped" in output) == (0, True), output


def test_a_name_that_is_no_engine_is_refused(tmp_path: Path) -> None:
    """A misspelt name must not turn a required engine into a silent skip."""
    code, output = run_one(tmp_path, "meilisearch", required="meilisaerch")
    assert code != 0
    assert "meilisaerch" in output
    assert "known: meilisearch, chroma, browser" in output
