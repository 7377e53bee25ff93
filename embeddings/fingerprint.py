"""The model fingerprint: what decides the meaning of a vector, and nothing else.

It includes weights, tokenizer and its settings, architecture, the chain of modules with pooling and normalisation,
prompts, context, maximum length and long-text policy. It excludes names, paths, dates, library versions, precision and
device. So nothing is embedded again after an upgrade, or with another copy of the same files. The fingerprint of an
endpoint includes its URL and the model's name instead of files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import msgspec
import orjson

from chunksink.chunkbus.signature import settled_signatures
from chunksink.chunkbus.storage import FolderStorage
from chunksink.embeddings.errors import ModelUnsupported

_FORMAT = 1

# Bookkeeping by the libraries that wrote a config.json.
_IGNORED_KEYS = {
    "_name_or_path",
    "_commit_hash",
    "architectures",
    "dtype",
    "gradient_checkpointing",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_cache",
}
# Settings of a tokenizer that affect no vector: paths, bookkeeping, decoding, chat, and the cutting and padding that we
# do ourselves. The fingerprint has the maximum length separately. Every other key is part of the fingerprint: an
# irrelevant one costs a needless recomputation, but without a relevant one, wrong vectors would be used.
_IGNORED_TOKENIZER_KEYS = {
    "_commit_hash",
    "_name_or_path",
    "added_tokens_file",
    "chat_template",
    "clean_up_tokenization_spaces",
    "is_local",
    "local_files_only",
    "max_length",
    "model_max_length",
    "name_or_path",
    "pad_to_multiple_of",
    "padding",
    "special_tokens_map_file",
    "stride",
    "tokenizer_config_file",
    "tokenizer_file",
    "transformers_version",
    "truncation",
    "truncation_side",
    "truncation_strategy",
    "use_fast",
    "verbose",
    "vocab_file",
}
_TOKENIZER_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
_VOCABULARY_FILES = (
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)


def fingerprint_of_model(folder: Path, digests: Mapping[str, str], settings: Mapping[str, Any]) -> str:
    """The fingerprint of a sentence-transformers model folder under these settings, in hex. `digests` is the result of
    `file_digests`."""
    modules = _modules(folder)
    parts = {
        "weights": _weights(folder, modules, digests),
        "tokenizer": _tokenizer(folder, modules[0]["path"], digests),
        "modules": [{"type": module["type"], "config": _module_config(folder, module)} for module in modules],
    }
    return _digest_of({"format": _FORMAT, "kind": "model", "parts": {**parts, **settings}})


class _SavedDigests(msgspec.Struct, frozen=True):
    signature: str
    digests: dict[str, str]


def file_digests(folder: Path, model_cache: Path | None = None) -> dict[str, str]:
    """The digest of every file below a folder, by its path in the folder.

    They are kept in the folder `model_cache`, so that unchanged files are read only once.
    """
    signature = signature_of_files(folder) if model_cache is not None else None
    if model_cache is None or signature is None:
        return _read_digests(folder)
    file = model_cache / "digests" / f"{_digest_of(str(folder))[:40]}.json"
    with suppress(OSError, msgspec.MsgspecError):
        saved = msgspec.json.decode(file.read_bytes(), type=_SavedDigests)
        if saved.signature == signature:
            return saved.digests
    digests = _read_digests(folder)
    with suppress(OSError):
        FolderStorage(file.parent).write(file.name, msgspec.json.encode(_SavedDigests(signature, digests)))
    return digests


def _read_digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): _file_digest(path) for path in _files(folder)}


def digest_of_files(digests: Mapping[str, str]) -> str:
    """One digest of all files of a model's folder; it changes when any of them changes."""
    return _digest_of(list(digests.items()))


def signature_of_files(folder: Path) -> str | None:
    """A digest of sizes, times and inodes, which changes when a file is written or replaced.

    May wait up to two seconds. None if a change might go unnoticed.
    """
    signatures, is_settled = settled_signatures(_files(folder))
    return _digest_of([str(folder), *map(astuple, signatures)]) if is_settled else None


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def fingerprint_of_endpoint(url: str, model: str, dimension: int, settings: Mapping[str, Any]) -> str:
    """The fingerprint of an endpoint: we cannot see its weights, so its address and model name take their place."""
    parts = {"url": url, "model": model, "dimension": dimension, "settings": settings}
    return _digest_of({"format": _FORMAT, "kind": "endpoint", "parts": parts})


