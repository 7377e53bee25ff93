"""Keeps the encoder of a run loaded for the next run of the same process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from chunksink.embeddings.encoder import Encoder
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.fingerprint import signature_of_files
from chunksink.embeddings.resolve import resolve_model
from chunksink.embeddings.settings import EncoderSettings, open_encoder, settled

OpenEncoder = Callable[[EncoderSettings], Encoder]


@dataclass(frozen=True, eq=False)
class _Loaded:
    encoder: Encoder
    settings: tuple[EncoderSettings, EncoderSettings]
    """The settings that opened it, and their `settled` form, which a build records. A request may have either."""
    files: str
    """The signature of the model's files before it was loaded."""
    process: int
    """The process that has its threads: they do not survive a fork."""


class EncoderPool:
    """Keeps one idle encoder, that of the last run. Two runs never use the same encoder at the same time.

    A kept encoder is used again for the same settings, unless a file of its model was written or replaced. The encoder
    of an endpoint is not kept, because its model can change unnoticed.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: _Loaded | None = None

    @contextmanager
    def lend(self, model_cache: Path | None) -> Iterator[OpenEncoder]:
        """A function that opens the encoders of one run. They must not be used after the block. Raises RuntimeError in
        a process forked from one that keeps an encoder here."""
        kept = self._idle
        if kept is not None and kept.process != os.getpid():
            raise RuntimeError(
                "this process was forked from one that had loaded a model, which does not survive a fork: start it "
                "with multiprocessing's spawn method, or use the index in the children only"
            )
        opened: list[_Loaded] = []

        def open_for_run(settings: EncoderSettings) -> Encoder:
            files = _files_of(settings)
            loaded = self._take()
            if loaded is not None and (settings not in loaded.settings or loaded.files != files):
                loaded.encoder.close()
                loaded = None
            if loaded is None:  # a kept one is closed by now: two might not fit into memory
                encoder = open_encoder(settings, model_cache=model_cache)
                loaded = _Loaded(encoder, (settings, settled(settings, encoder)), files, os.getpid())
            opened.append(loaded)
            return loaded.encoder

        try:
            yield open_for_run
        finally:
            for loaded in opened:
                self._keep(loaded)

    def close(self) -> None:
        """Closes the kept encoder. The next run opens a new one."""
        loaded = self._take()
        if loaded is not None:
            loaded.encoder.close()

    def _take(self) -> _Loaded | None:
        """Takes the kept encoder out of the pool; None if this process has none."""
        with self._lock:
            loaded, self._idle = self._idle, None
        return loaded if loaded is not None and loaded.process == os.getpid() else None

    def _keep(self, used: _Loaded) -> None:
        """Keeps this encoder and closes the previous one. Closes this one if it cannot be reused."""
        unneeded: _Loaded | None = used
        with self._lock:
            if used.files:
                unneeded, self._idle = self._idle, used
        if unneeded is not None and unneeded.process == os.getpid():
            unneeded.encoder.close()


def _files_of(settings: EncoderSettings) -> str:
    """The signature of a model's files; "" if there are none, or if a change might go unnoticed."""
    if settings.endpoint is not None:
        return ""
    try:
        folder = resolve_model(settings.model, network=False).folder
    except ModelUnavailable:
        return ""
    return signature_of_files(folder) or ""
