"""Paths that a configuration names: relative ones of a file are taken from its folder, wherever the command runs, and
`~` is the user's own, whoever names it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SETTINGS_FILE = "meilisearch-settings.json"

_FOLDERS = ("chunks", "home", "model_cache")
_OF_CHUNKS = ("canonical", "manifest")
_OF_SINKS = ("folder", "settings_file")


def from_folder(values: Mapping[str, Any], folder: Path, defaults: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a file in `folder`; `defaults` are folders that it need not say."""
    if folder == Path():
        return dict(values)  # they are shown as they were written
    placed: dict[str, Any] = _placed({**defaults, **values}, folder)
    if isinstance(indexes := placed.get("index"), dict):
        placed["index"] = {name: _placed(table, folder) for name, table in indexes.items()}
    return placed


def expanded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with whole paths in place of those that begin with `~`, which no shell has expanded."""
    whole: dict[str, Any] = _expanded(values, (*_FOLDERS, "model"))
    if isinstance(sinks := whole.get("sink"), Mapping):
        whole["sink"] = {name: _expanded(table, _OF_SINKS) for name, table in sinks.items()}
    return whole


def _expanded(values: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(values, Mapping):
        return values
    return dict(values) | {name: of_user(value) for name in names if isinstance(value := values.get(name), str)}


def of_user(path: str) -> str:
    """The whole path of one that begins with `~`."""
    return os.path.expanduser(path)  # noqa: PTH111 (which refuses the name of a user who is not there)


def misplaced(chunks: str, home: str, sinks: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What is said of a place of ours that lies among the chunks, where nothing else may lie."""
    places = {"home": home} | {
        f"folder of [sink.{name}]": folder
        for name, table in sinks.items()
        if isinstance(folder := table.get("folder"), str)
    }
    for among in (Path(chunks).resolve() / part for part in _OF_CHUNKS):
        for what, place in places.items():
            if Path(place).resolve().is_relative_to(among):
                return f"{what}: {place} lies in {among}, where nothing but chunks may lie; name another folder"
    return None


def index_settings_of(folder: Path) -> str | None:
    """The file of index settings for a configuration that was named: beside it, else ours; not that of whatever folder
    a command runs in. None where the usual one is meant."""
    if folder == Path():
        return None
    file = folder / SETTINGS_FILE
    if file.is_file():
        return str(file)
    return str(shipped_settings_file()) if Path(SETTINGS_FILE).exists() else None


def shipped_settings_file() -> Path:
    """The one that came with chunksink."""
    beside = Path(__file__).with_name(SETTINGS_FILE)  # in an installed package
    return beside if beside.exists() else Path(__file__).resolve().parents[1] / SETTINGS_FILE


def _placed(values: Any, folder: Path) -> Any:
    if not isinstance(values, Mapping):
        return values  # refused by its type
    placed = _joined(values, _FOLDERS, folder)
    if isinstance(model := placed.get("model"), str) and model and (folder / model).is_dir():  # else a name on the hub
        placed["model"] = str(folder / model)
    if isinstance(sinks := placed.get("sink"), Mapping):
        placed["sink"] = {name: _joined(table, _OF_SINKS, folder) for name, table in sinks.items()}
    return placed


def _joined(values: Any, names: tuple[str, ...], folder: Path) -> Any:
    if not isinstance(values, Mapping):
        return values
    paths = {
        name: str(folder / of_user(value)) for name in names if isinstance(value := values.get(name), str) and value
    }
    return {**values, **paths}
