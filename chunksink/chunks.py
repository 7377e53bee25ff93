"""The chunks as commands need them: validated as a whole, or just read."""

from collections.abc import Iterator

from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.progress import progress
from chunksink.workers import worker_processes
from settings.config import Config


def validate_chunks(root: BusRoot, config: Config, run_log: RunLog) -> None:
    """Passes a bus root that keeps the contract; raises InvalidBus for any other."""
    from rebuild.gate import require_valid

    size = sum(root.size_of(key) for key in root.partition_keys())
    with worker_processes(size, None) as workers, progress("validate", size, "B") as bar:
        require_valid(
            root,
            require_source_checksum=config.require_source_checksum,
            workers=workers,
            on_finding=run_log.finding,
            on_progress=bar.advance,
        )


def texts_of(root: BusRoot) -> Iterator[tuple[str, str]]:
    """Text hash and text of every chunk. Lines that hold none are passed over: validation is not asked for here."""
    import orjson

    from chunkbus.canonical import text_hash
    from chunkbus.reader import open_partition, read_lines

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
