"""A run that somebody kills: says when it begins."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import executor
from chunksink.sinks.capabilities import SupportsPrepare, capability
from tests.engines.servers import MeilisearchServer
from tests.soak.engines import home_in

COMMANDS = {"sync": "sync", "rebuild": "rebuild", "apart": "rebuild by a process of its own"}


def main(
    folder: Path, root: BusRoot, beside: str, server: MeilisearchServer | None, command: str, began: Connection
) -> None:
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 4
    home = home_in(folder, root, beside, server)
    began.send(command)
    if command == "sync":
        home.sync()
    else:
        home.rebuild(wrap=_prepared if command == "apart" else lambda sink: sink)


def _prepared(sink: Any) -> Any:
    """As a large rebuild has it: a process of its own fills the new build."""
    if (preparing := capability(sink, SupportsPrepare)) is not None:
        preparing.prepare()
    return sink
