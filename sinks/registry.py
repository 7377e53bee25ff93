"""Sinks by name. Each is an entry point of the group `chunksink.sinks`, so that other packages can add sinks:

    [project.entry-points."chunksink.sinks"]
    mine = "my_package:open_sink"        # (home: Path, options: Mapping[str, Any]) -> Sink

`docs/writing-a-sink.md` explains it.
"""

import os
import traceback
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from chunksink.settings.config import MEILI_URL
from chunksink.settings.errors import ConfigError
from chunksink.settings.sink_tables import installed_sinks, sink_names, suggestion
from chunksink.sinks.contract import Sink
from chunksink.sinks.errors import SinkError

Options = TypeVar("Options", bound=msgspec.Struct)

_OURS = "chunksink"


def open_sink(name: str, home: Path, options: Mapping[str, Any]) -> Sink:
    """The sink of this name. Imports the sink's package, but does not call the engine yet."""
    entry_point = require_sink(name)
    try:
        factory = entry_point.load()
    except Exception as error:  # a module of another package may raise anything
        raise ConfigError(f"the sink {name} cannot be loaded: {_described(error)}") from error
    try:
        sink: Sink = factory(home, options)
    except (ConfigError, SinkError):
        raise
    except Exception as error:
        raise ConfigError(f"the sink {name} cannot be opened: {_described(error)}") from error
    if missing := [member for member in vars(Sink) if not member.startswith("_") and not hasattr(sink, member)]:
        raise ConfigError(f"the sink {name} lacks {', '.join(missing)}: {_mistake(entry_point)}")
    if sink.name != name:  # by this name the home records its builds
        raise ConfigError(f"the sink {name} has the `name` {sink.name!r}: {_mistake(entry_point)}")
    return sink


def read_options(sink: str, kind: type[Options], options: Mapping[str, Any]) -> Options:
    """A sink's options as its own type. The error for an unknown option lists the known ones."""
    try:
        return msgspec.convert(dict(options), kind, strict=False)  # environment variables are always strings
    except msgspec.ValidationError as error:
        known = kind.__struct_fields__
        wrong = next((name for name in options if f"`{name}`" in str(error) or f"`$.{name}" in str(error)), "")
        near = "" if wrong in known else suggestion(wrong, known)
        raise ConfigError(f"{source_of(sink, wrong)}: {error}{near}. Known options: {', '.join(known)}") from error


def source_of(sink: str, option: str) -> str:
    """Where an option of a sink is set, for messages: the environment variable, else the sink's table."""
    variables = [f"CHUNKSINK_SINK_{sink}_{option}".upper().replace("-", "_")]
    if (sink, option) == ("meilisearch", "url") and os.environ.get(MEILI_URL):
        variables.append(MEILI_URL)
    return next((name for name in variables if name in os.environ), f"[sink.{sink}]")


def require_sink(name: str) -> EntryPoint:
    """The entry point of a sink, preferably ours. Raises `ConfigError` if there is none, or if several other packages
    have one."""
    named = [each for each in installed_sinks() if each.name == name]
    candidates = {each.dist.name if each.dist is not None else "an unnamed package": each for each in named}
    if not candidates:
        raise ConfigError(f"unknown sink {name!r}. Installed: {', '.join(sink_names())}")
    if len(candidates) > 1 and _OURS not in candidates:
        packages = ", ".join(sorted(candidates))
        raise ConfigError(f"several packages have a sink {name}: {packages}. Uninstall all but one")
    return candidates.get(_OURS) or next(iter(candidates.values()))


def _mistake(entry_point: EntryPoint) -> str:
    package = entry_point.dist.name if entry_point.dist is not None else "unnamed"
    return f"a mistake in the package {package} ({entry_point.value})"


def _described(error: Exception) -> str:
    """The error and where it was raised, for the author of the sink. Frames of the import system are left out."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames and frames[-1].filename != __file__ else ""
    return f"{type(error).__name__}: {error}{place}"
