"""A failing file system: the n-th call fails, or all from then on, or the process dies at it."""

import errno
import io
import os
from collections.abc import Callable, Collection
from typing import Any

import pytest

CALLS = ("open", "write", "fsync", "replace", "rename", "unlink")


def fail(call: str) -> None:
    raise OSError(errno.EIO, f"made to fail at {call}")


class Faults:
    """Counts calls of these names together. Makes the n-th fail, or acts instead of it."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        fail_at: int,
        *,
        for_good: bool = False,
        names: Collection[str] = CALLS,
        act: Callable[[str], object] = fail,
    ) -> None:
        self.calls: list[str] = []
        self._fail_at = fail_at
        self._for_good = for_good
        self._names = names
        self._act = act
        self._open = io.open
        monkeypatch.setattr(io, "open", self._open_file)
        for name in ("open", "fsync", "replace", "rename", "unlink"):
            monkeypatch.setattr(os, name, self._guard(name, getattr(os, name)))

    @property
    def struck(self) -> bool:
        return len(self.calls) >= self._fail_at

    def strike(self, call: str) -> None:
        if call not in self._names:
            return
        self.calls.append(call)
        number = len(self.calls)
        if number == self._fail_at or (self._for_good and number > self._fail_at):
            self._act(f"call {number}, {call}")

    def _guard(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **options: Any) -> Any:
            if name != "open" or not _is_probe(*arguments):
                self.strike(name)
            return function(*arguments, **options)

        return guarded

    def _open_file(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        self.strike("open")
        if mode in ("xb", "wb"):
            return io.BufferedWriter(_FailingFile(file, mode, self))
        return self._open(file, mode, *arguments, **options)


def _is_probe(_path: Any, flags: int = 0, *_mode: Any) -> bool:
    """filelock probes whether the folder supports unnamed files; a failure has no effect."""
    return flags & os.O_TMPFILE == os.O_TMPFILE


class _FailingFile(io.FileIO):
    """Writes half of the data before it fails, as a full disk does."""

    def __init__(self, file: Any, mode: str, faults: Faults) -> None:
        super().__init__(file, mode)
        self._faults = faults

    def write(self, data: Any, /) -> int:
        try:
            self._faults.strike("write")
        except OSError:
            super().write(bytes(data)[: len(data) // 2])
            raise
        return super().write(data) or 0
