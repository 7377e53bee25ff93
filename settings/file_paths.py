"""Paths in a configuration file: relative ones start at the file's folder, and `~` is the user's home."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chunksink.chunkbus.storage import is_bucket

SETTINGS_FILE = "meilisearch-settings.json"

_FOLDERS = ("chunks", "home", "model_cache")
_BUS_FOLDERS = ("canonical", "manifest")
_SINK_PATHS = ("folder", "settings_file")
_RAY_PATHS = ("segments",)


def from_folder(values: Mapping[str, Any], folder: Path, defaults: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a file in `folder`, with its paths resolved. `defaults` apply to folders that it omits."""
    if folder == Path():
        return dict(values)  # messages then show paths as they were written
    resolved: dict[str, Any] = _resolved({**defaults, **values}, folder)
    if isinstance(indexes := resolved.get("index"), dict):
        resolved["index"] = {name: _resolved(table, folder) for name, table in indexes.items()}
    return resolved


def expanded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with `~` expanded in paths."""
    whole: dict[str, Any] = _expanded(values, (*_FOLDERS, "model"))
    if isinstance(sinks := whole.get("sink"), Mapping):
        whole["sink"] = {name: _expanded(table, _SINK_PATHS) for name, table in sinks.items()}
    if "ray" in whole:
        whole["ray"] = _expanded(whole["ray"], _RAY_PATHS)
    return whole


def _expanded(values: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(values, Mapping):
        return values
    return dict(values) | {name: expand_user(value) for name in names if isinstance(value := values.get(name), str)}


def expand_user(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 (Path.expanduser raises for an unknown user)


def folder_inside_bus(chunks: str, home: str, sinks: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """The home or sink whose folder is inside `canonical/` or `manifest/`, and a message about it."""
    if is_bucket(chunks):
        return None
    places = {"home": home} | {
        name: folder for name, table in sinks.items() if isinstance(folder := table.get("folder"), str)
    }
    for reserved in (Path(chunks).resolve() / part for part in _BUS_FOLDERS):
        for name, place in places.items():
            if Path(place).resolve().is_relative_to(reserved):
                what = "home" if name == "home" else f"folder of [sink.{name}]"
                return name, f"{what}: {place} is inside {reserved}, which is only for chunks; name another folder"
    return None


def wrong_address(chunks: str, home: str) -> tuple[str, str] | None:
    """The setting with an unusable address (`chunks` or `home`), and a message about it."""
    if "://" in home:
        return "home", "`home` must be a local folder; only `chunks` can be in object storage"
    if "://" not in chunks:
        return None
    from chunksink.chunkbus.bucket import checked_address
    from chunksink.chunkbus.errors import StorageError

    try:
        checked_address(chunks)
    except StorageError as error:
        return "chunks", f"`chunks`: {error}"
    return None


def index_settings_of(folder: Path) -> str | None:
    """The index settings for a configuration file in `folder`: the file beside it, else the shipped one.

    None if `find_settings_file` finds the same file without being told: it looks in the current folder, then takes the
    shipped one.
    """
    if folder == Path():
        return None
    file = folder / SETTINGS_FILE
    if file.is_file():
        return str(file)
    return str(shipped_settings_file()) if Path(SETTINGS_FILE).exists() else None


def shipped_settings_file() -> Path:
    """The file that came with chunksink."""
    packaged = Path(__file__).with_name(SETTINGS_FILE)  # in a wheel
    return packaged if packaged.exists() else Path(__file__).resolve().parents[1] / SETTINGS_FILE


def _resolved(values: Any, folder: Path) -> Any:
    if not isinstance(values, Mapping):
        return values  # refused later
    resolved = _joined(values, _FOLDERS, folder)
    if isinstance(model := resolved.get("model"), str) and model and (folder / model).is_dir():  # not a name on the hub
        resolved["model"] = str(folder / model)
    if isinstance(sinks := resolved.get("sink"), Mapping):
        resolved["sink"] = {name: _joined(table, _SINK_PATHS, folder) for name, table in sinks.items()}
    if "ray" in resolved:
        resolved["ray"] = _joined(resolved["ray"], _RAY_PATHS, folder)
    return resolved


def _joined(values: Any, names: tuple[str, ...], folder: Path) -> Any:
    if not isinstance(values, Mapping):
        return values
    paths = {
        name: str(folder / expand_user(value))
        for name in names
        if isinstance(value := values.get(name), str) and value and "://" not in value
    }
    return {**values, **paths}
