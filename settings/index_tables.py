"""The tables `[index.NAME]`: several indexes in one configuration. Each gets its own folders and names in engines."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chunksink.settings.errors import ConfigError

FOLDERS = {"chunks": "chunks", "home": ".chunksink"}
_INDEX_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,60}")
_NAMES_IN_ENGINES = {
    ("meilisearch", "index"): "chunks",
    ("chroma", "prefix"): "chunksink",
    ("postgres", "schema"): "chunksink",
}
"""Names in an engine, and their defaults. Two homes that use the same engine need different ones."""


def of_index(content: Mapping[str, Any], index: str | None, file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the chosen index (its table overrides shared ones), and its table alone. Without an index: the
    settings outside the tables, and an empty table."""
    shared = {name: value for name, value in content.items() if name != "index"}
    indexes = tables(content.get("index", {}), "index", file)
    if not index:
        return shared, {}
    if index not in indexes:
        raise ConfigError(f"{file} has no [index.{index}]; it has: {', '.join(indexes) or 'none'}")
    if not _INDEX_NAME.fullmatch(index):
        raise ConfigError(
            f"{file}: {index!r} cannot name an index: use 1 to 61 of A-Z a-z 0-9 - and begin with a letter or digit"
        )
    own = indexes[index]
    home = own.get("home")
    same = [name for name, table in indexes.items() if name != index and home is not None and table.get("home") == home]
    if same:
        raise ConfigError(f"{file}: [index.{index}] and [index.{same[0]}] have the same home; each needs its own")
    shared_sinks, own_sinks = (tables(table.get("sink", {}), "sink", file) for table in (shared, own))
    separate = {
        sink: {option: for_index(index, sink, option, value) for option, value in table.items()}
        for sink, table in shared_sinks.items()
    }
    usual_home = joined(shared.get("home", FOLDERS["home"]), "/", index)
    fields = merged(shared.get("fields", {}), own.get("fields", {}))
    return {**shared, "home": usual_home, **own, "sink": merged(separate, own_sinks), "fields": fields}, own


def default_names(index: str) -> dict[str, dict[str, str]]:
    """The options of sinks that give the index names of its own in engines."""
    return {sink: {option: f"{default}-{index}"} for (sink, option), default in _NAMES_IN_ENGINES.items()}


def for_index(index: str | None, sink: str, option: str, value: Any) -> Any:
    """A shared option, made unique for one index: indexes must not share folders, or names in engines."""
    if index and (sink, option) in _NAMES_IN_ENGINES:
        return joined(value, "-", index)
    return joined(value, "/", index) if index and option == "folder" else value


def joined(value: Any, separator: str, name: str) -> Any:
    return f"{value}{separator}{name}" if isinstance(value, str) and value else value  # other types are refused later


def merged(lower: Any, upper: Any) -> Any:
    """Two nested tables merged entry by entry; `upper` overrides `lower`."""
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return upper
    return {**lower, **{name: merged(lower.get(name), value) for name, value in upper.items()}}


def tables(value: Any, name: str, file: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise ConfigError(f"{file}: `{name}` must contain tables, such as [{name}.NAME]")
    return value
