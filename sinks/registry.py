"""Sinks by name. Each is an entry point of the group `chunksink.sinks`, so that another package can bring one:

    [project.entry-points."chunksink.sinks"]
    mine = "my_package:open_sink"        # (home: Path, options: Mapping[str, Any]) -> Sink

`docs/writing-a-sink.md` has the whole of it.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from settings.config import ConfigError
from settings.sink_tables import GROUP, sink_names
from sinks.sink import Sink

Options = TypeVar("Options", bound=msgspec.Struct)


def open_sink(name: str, home: Path, options: Mapping[str, Any]) -> Sink:
    """The sink of this name. Engines are imported here, and asked nothing yet."""
    try:
        sink: Sink = _entry_point(name).load()(home, options)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the sink {name} cannot be loaded: {error}") from error
    return sink


def read_options(sink: str, kind: type[Options], options: Mapping[str, Any]) -> Options:
    """A sink's options as its own type; a misspelt one is an error that names those that there are."""
    try:
        return msgspec.convert(dict(options), kind, strict=False)  # the environment can only say "true" or "8"
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__)
        raise ConfigError(f"options of the sink {sink}: {error}; there are: {known}") from error


def _entry_point(name: str) -> EntryPoint:
    for found in entry_points(group=GROUP, name=name):
        return found
    raise ConfigError(f"there is no sink {name!r}; installed are: {', '.join(sink_names())}")