def _digest_of(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _modules(folder: Path) -> list[dict[str, str]]:
    """The chain of modules. Without modules.json, the library takes the mean of a plain transformer's tokens."""
    listed = _json(folder / "modules.json")
    if listed is None:
        return [{"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "1_Pooling"}]
    try:
        return [{"type": str(entry["type"]).rpartition(".")[2], "path": str(entry["path"])} for entry in listed]
    except (TypeError, KeyError) as exc:
        raise ModelUnsupported(f"{folder / 'modules.json'} is not a list of modules") from exc


def _module_config(folder: Path, module: Mapping[str, str]) -> Any:
    config = _json(folder / module["path"] / "config.json") or {}
    if module["type"] == "Pooling":
        return _pooling(config)
    return {key: value for key, value in config.items() if key not in _IGNORED_KEYS}


def _pooling(config: Mapping[str, Any]) -> dict[str, Any]:
    """The pooling modes, which a config lists either as one flag per mode or as `pooling_mode`."""
    named = config.get("pooling_mode")
    if isinstance(named, str):
        modes = named.split("+")
    elif isinstance(named, list):
        modes = [str(mode) for mode in named]
    else:
        modes = [
            key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling_mode_") and on
        ]
    short = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max", "mean_sqrt_len_tokens": "mean_sqrt_len"}
    return {
        "modes": sorted({short.get(mode, mode) for mode in modes} or {"mean"}),
        "include_prompt": bool(config.get("include_prompt", True)),
    }


def _weights(folder: Path, modules: list[dict[str, str]], digests: Mapping[str, str]) -> list[str]:
    """Digests of the weight files that are loaded: safetensors if there are any, else pickled ones."""
    weights: list[str] = []
    for place in dict.fromkeys(module["path"] for module in modules):
        found = sorted((folder / place).glob("*.safetensors")) or sorted((folder / place).glob("pytorch_model*.bin"))
        weights += [digests.get(path.relative_to(folder).as_posix()) or _file_digest(path) for path in found]
    if not weights:
        raise ModelUnsupported(f"{folder} contains no weights (*.safetensors or pytorch_model.bin)")
    return weights


def _tokenizer(root: Path, place: str, digests: Mapping[str, str]) -> dict[str, Any]:
    """The tokenizer's files, each setting that affects token ids, and what the first module does to a text before it is
    tokenized, such as lower-casing.

    The loaded tokenizer is not used: versions of a library serialize the same file differently (tokenizers 0.19 and
    0.20 do), so an upgrade would embed everything again.
    """
    folder = root / place
    whole = _json(folder / "tokenizer.json")
    parts: dict[str, Any] = {}
    if isinstance(whole, dict):
        # Without cutting and padding, which we set ourselves.
        parts["tokenizer.json"] = _digest_of({k: v for k, v in whole.items() if k not in ("truncation", "padding")})
    else:
        files = {name: (folder / name).relative_to(root).as_posix() for name in _VOCABULARY_FILES}
        parts |= {name: digests[file] for name, file in files.items() if file in digests}
    for name in _TOKENIZER_SETTINGS:
        settings = _json(folder / name) or {}
        parts[name] = {key: value for key, value in settings.items() if key not in _IGNORED_TOKENIZER_KEYS}
    kind = parts["tokenizer_config.json"].get("tokenizer_class")
    if isinstance(kind, str):  # the class with and without Fast is the same tokenizer
        parts["tokenizer_config.json"]["tokenizer_class"] = kind.removesuffix("Fast")
    # sentence_bert_config.json, or sentence_<architecture>_config.json, has lower-casing and loading arguments.
    for path in sorted(folder.glob("sentence_*_config.json")):
        settings = _json(path) or {}
        parts[path.name] = {key: value for key, value in settings.items() if value and key != "max_seq_length"}
    return parts


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as exc:
        raise ModelUnsupported(f"cannot read {path}: {exc}") from exc


def _json(path: Path) -> Any:
    try:
        return orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as exc:
        raise ModelUnsupported(f"cannot read {path}: {exc}") from exc
