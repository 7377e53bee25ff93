"""What `chunksink ingest` keeps in the home: the ledger of what was read, and what need not be found out again."""

from collections.abc import Callable, Iterator
from pathlib import Path

from chunksink.chunkbus.store import Store
from chunksink.doctor.check import Check
from chunksink.settings.config import Config

_AGAIN = "the next `chunksink ingest` makes another, and reads all files again"


def files(config: Config) -> Iterator[Check]:
    """One that is not there yet is made by the next ingest."""
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.chunkbus.ledger import Ledger
    from chunksink.producers.memory import Memory
    from chunksink.wiring import ledger_file, memory_file

    ledger, memory = ledger_file(config.home_path), memory_file(config.home_path)
    history = f"move it away: {_AGAIN}; lost is what `chunksink ledger` lists, and no chunk"
    yield _file("ledger", ledger, lambda: Ledger(ledger), history)
    yield _file(
        "ingest",
        memory,
        lambda: Memory(memory, BusRoot(config.chunks_path)),
        f"move it away: {_AGAIN}; nothing is lost",
    )


def _file(name: str, path: Path, opened: Callable[[], Store], remedy: str) -> Check:
    from chunksink.chunkbus.errors import NewerStore, StoreUnreadable

    if not path.exists():
        return Check(name, "ok", "none yet; `chunksink ingest` makes it")
    try:
        with opened() as store:
            (found,) = store.db.execute("pragma quick_check(1)").fetchone()
    except StoreUnreadable as error:
        return Check(name, "fail", str(error), remedy)
    except NewerStore as error:
        return Check(name, "fail", str(error), f"upgrade chunksink; or {remedy}")
    except OSError as error:
        return Check(name, "fail", f"{path}: {error.strerror}", "correct owner and mode of the file and of its folder")
    if found != "ok":
        return Check(name, "fail", f"{path} is damaged ({found})", remedy)
    return Check(name, "ok", f"{path} can be read")
