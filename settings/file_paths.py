"""Paths that a configuration file names: relative ones are taken from its folder, wherever the command runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SETTINGS_FILE = "meilisearch-settings.json"

_FOLDERS = ("chunks", "home")
_OF_SINKS = ("folder", "settings_file")


def from_folder(values: Mapping[str, Any], folder: Path, defaults: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a file in `folder`; `defaults` are folders that it need not say."""
    if folder == Path():
        return dict(values)  # they are shown as they were written
    placed: dict[str, Any] = _placed({**defaults, **values}, folder)
    if isinstance(indexes := placed.get("index"), dict):
        placed["index"] = {name: _placed(table, folder) for name, table in indexes.items()}
    return placed


def index_settings_in(folder: Path) -> str | None:
    """The file of index settings beside a configuration that was named; that of the current folder is found anyway."""
    file = folder / SETTINGS_FILE
    return str(file) if folder != Path() and file.is_file() else None


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
    paths = {name: str(folder / value) for name in names if isinstance(value := values.get(name), str) and value}
    return {**values, **paths}
