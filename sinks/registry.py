"""Sinks by name. Each is an entry point of the group `chunksink.sinks`, so that another package can bring one:

    [project.entry-points."chunksink.sinks"]
    mine = "my_package:open_sink"        # (home: Path, options: Mapping[str, Any]) -> Sink

`docs/writing-a-sink.md` has the whole of it.
"""

import os
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from chunksink.settings.config import ConfigError
from chunksink.settings.sink_tables import installed_sinks, sink_names, suggestion
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import SinkError

Options = TypeVar("Options", bound=msgspec.Struct)

_OURS = "chunksink"


def open_sink(name: str, home: Path, options: Mapping[str, Any]) -> Sink:
    """The sink of this name. Engines are imported here, and asked nothing yet."""
    found = require_sink(name)
    try:
        opening = found.load()
    except Exception as error:  # whatever the module of another package does
        raise ConfigError(f"the sink {name} cannot be loaded: {_told(error)}") from error
    try:
        sink: Sink = opening(home, options)
    except (ConfigError, SinkError):
        raise
    except Exception as error:
        raise ConfigError(f"the sink {name} cannot be opened: {_told(error)}") from error
    return sink


def read_options(sink: str, kind: type[Options], options: Mapping[str, Any]) -> Options:
    """A sink's options as its own type; a misspelt one is an error that names those that there are."""
    try:
        return msgspec.convert(dict(options), kind, strict=False)  # the environment can only say "true" or "8"
    except msgspec.ValidationError as error:
        known = kind.__struct_fields__
        wrong = next((name for name in options if f"`{name}`" in str(error) or f"`$.{name}" in str(error)), "")
        variable = f"CHUNKSINK_SINK_{sink}_{wrong}".upper().replace("-", "_")
        source = variable if variable in os.environ else f"[sink.{sink}]"
        near = "" if wrong in known else suggestion(wrong, known)
        raise ConfigError(f"{source}: {error}{near}; the options are {', '.join(known)}") from error


def require_sink(name: str) -> EntryPoint:
    """Its entry point, ours before anyone else's; ConfigError where none is installed. Which of two others came first
    would be chance, so neither is taken."""
    offers = {_distribution(found): found for found in installed_sinks() if found.name == name}
    if not offers:
        raise ConfigError(f"there is no sink {name!r}; installed are: {', '.join(sink_names())}")
    if _OURS in offers:
        return offers[_OURS]
    if len(offers) > 1:
        packages = ", ".join(sorted(offers))
        raise ConfigError(f"several packages bring a sink {name}: {packages}; uninstall all of them but one")
    return next(iter(offers.values()))


def _distribution(found: EntryPoint) -> str:
    return found.dist.name if found.dist is not None else "a package without a name"


def _told(error: Exception) -> str:
    """The error and its line, for whoever wrote the sink; lines of the import machinery say nothing of it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames and frames[-1].filename != __file__ else ""
    return f"{type(error).__name__}: {error}{place}"
