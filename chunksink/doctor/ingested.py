"""What `chunksink ingest` keeps in the home: `ingest.db`, with the ledger and a cache."""

from collections.abc import Callable, Iterator
from pathlib import Path

from chunksink.chunkbus.store import Store
from chunksink.doctor.check import Check
from chunksink.settings.config import Config

_AGAIN = "the next `chunksink ingest` makes another, and reads all files again"


def files(config: Config) -> Iterator[Check]:
    """One that is not there yet is made by the next ingest."""
    from chunksink.ingest.store import FILE_NAME, IngestStore

    remedy = f"move it away: {_AGAIN}; lost is what `chunksink ledger` lists, and no chunk"
    yield _file("ingest", config.home_path / FILE_NAME, lambda: IngestStore(config.home_path), remedy)


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
