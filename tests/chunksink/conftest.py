"""A folder to run commands in."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.embeddings import load
from tests.chunksink.doctor_checks import SOURCES
from tests.chunksink.forgetting import OTHER, SECRET
from tests.chunksink.shell import Models, Shell
from tests.engines.servers import MeilisearchServer, without_leftovers
from tests.support.prepared import Prepared


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()
    monkeypatch.setattr(load, "load_encoder", models.load)
    return models


@pytest.fixture
def shell(
    tmp_path: Path,
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Shell:
    """A folder with the default configuration: fts and embedded Chroma."""
    for name in [name for name in os.environ if name.startswith(("CHUNKSINK_", "MEILI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path, capsys, Prepared(tmp_path_factory.getbasetemp() / "prepared"))


@pytest.fixture
def quick_shell(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A folder with fts only, which needs no vectors."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    return shell


@pytest.fixture
def public_index(
    shell: Shell,  # removes all settings first
    meilisearch_server: MeilisearchServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    """An index of a real Meilisearch with a unique public name; removed afterwards."""
    name = f"e{uuid.uuid4().hex[:10]}"
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", name)
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    with without_leftovers(meilisearch_server, name) as client:
        yield client.index(name)


@pytest.fixture
def built(shell: Shell) -> Shell:
    """An index of three partitions in both embedded engines, for `doctor`."""
    return shell.begin("to examine", "sync", **SOURCES)


@pytest.fixture
def twice(shell: Shell) -> Shell:
    """Two generations, both with the secret."""
    return shell.begin("twice", "rebuild", "rebuild", p1=[SECRET], p2=[OTHER])
