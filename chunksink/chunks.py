"""The chunks as commands need them: validated as a whole, or just read."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.progress import progress
from chunksink.settings.config import Config
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.state import State


def read_chunks(root: BusRoot, config: Config, state: "State", run_log: RunLog) -> "Catalog":
    """The catalog of a bus root that keeps the contract, in this state; raises InvalidBus for any other."""
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.intake import Intake
    from chunksink.rebuild.sync import require_valid

    catalog = Catalog(state)
    intake = Intake(
        root,
        state,
        require_source_checksum=config.require_source_checksum,
        workers=partial(worker_processes, jobs=None),
        on_finding=run_log.finding,
    )
    with progress("validate", intake.pending_bytes(), "B") as bar:
        catalog.refresh(intake, bar.advance)
    require_valid(catalog)
    return catalog


def texts_of(root: BusRoot) -> Iterator[tuple[str, str]]:
    """Text hash and text of every chunk. Lines that hold none are passed over: validation is not asked for here."""
    import orjson

    from chunksink.chunkbus.canonical import text_hash
    from chunksink.chunkbus.reader import open_partition, read_lines

    for key in root.partition_keys():
        file, _ = open_partition(root, key)
        with file:
            for _, line in read_lines(file):
                try:
                    text = orjson.loads(line)["text"]
                    hashed = text_hash(text)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
                yield hashed, text
