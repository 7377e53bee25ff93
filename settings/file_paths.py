"""Resolves paths in a configuration file: relative ones from the file's folder, and `~` to the user's home."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from chunksink.chunkbus.storage import BUCKET_SCHEMES, is_bucket

SETTINGS_FILE = "meilisearch-settings.json"

_FOLDERS = ("chunks", "home", "model_cache")
_BUS_FOLDERS = ("canonical", "manifest", "links")
_SINK_PATHS = ("folder", "settings_file")
_RAY_PATHS = ("segments",)
_ONE_SLASH = re.compile(rf"(?P<scheme>{'|'.join(BUCKET_SCHEMES)}):/(?!/)", re.IGNORECASE)
"""The beginning of a mistyped address, which would otherwise name a folder `s3:`. `pathlib` also shortens addresses to
this form."""
_Change = Callable[[str], str]


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
    changed: dict[str, Any] = _changed(values, expand_user, expand_user)
    return changed


def absolute_paths(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with absolute paths, which stay the same if the process changes its folder."""
    changed: dict[str, Any] = _resolved(values, Path.cwd())
    return changed


def expand_user(path: str) -> str:
    return os.path.expanduser(path)  # noqa: PTH111 (Path.expanduser raises for an unknown user)


def folder_inside_bus(chunks: str, home: str, sinks: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """Finds a folder that collides with the chunks: it is the bus root, or inside a folder that only the bus uses.

    Returns whose folder it is (`home` or the name of a sink) and a message; None if no folder collides.
    """
    if is_bucket(chunks):
        return None
    places = {"home": home} | {
        name: folder for name, table in sinks.items() if isinstance(folder := table.get("folder"), str)
    }
    root = Path(chunks).resolve()
    for name, place in places.items():
        what, folder = "home" if name == "home" else f"folder of [sink.{name}]", Path(place).resolve()
        if folder == root:
            return name, f"{what}: {place} is the folder of the chunks; name another folder, or one inside it"
        if reserved := next((root / part for part in _BUS_FOLDERS if folder.is_relative_to(root / part)), None):
            return name, f"{what}: {place} is inside {reserved}, which is only for chunks; name another folder"
    return None


def wrong_address(chunks: str, home: str, segments: str) -> tuple[str, str] | None:
    """The setting with an unusable address (`chunks`, `home` or `ray`), and a message about it."""
    if "://" in home or _ONE_SLASH.match(home):
        return "home", "`home` must be a local folder; `chunks` can be in object storage"
    for name, what, place in (("chunks", "`chunks`", chunks), ("ray", "`segments` in [ray]", segments)):
        if mistyped := _ONE_SLASH.match(place):
            return name, f"{what}: an address in object storage has two slashes: {mistyped['scheme']}://BUCKET/PREFIX"
        if "://" not in place:
            continue
        from chunksink.chunkbus.bucket import checked_address
        from chunksink.chunkbus.errors import StorageError

        try:
            checked_address(place)
        except StorageError as error:
            return name, f"{what}: {error}"
    return None


def index_settings_of(folder: Path) -> str | None:
    """The `settings_file` to set for Meilisearch: the file beside a configuration in `folder`, else the shipped one.

    None if it need not be set, because the sink finds that file itself: it looks in the current folder, then takes the
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
    def model(name: str) -> str:
        return str(folder / name) if (folder / name).is_dir() else name  # else a name on the hub

    return _changed(values, lambda path: str(folder / expand_user(path)), model)


def _changed(values: Any, path: _Change, model: _Change) -> Any:
    """The settings with each path changed by `path`, and each model by `model`."""
    if not isinstance(values, Mapping):
        return values  # refused later
    changed = _replaced(_replaced(values, _FOLDERS, path), ("model",), model)
    if isinstance(sinks := changed.get("sink"), Mapping):
        changed["sink"] = {name: _replaced(table, _SINK_PATHS, path) for name, table in sinks.items()}
    if "ray" in changed:
        changed["ray"] = _replaced(changed["ray"], _RAY_PATHS, path)
    if "rerank" in changed:
        changed["rerank"] = _replaced(changed["rerank"], ("model",), model)
    return changed


def _replaced(values: Any, names: tuple[str, ...], change: _Change) -> Any:
    if not isinstance(values, Mapping):
        return values
    found = {name: value for name in names if isinstance(value := values.get(name), str)}
    paths = {name: value for name, value in found.items() if value and "://" not in value}
    return {**values, **{name: change(value) for name, value in paths.items() if not _ONE_SLASH.match(value)}}
