"""The index settings of Meilisearch: the file that has them, and how a live index differs from it.

`meilisearch-settings.json` is their only source: what it does not name is the engine's default, but for what chunksink
itself needs. Embedders are not in it: the model decides them, and they are never changed on a live index.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunksink.settings.config import ConfigError
from chunksink.settings.engine_settings import DEFAULTS, EMBEDDERS, WHOLE, completed
from chunksink.settings.file_paths import SETTINGS_FILE, shipped_settings_file
from chunksink.settings.needed_settings import DISTINCT, with_needed

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
    if settings.get(DISTINCT, ours[DISTINCT]) != ours[DISTINCT]:
        raise UnusableSettings(
            f"{file} sets {DISTINCT} to {settings[DISTINCT]!r:.100}: leave it out, or write {ours[DISTINCT]!r}: by it "
            "searches show each source once, and facets count sources"
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
