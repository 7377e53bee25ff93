"""Graphs of models for OpenVINO. Each is made once, checked against the model, and kept in the model cache, a folder
that all homes can share.

A graph has its own folder in the model cache. Its file graph.json records the digest of the model and the digests of
the graph's files. The folder is made under a temporary name, and renamed when it is complete. A graph that is damaged,
or belongs to another model, is made again.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import filelock
import msgspec

from chunksink.embeddings.encoder import PrecisionRequest
from chunksink.embeddings.errors import GraphUnavailable
from chunksink.embeddings.fingerprint import digest_of_files, file_digests
from chunksink.embeddings.precision import choose_device, lacks_avx2
from chunksink.embeddings.resolve import ResolvedModel, default_model_cache
from chunksink.embeddings.tokens import ModelForm

RECORD = "graph.json"
_REFUSED_SUFFIX = ".refused"
REFUSED = 3
"""The exit code of `convert` if no graph of the model is possible. The last line of its standard error is the
reason."""
_FORMAT = 1
_MAX_SECONDS = 1800
_NO_AVX2 = "this processor lacks AVX2"
_log = logging.getLogger("chunksink.embeddings")


class Graph(msgspec.Struct, frozen=True):
    """The record of a graph."""

    model: str
    """The digest of the model's files."""
    form: ModelForm
    files: dict[str, str] = {}
    """The digest of each file of the graph."""
    format: int = _FORMAT


class _Refusal(msgspec.Struct, frozen=True):
    reason: str
    libraries: dict[str, str]
    format: int = _FORMAT


@dataclass(frozen=True, slots=True)
class ExpectedRuntime:
    """The runtime that should run a model on this machine. Loading the model may show that it cannot."""

    prepared: bool = False
    """Whether OpenVINO's graph exists, so that the model loads at once."""
    reason: str = ""
    """Why OpenVINO does not run the model; empty if it does."""


def expected_runtime(model: ResolvedModel, precision: PrecisionRequest, model_cache: Path | None) -> ExpectedRuntime:
    """Loads no model and makes no graph."""
    model_cache = model_cache or default_model_cache()
    if choose_device() != "cpu":
        return ExpectedRuntime(reason="on the GPU")
    if lacks_avx2():
        return ExpectedRuntime(reason=_NO_AVX2)
    digest = digest_of_files(file_digests(model.folder, model_cache))
    folder = _folder_of(digest, model_cache, precision == "int8")
    if _form_in(folder, digest, model_cache) is not None:
        return ExpectedRuntime(prepared=True)
    place = next(path for path in (model_cache, *model_cache.absolute().parents) if path.exists())
    is_writable = place.is_dir() and os.access(place, os.W_OK)
    unwritable = "" if is_writable else f"the model cache {model_cache} cannot be written"
    return ExpectedRuntime(reason=_refusal(folder) or unwritable)


def graph_of(
    model: ResolvedModel, digest: str, model_cache: Path, *, quantized: bool = False, renew: bool = False
) -> tuple[Path, ModelForm]:
    """The folder of a model's graph, and the model's form. Makes a missing graph; with `renew`, makes it again.

    `digest` is that of the model's files. A refused model is tried again only with other versions of the libraries.
    """
    if lacks_avx2():
        raise GraphUnavailable(_NO_AVX2)
    folder = _folder_of(digest, model_cache, quantized)
    try:
        if renew:
            (folder / RECORD).unlink(missing_ok=True)
        form = _form_in(folder, digest, model_cache)
        if form is None:
            source = graph_of(model, digest, model_cache, renew=renew)[0] if quantized else None
            model_cache.mkdir(parents=True, exist_ok=True)
            if reason := _refusal(folder):
                raise GraphUnavailable(reason)
            _log.info("preparing %s for this machine, only once; a small model takes about 15 seconds", model.name)
            with filelock.FileLock(folder.with_suffix(".lock"), timeout=_MAX_SECONDS):
                form = _form_in(folder, digest, model_cache) or _make(model, digest, folder, source)
    except filelock.Timeout as error:
        raise GraphUnavailable("another process has been making its graph for half an hour") from error
    except OSError as error:
        raise GraphUnavailable(f"the model cache {model_cache} cannot be written: {error.strerror or error}") from error
    return folder, form


def _folder_of(digest: str, model_cache: Path, quantized: bool) -> Path:
    return model_cache / f"{digest[:40]}-{'int8' if quantized else 'float32'}"


def _form_in(folder: Path, digest: str, model_cache: Path) -> ModelForm | None:
    """The form in the record of a graph; None if the graph is missing, damaged or of another model."""
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=Graph)
    except (OSError, msgspec.MsgspecError):
        return None
    found = file_digests(folder, model_cache)
    found.pop(RECORD, None)
    is_whole = (record.format, record.model, record.files) == (_FORMAT, digest, found)
    return record.form if is_whole else None


def _make(model: ResolvedModel, digest: str, folder: Path, source: Path | None) -> ModelForm:
    """Runs `convert` in a separate process, so that a process that runs the graph needs no torch."""
    for abandoned in folder.parent.glob(f".{folder.name}-*"):  # of a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    unfinished = folder.with_name(f".{folder.name}-{os.getpid()}")
    try:
        unfinished.mkdir()
        arguments = [str(os.getpid()), str(model.folder), str(unfinished), *([str(source)] if source else [])]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "chunksink.embeddings.convert", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MAX_SECONDS,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        if done.returncode:
            _refuse(done, folder)
        form = msgspec.json.decode((unfinished / RECORD).read_bytes(), type=ModelForm)
        (unfinished / RECORD).unlink()
        record = Graph(digest, form, file_digests(unfinished))
        (unfinished / RECORD).write_bytes(msgspec.json.encode(record))
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)
        folder.with_suffix(_REFUSED_SUFFIX).unlink(missing_ok=True)
    except subprocess.TimeoutExpired as error:
        raise GraphUnavailable("making its graph took more than half an hour") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return form


def _refuse(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    """Raises `GraphUnavailable`. Records the reason if the model was refused; any other failure may be transient."""
    code = done.returncode
    killed = f"was killed by signal {-code}, perhaps because memory ran out"
    ended = f"the process that makes its graph {killed if code < 0 else f'ended with exit code {code}'}"
    reason = ended if code < 0 else (done.stderr.strip() or ended).splitlines()[-1]
    if code == REFUSED:
        refusal = _Refusal(reason, library_versions())
        folder.with_suffix(_REFUSED_SUFFIX).write_bytes(msgspec.json.encode(refusal))
    raise GraphUnavailable(reason)


def _refusal(folder: Path) -> str | None:
    """The recorded reason why these versions of the libraries cannot make the graph; None without such a record."""
    try:
        refusal = msgspec.json.decode(folder.with_suffix(_REFUSED_SUFFIX).read_bytes(), type=_Refusal)
    except (OSError, msgspec.MsgspecError):
        return None
    return refusal.reason if (refusal.libraries, refusal.format) == (library_versions(), _FORMAT) else None


def library_versions() -> dict[str, str]:
    """The versions of all libraries that affect a model's vectors."""
    versions = {}
    for library in ("openvino", "torch", "sentence-transformers", "transformers", "tokenizers", "nncf"):
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions
