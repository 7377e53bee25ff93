"""One thing that many threads use while another takes its place: the old one is closed by whoever used it last."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Closing(Protocol):
    def close(self) -> object: ...


T = TypeVar("T", bound=Closing)


class Shared(Generic[T]):
    """Holds the newest; empty before the first and after the last."""

    def __init__(self, first: T | None = None) -> None:
        self._lock = threading.Lock()
        self._users: dict[int, int] = {}
        self.newest = first

    @contextmanager
    def use(self) -> Iterator[T | None]:
        """The newest as of now, open until the block ends, whatever takes its place meanwhile."""
        with self._lock:
            one = self.newest
            self._users[id(one)] = self._users.get(id(one), 0) + 1
        try:
            yield one
        finally:
            with self._lock:
                self._users[id(one)] -= 1
                is_last = not self._users[id(one)]
                if is_last:
                    del self._users[id(one)]
                is_old = is_last and one is not self.newest
            if is_old and one is not None:
                one.close()

    def replace(self, new: T | None) -> None:
        with self._lock:
            old, self.newest = self.newest, new
            in_use = id(old) in self._users
        if old is not None and not in_use:
            old.close()
