"""The tables `[sink.NAME]`: which names are allowed, and what environment variables add to them.

A table must belong to a sink that is installed or in use. An unknown sink is allowed if only an environment variable
mentions it, since other programs may use the same prefix.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ForIndex = Callable[[str, str, Any], Any]
"""Maps a sink, an option and its shared value to the value for the chosen index."""

_OURS = {"chroma", "fts", "jsonl", "meilisearch", "postgres"}
"""Known without a search through installed packages."""
GROUP = "chunksink.sinks"
"""The group of entry points that `sinks.registry` loads."""


def unused_tables(file: Mapping[str, Any], flags: Mapping[str, Any]) -> set[str]:
    """The sinks that have options in the file, its index tables or the flags, but are in no `sinks` list there."""
    indexes = file.get("index")
    places = [file, flags, *(indexes.values() if isinstance(indexes, dict) else ())]
    tables: set[str] = set()
    used: set[str] = set()
    for place in places:
        if isinstance(place, Mapping):  # other types are refused later
            tables |= _texts(place.get("sink"), dict)
            used |= _texts(place.get("sinks"), list | tuple)
    return tables - used


def unknown_sink(tables: Collection[str], source: str) -> str | None:
    """The message about the first table that belongs to no sink."""
    if not tables:
        return None  # saves the search through installed packages
    known = sink_names()
    for name in sorted(set(tables) - set(known)):
        return f"{source}: [sink.{name}] belongs to no sink{suggestion(name, known)}; the sinks are {', '.join(known)}"
    return None


def misspelt_sink(sinks: Collection[str]) -> str | None:
    """The message about the first unknown name that is similar to a sink's. Other unknown names are refused later, when
    the sink is opened."""
    for name in sorted(set(sinks) - _OURS):
        known = sink_names()
        if name not in known and (near := suggestion(name, known)):
            return f"`sinks`: there is no sink {name!r}{near}; the sinks are {', '.join(known)}"
    return None


def with_environment(
    values: Mapping[str, Any],
    environment: Mapping[str, str],
    prefix: str,
    meilisearch_url: str | None,
    for_index: ForIndex,
) -> Any:
    """The tables with the options from variables: `<prefix>MEILISEARCH_URL` sets `url` of the sink `meilisearch`.

    `<prefix>MY_SINK_URL` belongs to the sink `my-sink` if that has a table or is in `sinks`, otherwise to `my`.
    """
    content = values.get("sink", {})
    if not isinstance(content, dict):
        return content  # refused later
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in content.items()}
    if meilisearch_url and isinstance(tables.setdefault("meilisearch", {}), dict):
        tables["meilisearch"]["url"] = meilisearch_url
    sinks = values.get("sinks") or ()
    used = {name.strip() for name in sinks.split(",")} if isinstance(sinks, str) else _texts(sinks, list | tuple)
    for variable in (variable for variable in environment if variable.startswith(prefix)):
        sink, option = _sink_and_option(variable.removeprefix(prefix), {*tables, *used})
        if option and isinstance(tables.setdefault(sink, {}), dict):
            tables[sink][option] = for_index(sink, option, environment[variable])
    return tables


def _sink_and_option(name: str, known: Collection[str]) -> tuple[str, str]:
    for sink in sorted(known, key=len, reverse=True):
        start = sink.upper().replace("-", "_") + "_"
        if name.startswith(start):
            return sink, name.removeprefix(start).lower()
    sink, _, option = name.lower().partition("_")
    return sink, option


def installed_sinks() -> Sequence["EntryPoint"]:
    """The sinks of all installed packages; several may have the same name."""
    return _installed(tuple(sys.path))


def sink_names() -> list[str]:
    """The sinks that are installed here."""
    return sorted({found.name for found in installed_sinks()})


@cache
def _installed(path: Sequence[str]) -> Sequence["EntryPoint"]:
    """Cached for each path, because searching all packages takes longer than opening a sink."""
    from importlib.metadata import entry_points

    del path
    return tuple(entry_points(group=GROUP))


def _texts(values: Any, kind: Any) -> set[str]:
    return {each for each in values if isinstance(each, str)} if isinstance(values, kind) else set()


def suggestion(name: str, known: Collection[str]) -> str:
    """` (did you mean NAME?)`; empty if no known name is similar."""
    near = nearest(name.lower(), known) or nearest(name, known)
    return f" (did you mean {near}?)" if near else ""


def nearest(name: str, known: Collection[str], cutoff: float = 0.6) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, n=1, cutoff=cutoff)), None)
