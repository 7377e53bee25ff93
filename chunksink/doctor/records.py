"""What the home keeps: the records of the index, the id that its builds carry, the cache of vectors."""

import re
from dataclasses import dataclass
from pathlib import Path

from chunksink.doctor.check import Check
from chunksink.settings.config import Config

_ID = re.compile("[0-9a-f]{32}")
_OF_THE_DISK = "make room where the disk is full, or make the folder and its files writable"
_ADOPT = "then `chunksink sync --adopt` makes its builds this home's again"


@dataclass(frozen=True)
class Live:
    """What readers see: the build in each sink, where there is one, and whose it should be."""

    builds: dict[str, str]
    home_id: str


def index(home: Path) -> tuple[Check, Live | None]:
    from chunksink.chunkbus.errors import ChunkBusError
    from chunksink.rebuild.state import State

    if not (home / "state.db").exists():
        return Check("index", "ok", "none yet; `chunksink rebuild` makes it"), None
    file = home / "home.id"
    if not file.exists():  # whoever opens the records makes a new one
        return Check("index", "fail", f"{file} is gone, which builds are known by", f"put it back; or {_ADOPT}"), None
    try:
        with State.existing(home) as state:
            live, begun, home_id = state.live_or_none(), state.unfinished(), state.home_id
    except OSError as error:
        return Check("index", "fail", str(error), _OF_THE_DISK), None
    except ChunkBusError as error:
        remedy = "move state.db away and run `chunksink rebuild`: nothing is lost"
        return Check("index", "fail", str(error), remedy), None
    found = Live({} if live is None else dict(live.builds), home_id)
    if not _ID.fullmatch(home_id):
        remedy = f"put back the id that its builds have, see below; or remove the file, {_ADOPT}"
        return Check("index", "fail", f"{file} holds no id", remedy), found
    if live is None and begun is None:
        return Check("index", "ok", "none yet; `chunksink rebuild` makes it"), found
    if live is None:
        remedy = "run `chunksink rebuild`: it goes on"
        return Check("index", "warn", "a rebuild was begun and never ended", remedy), found
    return Check("index", "ok", f"live is {live.id}, in {', '.join(live.builds)}"), found


def cache(config: Config) -> Check:
    from chunksink.embeddings.errors import CacheBusy, CacheDamaged, CacheError, CacheForeign, CacheTooNew
    from chunksink.home_cache import existing_cache
    from chunksink.rebuild.state import cache_file

    path = cache_file(config.home_path)
    if not path.exists():
        return Check("cache", "ok", "none yet; `chunksink rebuild` makes it")
    try:
        with existing_cache(config, read_only=True) as cache:
            cache.read("SELECT fingerprint, text_hash FROM vector LIMIT 1")
    except CacheBusy as error:
        return Check("cache", "warn", str(error), "wait for whoever holds it")
    except CacheDamaged as error:
        return Check("cache", "fail", str(error), "`chunksink cache verify --repair` carries over what is sound")
    except (CacheForeign, CacheTooNew) as error:
        remedy = "without it the next run makes another, and computes the vectors that it needs again"
        return Check("cache", "fail", str(error), remedy)
    except CacheError as error:
        return Check("cache", "fail", str(error), _OF_THE_DISK)
    return Check("cache", "ok", f"{path} can be read; `chunksink cache verify` checks every vector")
