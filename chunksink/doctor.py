"""The checks of `chunksink doctor`: each looks at one thing that a run needs, and says what to do where it is amiss.

Nothing is changed, no model is loaded, and no message shows a key.
"""

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from settings.config import Config, ConfigError

OLDEST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 10**9

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


def examine(load: Callable[[], Config]) -> Iterator[Check]:
    """All checks, in the order in which a run meets what they look at. Without a configuration only the first ones."""
    yield _python()
    yield _fts5()
    try:
        config = load()
    except ConfigError as error:
        yield Check("configuration", "fail", str(error), "correct it; `chunksink init` writes a commented example")
        return
    yield _configuration()
    yield _bus(config)
    yield from _home(config.home_path)
    yield _state(config)
    yield _locks(config.home_path)
    for name in dict.fromkeys(config.sinks):
        yield from _sink(config, name)
    yield from _model(config)
    yield _cache(config)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Check("python", "fail", version, "install Python 3.11 or later and chunksink in it")
    return Check("python", "ok", version)


def _fts5() -> Check:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("create virtual table t using fts5(text, tokenize = 'trigram')")
    except sqlite3.OperationalError as error:
        remedy = "use a Python whose SQLite has FTS5 and is 3.34 or later, as those of python.org and the distributions"
        return Check("sqlite", "fail", f"{sqlite3.sqlite_version}: {error}", remedy)
    finally:
        db.close()
    return Check("sqlite", "ok", f"{sqlite3.sqlite_version} with FTS5")


def _configuration() -> Check:
    from settings.config import CONFIG_FILE

    file = Path(CONFIG_FILE)
    return Check("configuration", "ok", f"{file} can be read" if file.exists() else f"no {file}: everything by default")


def _bus(config: Config) -> Check:
    from chunkbus.errors import NotABusRoot
    from chunkbus.layout import BusRoot

    try:
        root = BusRoot(config.chunks_path).require()
    except NotABusRoot as error:
        return Check("chunks", "fail", str(error), "`chunksink ingest` makes chunks, --chunks names their folder")
    number = len(root.partition_keys())
    remedy = "" if number else "`chunksink ingest` makes one"
    return Check("chunks", "ok" if number else "warn", f"{root.path}: partitions {number:,}", remedy)


def _home(home: Path) -> Iterator[Check]:
    place = home.absolute()
    while not place.exists():
        place = place.parent
    writable = place.is_dir() and os.access(place, os.W_OK | os.X_OK)
    if not writable:
        yield Check(
            "home", "fail", f"{place} cannot be written", "change its owner or mode, or name another with --home"
        )
    else:
        yield Check("home", "ok", f"{home} can be written" if home.exists() else f"{home} will be made")
    free = shutil.disk_usage(place).free
    told = f"{free / 10**9:,.1f} GB free below {place}"
    if free < LEAST_FREE_BYTES:
        yield Check("disk", "warn", told, "make room: a rebuild needs room for a second index beside the live one")
    else:
        yield Check("disk", "ok", told)


def _state(config: Config) -> Check:
    from chunkbus.errors import ChunkBusError
    from rebuild.state import State

    if not (config.home_path / "state.db").exists():
        return Check("index", "ok", "none yet; `chunksink rebuild` makes it")
    try:
        with State.existing(config.home_path) as state:
            live = state.live_or_none()
    except (ChunkBusError, OSError) as error:
        return Check("index", "fail", str(error), "move state.db away and run `chunksink rebuild`: nothing is lost")
    if live is None:
        return Check("index", "warn", "a rebuild was begun and never ended", "run `chunksink rebuild`: it goes on")
    return Check("index", "ok", f"live is {live.id}, in {', '.join(live.builds)}")


def _locks(home: Path) -> Check:
    from rebuild.status import held_locks

    held = held_locks(home)
    if held:
        return Check("locks", "warn", f"another run holds: {', '.join(held)}", "wait for it, or look for its process")
    return Check("locks", "ok", "nobody is writing to this home")


