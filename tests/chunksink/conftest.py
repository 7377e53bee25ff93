"""A folder to run commands in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chunksink.exits import Exit
from embeddings import load
from tests.chunksink.forgetting import OTHER, SECRET
from tests.chunksink.shell import Models, Shell


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()
    monkeypatch.setattr(load, "load_encoder", models.load)
    return models


@pytest.fixture
def shell(tmp_path: Path, models: Models, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The embedded default, without any setting."""
    for name in [name for name in os.environ if name.startswith(("CHUNKSINK_", "MEILI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys)


@pytest.fixture
def quick_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """One sink, that wants no vectors."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    return shell


@pytest.fixture
def twice(shell: Shell) -> Shell:
    """Two generations, both with the secret."""
    shell.commit("p1", SECRET)
    shell.commit("p2", OTHER)
    for _ in range(2):
        assert shell("rebuild").code == Exit.OK
    return shell
