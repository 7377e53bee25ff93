"""The index settings of Meilisearch: their file, how a live index differs from it, and what chunksink itself needs.

`meilisearch-settings.json` is their only source: what it does not name is the engine's default, or what chunksink
needs. Embedders are not in it: the model decides them, and they are never changed on a live index.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from chunksink.settings.config import ConfigError
from chunksink.settings.engine_settings import DEFAULTS, EMBEDDERS, WHOLE, completed
from chunksink.settings.file_paths import SETTINGS_FILE, shipped_settings_file

_DISTINCT = "distinctAttribute"
_FILTERABLE = "filterableAttributes"
_DISPLAYED = "displayedAttributes"
_FEATURES = {"filter": {"equality": True, "comparison": False}}
"""Of a rule that does not say."""
_SHOWN = ("id", "parent_id")
"""A hit needs them: without them its source is unknown."""
_SHAPES: Mapping[type, str] = {dict: "an object in braces", list: "a list in brackets"}


class UnusableSettings(ConfigError):
    """The file of index settings cannot be used; the message names it, and what is wrong with it."""


@dataclass(frozen=True)
class Difference:
    """One setting that the live index has otherwise than the file."""

    name: str
    live: Any
    wanted: Any


def find_settings_file(named: str | None) -> Path:
    """The file that is named; else the one in this folder; else the one that came with chunksink."""
    if named is not None:
        return Path(named)
    here = Path(SETTINGS_FILE)
    return here if here.exists() else shipped_settings_file()


def load_index_settings(file: Path) -> dict[str, Any]:
    """What the file says, and what chunksink itself needs where the file does not say it."""
    settings = _read(file)
    empty = [name for name, value in settings.items() if value is None]
    if empty:
        raise UnusableSettings(
            f"{file} sets {', '.join(empty)} to null: leave it out, or write the value that is wanted"
        )
    if EMBEDDERS in settings:
        raise UnusableSettings(f"{file} sets {EMBEDDERS}: leave them out, the model decides them")
    _require_shapes(file, settings)
    ours = _read(shipped_settings_file())
    if settings.get(_DISTINCT, ours[_DISTINCT]) != ours[_DISTINCT]:
        raise UnusableSettings(
            f"{file} sets {_DISTINCT} to {settings[_DISTINCT]!r:.100}: leave it out, or write {ours[_DISTINCT]!r}: "
            "by it searches show each source once, and facets count sources"
        )
    return with_needed(settings, ours)


def _require_shapes(file: Path, settings: Mapping[str, Any]) -> None:
    """What is inside them is for Meilisearch to judge, but for synonyms, to which ours are added."""
    for name, value in settings.items():
        if (shape := _SHAPES.get(type(DEFAULTS.get(name)))) and type(value) is not type(DEFAULTS[name]):
            raise UnusableSettings(f"{file} sets {name} to {json.dumps(value):.100}: write {shape} there")
    for word, others in settings.get("synonyms", {}).items():
        if not (isinstance(others, list) and all(isinstance(other, str) for other in others)):
            raise UnusableSettings(
                f"{file} sets the synonyms of {word!r:.100} to {json.dumps(others):.100}: write a list of words there"
            )


def as_file(live: Mapping[str, Any]) -> dict[str, Any]:
    """Live settings as a file that asks for them: without embedders, and without what is as on an index that nobody
    touched, unless the file that came with chunksink names it."""
    named = _read(shipped_settings_file()).keys() | {each.name for each in differences({}, live)}
    left_out = {EMBEDDERS, *DEFAULTS} - named
    return {name: value for name, value in live.items() if value is not None and name not in left_out}


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        if not text.strip():
            raise UnusableSettings(
                f"the index settings {file} are an empty file, as a shell leaves it of `chunksink settings show > "
                f"{file}`: it empties the file first. `chunksink settings show --output {file} --force` writes the "
                "settings of the live index into it"
            )
        settings = json.loads(text)
    except (OSError, ValueError) as error:
        raise UnusableSettings(f"the index settings {file} cannot be read: {error}") from error
    if not isinstance(settings, dict):
        raise UnusableSettings(f"the index settings {file} are no JSON object of settings")
    return settings


def complete(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """All that the file decides: what it does not name is as on an index that nobody touched."""
    found: dict[str, Any] = completed(DEFAULTS, dict(wanted))
    return found


def differences(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> list[Difference]:
    """What the live index has otherwise. What neither the file nor we know is left alone."""
    return [
        Difference(name, live.get(name), value)
        for name, value in complete(wanted).items()
        if (name in wanted or name in live) and not _agree(name, value, live.get(name))
    ]


def unknown(wanted: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    """Settings that an index does not have, as `typoTolerance.enabeld`, going by all those that it has."""
    found = [name for name in wanted if name not in known]
    for name, value in wanted.items():
        if name not in WHOLE and isinstance(value, dict) and isinstance(known.get(name), dict):
            found += [f"{name}.{inner}" for inner in unknown(value, known[name])]
    return found


def _agree(name: str, wanted: Any, live: Any) -> bool:
    """Whether Meilisearch would take `wanted` as what it has; it merges into objects."""
    if name not in WHOLE and isinstance(wanted, dict) and isinstance(live, dict):
        return all(_agree(key, value, live.get(key)) for key, value in wanted.items())
    return bool(wanted == live)


def patch_of(found: list[Difference]) -> dict[str, Any]:
    """The least that makes the live index as the file wants it."""
    return {difference.name: difference.wanted for difference in found}


# -- what chunksink itself needs, whatever the settings file says ------------------------------------------------------


class _Filter(msgspec.Struct):
    equality: bool
    comparison: bool


class _Features(msgspec.Struct):
    filter: _Filter


class _Rule(msgspec.Struct):
    """Of fields, whose names may begin or end with a star."""

    attributePatterns: list[str]  # noqa: N815 (Meilisearch's name)
    features: _Features

    def fits(self, field: str) -> bool:
        return any(re.fullmatch(_expression(pattern), field) for pattern in self.attributePatterns)


def with_needed(settings: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and what they lack of `ours`, those of the file that came with chunksink: fields that a sync or a
    filter selects by are filterable, and hits are distinct by source."""
    found = {_DISTINCT: ours[_DISTINCT], _FILTERABLE: [], **settings}
    found[_FILTERABLE] = _filterable(found[_FILTERABLE], ours[_FILTERABLE])
    shown = settings.get(_DISPLAYED)
    if isinstance(shown, list) and "*" not in shown:
        found[_DISPLAYED] = [*shown, *(name for name in _SHOWN if name not in shown)]
    return found


