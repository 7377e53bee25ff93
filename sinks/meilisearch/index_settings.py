"""The index settings of Meilisearch: reading their file, comparing a live index with it, adding what chunksink needs.

`meilisearch-settings.json` is their only source. A setting that it does not name gets the engine's default, or the
value that chunksink needs. Embedders depend on the model: chunksink sets them, and the file must not contain them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.settings.errors import UnusableSettings
from chunksink.settings.file_paths import SETTINGS_FILE, shipped_settings_file
from chunksink.settings.sink_tables import suggestion

EMBEDDERS = "embedders"
"""This setting depends on the model; the file must not contain it."""

DEFAULTS: dict[str, Any] = {
    "displayedAttributes": ["*"],
    "searchableAttributes": ["*"],
    "filterableAttributes": [],
    "sortableAttributes": [],
    "rankingRules": ["words", "typo", "proximity", "attribute", "sort", "exactness"],
    "stopWords": [],
    "nonSeparatorTokens": [],
    "separatorTokens": [],
    "dictionary": [],
    "synonyms": {},
    "distinctAttribute": None,
    "proximityPrecision": "byWord",
    "typoTolerance": {
        "enabled": True,
        "minWordSizeForTypos": {"oneTypo": 5, "twoTypos": 9},
        "disableOnWords": [],
        "disableOnAttributes": [],
        "disableOnNumbers": False,
    },
    "faceting": {"maxValuesPerFacet": 100, "sortFacetValuesBy": {"*": "alpha"}},
    "pagination": {"maxTotalHits": 1000},
    "searchCutoffMs": None,
    "localizedAttributes": None,
    "facetSearch": True,
    "prefixSearch": "indexingTime",
}
"""The engine's default settings."""

_WHOLE = frozenset(("synonyms", "sortFacetValuesBy"))
"""Objects that a patch replaces instead of merging into them."""

_DISTINCT = "distinctAttribute"
_FILTERABLE = "filterableAttributes"
_DISPLAYED = "displayedAttributes"
_ALWAYS_DISPLAYED = ("id", "parent_id")
"""Every hit must contain them, since they identify its source."""
_SHAPES: Mapping[type, str] = {dict: "an object in braces", list: "a list in brackets"}


@dataclass(frozen=True)
class Difference:
    """One setting whose value differs between the live index and the file."""

    name: str
    live: Any
    desired: Any


def find_settings_file(named: str | None) -> Path:
    """The named file, else the one in the current folder, else the one that came with chunksink."""
    if named is not None:
        return Path(named)
    here = Path(SETTINGS_FILE)
    return here if here.exists() else shipped_settings_file()


def load_index_settings(file: Path) -> dict[str, Any]:
    """The file's settings, completed with those that chunksink needs."""
    settings = _read(file)
    empty = [name for name, value in settings.items() if value is None]
    if empty:
        raise UnusableSettings(f"{file} sets {', '.join(empty)} to null: leave it out, or write a value")
    if EMBEDDERS in settings:
        raise UnusableSettings(f"{file} sets {EMBEDDERS}: leave them out, they depend on the model")
    _require_shapes(file, settings)
    ours = _read(shipped_settings_file())
    if settings.get(_DISTINCT, ours[_DISTINCT]) != ours[_DISTINCT]:
        raise UnusableSettings(
            f"{file} sets {_DISTINCT} to {settings[_DISTINCT]!r:.100}: leave it out, or write {ours[_DISTINCT]!r}, "
            "which makes searches show each source once"
        )
    return with_required(settings, ours)


def _require_shapes(file: Path, settings: Mapping[str, Any]) -> None:
    """Checks the types of the settings. Their content is left to Meilisearch, except that of synonyms, to which
    chunksink adds its marker (`sinks/meilisearch/indexes.py`)."""
    for name, value in settings.items():
        if (shape := _SHAPES.get(type(DEFAULTS.get(name)))) and type(value) is not type(DEFAULTS[name]):
            raise UnusableSettings(f"{file} sets {name} to {json.dumps(value):.100}: write {shape} instead")
    for word, others in settings.get("synonyms", {}).items():
        if not (isinstance(others, list) and all(isinstance(other, str) for other in others)):
            raise UnusableSettings(
                f"{file} sets the synonyms of {word!r:.100} to {json.dumps(others):.100}: write a list of words instead"
            )


