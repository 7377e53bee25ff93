"""The tables `[sink.NAME]`: which there may be, of a sink that is installed or asked for; what variables add to them.

Sinks that only a variable names are not refused: other programs may share the prefix.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OfItsOwn = Callable[[str, str, Any], Any]
"""Of a sink, an option and what is said of it: what the chosen index takes for that."""

GROUP = "chunksink.sinks"
"""Of entry points; `sinks.registry` opens what stands behind them."""


def tables_of(file: Mapping[str, Any], flags: Mapping[str, Any]) -> set[str]:
    """The sinks that have options and are not asked for, also in the tables of indexes that were not chosen."""
    indexes = file.get("index")
    places = [file, flags, *(indexes.values() if isinstance(indexes, dict) else ())]
    tables: set[str] = set()
    asked_for: set[str] = set()
    for place in places:
        if isinstance(place, Mapping):  # anything else is refused by its type
            tables |= _texts(place.get("sink"), dict)
            asked_for |= _texts(place.get("sinks"), list | tuple)
    return tables - asked_for


def unknown_sink(tables: Collection[str]) -> str | None:
    """What is wrong with the first table that belongs to no sink."""
    if not tables:
        return None  # the usual case, without looking through what is installed
    known = sink_names()
    for name in sorted(set(tables) - set(known)):
        return f"[sink.{name}] is of no sink{_nearest(name, known)}; there are: {', '.join(known)}"
    return None


def with_environment(
    values: Mapping[str, Any],
    environment: Mapping[str, str],
    prefix: str,
    meilisearch_url: str | None,
    of_its_own: OfItsOwn,
) -> Any:
    """The tables with what variables say: `PREFIX` `MEILISEARCH_URL` is the option `url` of the sink `meilisearch`.

    A name of several words is known where the settings say it; else the first word is the sink.
    """
    given = values.get("sink", {})
    if not isinstance(given, dict):
        return given  # refused by its type
    tables = {name: dict(table) if isinstance(table, dict) else table for name, table in given.items()}
    if meilisearch_url and isinstance(tables.setdefault("meilisearch", {}), dict):
        tables["meilisearch"]["url"] = meilisearch_url
    said = values.get("sinks") or ()
    asked_for = {name.strip() for name in said.split(",")} if isinstance(said, str) else _texts(said, list | tuple)
    for variable in (variable for variable in environment if variable.startswith(prefix)):
        sink, option = _named(variable.removeprefix(prefix), {*tables, *asked_for})
        if option and isinstance(tables.setdefault(sink, {}), dict):
            tables[sink][option] = of_its_own(sink, option, environment[variable])
    return tables


def _named(said: str, known: Collection[str]) -> tuple[str, str]:
    """The sink and the option."""
    for sink in sorted(known, key=len, reverse=True):
        start = sink.upper().replace("-", "_") + "_"
        if said.startswith(start):
            return sink, said.removeprefix(start).lower()
    sink, _, option = said.lower().partition("_")
    return sink, option


def installed_sinks() -> Sequence["EntryPoint"]:
    """All that any package here brings; of one name there may be several."""
    return _installed(tuple(sys.path))


def sink_names() -> list[str]:
    """The sinks that are installed here."""
    return sorted({found.name for found in installed_sinks()})


@cache
def _installed(path: Sequence[str]) -> Sequence["EntryPoint"]:
    """As found on this path: every package is looked through, which takes longer than all else that opens a sink."""
    from importlib.metadata import entry_points

    del path
    return tuple(entry_points(group=GROUP))


def _texts(found: Any, kind: Any) -> set[str]:
    return {each for each in found if isinstance(each, str)} if isinstance(found, kind) else set()


def _nearest(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), known, n=1)
    return f", {near[0]} is the nearest" if near else ""
