"""Graphs of models for OpenVINO: each is made once, checked against the model, and kept for all homes of a user.

Each graph has a folder below the model cache, with a record of its digests. The folder is made under a temporary name
and renamed when it is complete. A graph that is damaged or does not match its model is made again.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import msgspec

from chunksink.embeddings.errors import GraphUnavailable
from chunksink.embeddings.fingerprint import file_digests
from chunksink.embeddings.precision import lacks_avx2
from chunksink.embeddings.resolve import ResolvedModel
from chunksink.embeddings.runtime import ModelForm

RECORD = "graph.json"
_REFUSED_SUFFIX = ".refused"
REFUSED = 3
"""The exit code of `convert` for a model of which no graph can be made; its last line is the reason."""
_FORMAT = 1
_LONGEST_SECONDS = 1800
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


def graph_of(
    model: ResolvedModel, digest: str, cache: Path, libraries: dict[str, str], *, quantized: bool = False
) -> tuple[Path, ModelForm]:
    """The folder of a model's graph, made where there is none yet, and the model's form.

    `digest` is that of the model's files. A model of which no graph can be made is asked again with other `libraries`.
    """
    if lacks_avx2():
        raise GraphUnavailable(_NO_AVX2)
    folder = _place(digest, cache, quantized)
    form = _kept(folder, digest, cache)
    if form is None:
        source = None if not quantized else graph_of(model, digest, cache, libraries)[0]
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with _making(folder, model.name):
                form = _kept(folder, digest, cache) or _make(model, digest, folder, source, libraries)
        except filelock.Timeout as error:
            raise GraphUnavailable("another process has been making it for half an hour") from error
        except OSError as error:
            raise GraphUnavailable(f"the model cache {cache} cannot be written: {error.strerror or error}") from error
    return folder, form


@contextmanager
def _making(folder: Path, name: str) -> Iterator[None]:
    """One process at a time makes a graph."""
    lock = filelock.FileLock(folder.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        _log.info("another process is preparing %s; waiting for it", name)
        lock.acquire(timeout=_LONGEST_SECONDS)
    try:
        yield
    finally:
        lock.release()


def remove_graph(folder: Path, model: str) -> None:
    """Marks a graph as damaged, so that `graph_of` makes another one."""
    with _making(folder, model):
        (folder / RECORD).unlink(missing_ok=True)


def graph_problem(digest: str, cache: Path, libraries: dict[str, str], *, quantized: bool) -> str | None:
    """Why `graph_of` would have to make the graph, or could not; "" where it only has not been made yet. None where it
    is there."""
    if lacks_avx2():
        return _NO_AVX2
    folder = _place(digest, cache, quantized)
    if _kept(folder, digest, cache) is not None:
        return None
    refusal = _refusal(folder)
    if refusal is not None and (refusal.libraries, refusal.format) == (libraries, _FORMAT):
        return refusal.reason
    place = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    is_writable = place.is_dir() and os.access(place, os.W_OK)
    return "" if is_writable else f"the model cache {cache} cannot be written"


def _place(digest: str, cache: Path, quantized: bool) -> Path:
    return cache / f"{digest[:40]}-{'int8' if quantized else 'float32'}"


def _kept(folder: Path, digest: str, cache: Path) -> ModelForm | None:
    try:
        record = msgspec.json.decode((folder / RECORD).read_bytes(), type=Graph)
    except (OSError, msgspec.MsgspecError):
        return None
    found = file_digests(folder, cache)
    found.pop(RECORD, None)
    is_whole = (record.format, record.model, record.files) == (_FORMAT, digest, found)
    return record.form if is_whole else None


def _make(model: ResolvedModel, digest: str, folder: Path, source: Path | None, libraries: dict[str, str]) -> ModelForm:
    """In a process of its own: torch and sentence-transformers are needed here only."""
    if (before := _refusal(folder)) and (before.libraries, before.format) == (libraries, _FORMAT):
        raise GraphUnavailable(before.reason)
    for abandoned in folder.parent.glob(f".{folder.name}-*"):  # of a process that was killed
        shutil.rmtree(abandoned, ignore_errors=True)
    making = folder.with_name(f".{folder.name}-{os.getpid()}")
    _log.info("preparing %s for this machine, once: it takes 15 seconds for a small model", model.name)
    try:
        making.mkdir()
        arguments = [str(model.folder), str(making), *([str(source)] if source else [])]
        with _lifeline() as stdin:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "chunksink.embeddings.convert", *arguments],
                stdin=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST_SECONDS,
                env=os.environ | {"HF_HUB_OFFLINE": "1"},
            )
        if done.returncode:
            _refuse(done, folder, libraries)
        form = msgspec.json.decode((making / RECORD).read_bytes(), type=ModelForm)
        (making / RECORD).unlink()
        record = Graph(digest, form, file_digests(making))
        (making / RECORD).write_bytes(msgspec.json.encode(record))
        shutil.rmtree(folder, ignore_errors=True)
        making.rename(folder)
        folder.with_suffix(_REFUSED_SUFFIX).unlink(missing_ok=True)
    except subprocess.TimeoutExpired as error:
        raise GraphUnavailable("making it took more than half an hour") from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return form


@contextmanager
def _lifeline() -> Iterator[int]:
    """A pipe to read from, which ends when this process does."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def _refuse(done: subprocess.CompletedProcess[str], folder: Path, libraries: dict[str, str]) -> None:
    """A refusal is kept; any other end of the process may have a reason that passes."""
    ended = f"its process ended with {done.returncode}, as when memory is full"
    reason = ended if done.returncode < 0 else (done.stderr.strip() or ended).splitlines()[-1]
    if done.returncode == REFUSED:
        folder.with_suffix(_REFUSED_SUFFIX).write_bytes(msgspec.json.encode(_Refusal(reason, libraries)))
    raise GraphUnavailable(reason)


def _refusal(folder: Path) -> _Refusal | None:
    try:
        return msgspec.json.decode(folder.with_suffix(_REFUSED_SUFFIX).read_bytes(), type=_Refusal)
    except (OSError, msgspec.MsgspecError):
        return None