def as_file(live: Mapping[str, Any]) -> dict[str, Any]:
    """Live settings in the form of the file: without embedders, and without settings that have the engine's default,
    unless the shipped file names them."""
    named = _read(shipped_settings_file()).keys() | {each.name for each in differences({}, live)}
    omitted = {EMBEDDERS, *DEFAULTS} - named
    return {name: value for name, value in live.items() if value is not None and name not in omitted}


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        if not text.strip():
            raise UnusableSettings(
                f"the index settings {file} are empty. `chunksink settings show > {file}` empties the file first: use "
                f"`chunksink settings show --output {file} --force`, which writes the live settings into it"
            )
        settings = json.loads(text)
    except (OSError, ValueError) as error:
        raise UnusableSettings(f"the index settings {file} cannot be read: {error}") from error
    if not isinstance(settings, dict):
        raise UnusableSettings(f"the index settings {file} are not a JSON object")
    return settings


def complete(desired: Mapping[str, Any]) -> dict[str, Any]:
    """All settings that the file controls. Those that it does not name get the engine's default."""
    settings: dict[str, Any] = _completed(DEFAULTS, dict(desired))
    return settings


def _completed(default: Any, desired: Any) -> Any:
    """`desired`, with defaults for missing and null values."""
    if desired is None:
        return default
    if not (isinstance(default, dict) and isinstance(desired, dict)):
        return desired
    return {**desired, **{name: _completed(value, desired.get(name)) for name, value in default.items()}}


def differences(desired: Mapping[str, Any], live: Mapping[str, Any]) -> list[Difference]:
    """The settings that differ on the live index. Compares only those in the file and in `DEFAULTS`."""
    return [
        Difference(name, live.get(name), value)
        for name, value in complete(desired).items()
        if (name in desired or name in live) and not _agree(name, value, live.get(name))
    ]


def unknown(desired: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """The names in `desired` that an index with the settings `known` does not have, with suggestions."""
    found = [f"{name}{suggestion(name, known)}" for name in desired if name not in known]
    for name, value in desired.items():
        if name not in _WHOLE and isinstance(value, dict) and isinstance(known.get(name), dict):
            found += [f"{name}.{inner}" for inner in unknown(value, known[name])]
    return found


def resets(desired: Mapping[str, Any], live: Mapping[str, Any], defaults: Mapping[str, Any] = DEFAULTS) -> list[str]:
    """The live settings that applying the file resets to the engine's default, because it does not name them."""
    found = []
    for name, default in defaults.items():
        value, current = desired.get(name), live.get(name)
        if value is None:
            found += [name] if name in live and not _agree(name, default, current) else []
        elif name not in _WHOLE and all(isinstance(each, dict) for each in (default, value, current)):
            found += [f"{name}.{inner}" for inner in resets(value, current or {}, default)]
    return found


def _agree(name: str, desired: Any, live: Any) -> bool:
    """Whether applying `desired` would change nothing; Meilisearch merges objects."""
    if name not in _WHOLE and isinstance(desired, dict) and isinstance(live, dict):
        return all(_agree(key, value, live.get(key)) for key, value in desired.items())
    return bool(desired == live)


def patch_of(found: list[Difference]) -> dict[str, Any]:
    """The settings of the file that differ from those of the live index, each complete."""
    return {difference.name: difference.desired for difference in found}


# -- what chunksink needs beyond the settings file ---------------------------------------------------------------------


def with_required(settings: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and what chunksink needs from `ours` (the file that came with it): the rules for the fields that
    syncs and searches filter by, and the distinct attribute, by which each source is one hit."""
    found = {_DISTINCT: ours[_DISTINCT], _FILTERABLE: [], **settings}
    required = ours[_FILTERABLE]  # come first, because the first matching rule counts
    found[_FILTERABLE] = [*required, *(rule for rule in found[_FILTERABLE] if rule not in required)]
    shown = settings.get(_DISPLAYED)
    if isinstance(shown, list) and "*" not in shown:
        found[_DISPLAYED] = [*shown, *(name for name in _ALWAYS_DISPLAYED if name not in shown)]
    return found
