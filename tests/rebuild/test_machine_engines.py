"""The edit sequences of `test_machine` with a real Chroma and Meilisearch."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from tests.conftest import HEAVY
from tests.engines.servers import MeilisearchServer, without_leftovers
from tests.support.home import Home
from tests.support.local_engines import chroma
from tests.support.machine import Begun, Bus, beginnings, run_sequences
from tests.support.public_index import meilisearch_in

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(3)]

SEQUENCES = 50 if HEAVY else 2


@dataclass(frozen=True)
class InEngines:
    """Each sequence begins with a rebuild, under a public name of its own."""

    begun: Begun
    server: MeilisearchServer
    prefix: str

    @property
    def folder(self) -> Path:
        return self.begun.folder

    @property
    def bus(self) -> Bus:
        return self.begun.bus

    def home(self, folder: Path) -> Home:
        index = self.prefix + uuid.uuid4().hex[:8]
        shutil.copytree(self.folder / "chunks", folder / "chunks")
        home = Home(folder / "home", FolderRoot(folder / "chunks"), chroma, meilisearch_in(self.server, index))
        home.rebuild()
        return home


def test_chroma_and_meilisearch_match_a_plain_dict_after_every_sync(
    meilisearch_server: MeilisearchServer, record_property: Callable[[str, object], None]
) -> None:
    prefix = f"m{uuid.uuid4().hex[:6]}"
    with beginnings() as begun, without_leftovers(meilisearch_server, prefix):
        done = run_sequences(lambda stocked: InEngines(begun(stocked), meilisearch_server, prefix), SEQUENCES, 10)
    for what, number in done.items():
        record_property(what, number)
