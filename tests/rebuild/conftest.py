"""A bus root, and homes with each kind of sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.rebuild import executor
from tests.support.bus import commit, source
from tests.support.home import CatalogProbe, Home
from tests.support.local_engines import chroma, fts, memory

OLD_A, OLD_B, OLD_C = source("docs/a.md", "a"), source("docs/b.md", "b"), source("docs/c.md", "c")


@pytest.fixture
def root(tmp_path: Path) -> FolderRoot:
    return FolderRoot(tmp_path / "chunks")


@pytest.fixture
def probe(tmp_path: Path, root: FolderRoot) -> CatalogProbe:
    return CatalogProbe(tmp_path / "home", root)


@pytest.fixture
def home(tmp_path: Path, root: FolderRoot) -> Home:
    """Vectors in memory beside a real keyword engine: quick, and one sink of each kind."""
    return Home(tmp_path / "home", root, fts, memory())


@pytest.fixture
def indexed(root: FolderRoot, home: Home) -> Home:
    commit(root, "p1", OLD_A)
    commit(root, "p2", [*OLD_B, *OLD_C])
    home.rebuild()
    return home


@pytest.fixture
def embedded_home(tmp_path: Path, root: FolderRoot) -> Home:
    """The embedded default."""
    return Home(tmp_path / "home", root, fts, chroma)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several batches, the last one not full."""
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 2)
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 2)


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The key of every partition whose files are opened from here on."""
    keys: list[str] = []
    real = FolderRoot.open

    def watched(root: FolderRoot, key: str) -> Any:
        keys.append(key)
        return real(root, key)

    monkeypatch.setattr(FolderRoot, "open", watched)
    return keys
