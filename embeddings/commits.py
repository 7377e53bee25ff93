"""Commits computed vectors every few seconds, even while the encoder is busy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

from chunksink.embeddings.errors import CacheBusy

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Computed:
    """A vector that is not yet committed."""

    key: bytes
    length: int
    since: float


class Committer:
    """Commits from a separate thread while the encoder computes.

    If a commit fails there, the caller's thread repeats it and gets the error.
    """

    def __init__(self, commit: Callable[[Sequence[Computed]], None], seconds: float) -> None:
        self._commit = commit
        self._seconds = seconds
        self._pending: list[Computed] = []
        self._committing = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="chunksink-commit", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        try:
            self._commit_all()
        finally:
            self._thread.join()

    def add(self, key: bytes, length: int) -> None:
        self._pending.append(Computed(key, length, time.monotonic()))

    def commit_if_due(self) -> None:
        oldest = self._pending[:1]  # the other thread may empty the list
        if oldest and time.monotonic() - oldest[0].since >= self._seconds:
            self._commit_all()

    def _commit_all(self) -> None:
        with self._committing:
            if pending := self._pending[:]:
                self._commit(pending)
                del self._pending[: len(pending)]

    def _watch(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            try:
                self.commit_if_due()
            except CacheBusy:
                continue
            except Exception:  # if it persists, the caller's next commit raises it
                return
