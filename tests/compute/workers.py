"""Encoders for workers on Ray, opened there by name; and a home whose runs compute on Ray."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from msgspec import structs

from chunksink.chunkbus.storage import FolderStorage
from chunksink.compute import worker
from chunksink.compute.ray import RayCompute
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.session import Session, Stage
from chunksink.settings.ray import RayOptions
from tests.embeddings.helpers import HashEncoder
from tests.support.home import Home, Wrap

Opened = worker.OpenEncoder


def hashing(_settings: EncoderSettings, _model_cache: Path | None, _threads: int | None) -> HashEncoder:
    return HashEncoder(dimension=8)


def another_model(*_arguments: Any) -> HashEncoder:
    return HashEncoder(dimension=8, name="another")


def announced(folder: Path, *_arguments: Any) -> HashEncoder:
    """Write the number of this process to a file."""
    (folder / str(os.getpid())).touch()
    return HashEncoder(dimension=8)


class WaitingEncoder(HashEncoder):
    """Waits forever at one of the last texts."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        if "cat 100" in texts:
            Event().wait()
        return super().encode(texts)


def waiting(*_arguments: Any) -> HashEncoder:
    return WaitingEncoder(dimension=8)


class DyingEncoder(HashEncoder):
    """Kills its process at a certain text."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        if any("deadly" in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)


def dying(*_arguments: Any) -> HashEncoder:
    return DyingEncoder(dimension=8)


def dying_after_segment(folder: Path, *_arguments: Any) -> HashEncoder:
    """The first worker that writes a segment dies before it can return the receipt. Each worker records the texts that
    it has embedded."""
    real = worker.write_segment

    def write(storage: Any, info: Any, keys: Sequence[bytes], *more: Any) -> Any:
        receipt = real(storage, info, keys, *more)
        with (folder / "embedded").open("a") as file:
            file.writelines(f"{key.hex()}\n" for key in keys)
        try:
            (folder / "died").mkdir()
        except FileExistsError:
            return receipt
        os.kill(os.getpid(), signal.SIGKILL)
        return receipt

    worker.write_segment = write
    return HashEncoder(dimension=8)


def writing_elsewhere(folder: Path, *_arguments: Any) -> HashEncoder:
    """Simulates a machine where the same path is another folder."""
    worker.open_storage = lambda _place: FolderStorage(folder)
    return HashEncoder(dimension=8)


class RayHome(Home):
    """A home whose workers embed with `open_encoder`."""

    open_encoder: Opened = staticmethod(hashing)
    options = RayOptions(workers=2)

    def opening(self, function: Any, *arguments: Any) -> RayHome:
        self.open_encoder = partial(function, *arguments)
        return self

    @contextmanager
    def session(self, wrap: Wrap = lambda sink: sink, stage: Stage | None = None) -> Iterator[Session]:
        with super().session(wrap, stage) as session:
            config = structs.replace(session.config, engine="ray", ray=self.options)
            with closing(RayCompute(config, open_encoder=self.open_encoder)) as compute:
                session.intake.workers = compute.workers
                yield replace(session, config=config, compute=compute)