def _filterable(own: Any, ours: Sequence[Mapping[str, Any]]) -> Any:
    """Our rules for what the own ones do not allow; before them, for the first rule that fits a field counts."""
    try:
        rules = msgspec.convert(_with_features(own), list[str | _Rule])
    except msgspec.ValidationError:  # the server says what is wrong with it
        return own
    added = []
    for rule in ours:
        compared = rule["features"]["filter"]["comparison"]
        lacking = [name for name in rule["attributePatterns"] if not _allows(rules, name, compared=compared)]
        if lacking:
            added.append({**rule, "attributePatterns": lacking})
    return [*added, *own]


def _with_features(own: Any) -> Any:
    return [completed({"features": _FEATURES}, rule) for rule in own] if isinstance(own, list) else own


def _allows(rules: Sequence[str | _Rule], field: str, *, compared: bool) -> bool:
    for rule in rules:
        if isinstance(rule, str):
            if rule == field:
                return True
        elif rule.fits(field):
            allowed = rule.features.filter
            return allowed.equality and (allowed.comparison or not compared)
    return False


def _expression(pattern: str) -> str:
    before, after = (".*" if is_open else "" for is_open in (pattern.startswith("*"), pattern.endswith("*")))
    return before + re.escape(pattern.removeprefix("*").removesuffix("*")) + after
