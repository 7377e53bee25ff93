"""The sequences of edits of `test_machine`, in a real Chroma and a real Meilisearch.

CHUNKSINK_SOAK_SEQUENCES says how many are drawn in all; here one of 200 of them.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

import pytest

from chunkbus.layout import BusRoot
from sinks.meilisearch import MeilisearchSink
from sinks.sink import Sink
from tests.conformance.test_meilisearch import SETTINGS
from tests.engines.servers import MeilisearchServer
from tests.rebuild.engines import chroma
from tests.rebuild.support import Home
from tests.rebuild.test_machine import SEQUENCES, STOCK, Bus, begin_with, run_sequences

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(3)]


@dataclass(frozen=True)
class InEngines:
    """Each sequence begins with a rebuild, under a public name of its own."""

    folder: Path
    bus: Bus
    server: MeilisearchServer

    def home(self, folder: Path) -> Home:
        index = f"m{uuid.uuid4().hex[:10]}"

        def meilisearch(_home: Path) -> Sink:
            return MeilisearchSink(self.server.url, self.server.key, settings=SETTINGS, index=index)

        shutil.copytree(self.folder / "chunks", folder / "chunks")
        home = Home(folder / "home", BusRoot(folder / "chunks"), chroma, meilisearch)
        home.rebuild()
        return home


def test_chroma_and_meilisearch_hold_what_a_plain_dict_says(
    meilisearch_server: MeilisearchServer, record_property: Callable[[str, object], None]
) -> None:
    with tempfile.TemporaryDirectory(prefix="machine-") as folder:
        begun = begin_with(STOCK, Path(folder) / "stocked")
        beginning = InEngines(begun.folder, begun.bus, meilisearch_server)
        done = run_sequences(lambda _stocked: beginning, ceil(SEQUENCES / 200) or 3, 10)
    for what, number in done.items():
        record_property(what, number)