def _sink(config: Config, name: str) -> Iterator[Check]:
    from chunksink.wiring import open_one_sink
    from sinks.errors import SinkError

    label = f"sink {name}"
    with ExitStack() as stack:
        try:
            sink: Any = open_one_sink(config, stack, name)
            builds = sink.builds()
            version = _version(sink)
        except ConfigError as error:
            yield Check(label, "fail", str(error), f"correct the options [sink.{name}] or the list of sinks")
            return
        except SinkError as error:
            yield Check(label, "fail", str(error), "then run `chunksink doctor` again")
            return
        yield Check(label, "ok", f"answers{version}; builds {len(builds):,}")
        if hasattr(sink, "live_settings"):
            yield _settings(config, name, sink)


def _version(sink: Any) -> str:
    """What answers there, where the sink can say it."""
    version = getattr(sink, "version", None)
    return f", {version()}" if version is not None else ""


def _settings(config: Config, name: str, sink: Any) -> Check:
    from settings.index_settings import differences, find_settings_file, load_index_settings
    from sinks.errors import BuildMissing, SinkError

    label = f"settings of {name}"
    file = find_settings_file(config.sink.get(name, {}).get("settings_file"))
    try:
        found = differences(load_index_settings(file), sink.live_settings())
    except BuildMissing:
        return Check(label, "ok", "no live index yet")
    except (SinkError, ConfigError) as error:
        return Check(label, "fail", str(error), f"see {file}")
    if found:
        names = ", ".join(each.name for each in found)
        remedy = "`chunksink settings diff` shows them, `chunksink settings apply` changes the live index"
        return Check(label, "warn", f"the live index differs from {file}: {names}", remedy)
    return Check(label, "ok", f"as {file} has them")


def _model(config: Config) -> Iterator[Check]:
    """Weights are looked for and not read: `chunksink search` would say whether they fit."""
    from embeddings.errors import ModelError
    from embeddings.resolve import resolve_model

    if config.endpoint is not None:
        yield _endpoint(config, config.endpoint)
        return
    missing = [name for name in ("torch", "sentence_transformers") if not _is_installed(name)]
    if missing:
        yield Check(
            "model", "fail", f"not installed: {', '.join(missing)}", "install chunksink again, with all it needs"
        )
        return
    try:
        found = resolve_model(config.model, network=False)
    except ModelError as error:
        yield Check("model", "fail", str(error), "the next rebuild would need the network")
        return
    if not any(any(found.folder.rglob(f"*{ending}")) for ending in (".safetensors", ".bin")):
        yield Check("model", "fail", f"no weights in {found.folder}", "copy the model again")
        return
    yield Check("model", "ok", f"{found.name} is here, as a {found.source}: {found.folder}")


def _is_installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def _endpoint(config: Config, url: str) -> Check:
    """Asks nothing of it: a text that is embedded costs money."""
    from embeddings.connection import checked_url
    from embeddings.errors import EndpointError
    from settings.secret import key_in

    variable = config.endpoint_key_variable
    try:
        address = checked_url(url)
        if variable is not None:
            key_in(variable, "option endpoint_key_variable", needed=True)
    except (ConfigError, EndpointError) as error:
        return Check("endpoint", "fail", str(error), "correct it, and keep the key in the environment only")
    told = f"its key is in {variable}" if variable else "no key is sent"
    return Check("endpoint", "ok", f"{config.model} at {address}; {told}")


def _cache(config: Config) -> Check:
    from chunksink.wiring import cache_file, existing_cache
    from embeddings.errors import CacheBusy, CacheError

    path = cache_file(config.home_path)
    if not path.exists():
        return Check("cache", "ok", "none yet; `chunksink rebuild` makes it")
    try:
        with existing_cache(config, read_only=True) as cache:
            cache.read("SELECT fingerprint, text_hash FROM vector LIMIT 1")
    except CacheBusy as error:
        return Check("cache", "warn", str(error), "wait for whoever holds it")
    except CacheError as error:
        return Check("cache", "fail", str(error), "`chunksink cache verify --repair` carries over what is sound")
    return Check("cache", "ok", f"{path} can be read; `chunksink cache verify` checks every vector")
