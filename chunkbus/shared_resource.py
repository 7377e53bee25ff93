"""A replaceable resource for many threads: a replaced one is closed when its last user is done."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> object: ...


T = TypeVar("T", bound=Closable)


class Shared(Generic[T]):
    """Holds the newest resource in `newest`, which is None before the first one and after `close`."""

    def __init__(self, first: T | None = None) -> None:
        self._lock = threading.Lock()
        self._users: dict[int, int] = {}
        self._closed = False
        self.newest = first

    @contextmanager
    def use(self) -> Iterator[T | None]:
        """The newest resource, which stays open until the block ends, even if it is replaced meanwhile."""
        with self._lock:
            one = self.newest
            self._users[id(one)] = self._users.get(id(one), 0) + 1
        try:
            yield one
        finally:
            with self._lock:
                self._users[id(one)] -= 1
                is_unused = self._users[id(one)] == 0
                if is_unused:
                    del self._users[id(one)]
                is_replaced = one is not self.newest
            if is_unused and is_replaced and one is not None:
                one.close()

    def replace(self, new: T) -> None:
        with self._lock:
            is_closed = self._closed
            unneeded = new if is_closed else self._put(new)
        if unneeded is not None:
            unneeded.close()
        if is_closed:
            raise RuntimeError("the resource has been closed: open a new one")

    def close(self) -> None:
        """Closes it permanently. May be called twice."""
        with self._lock:
            self._closed = True
            old = self._put(None)
        if old is not None:
            old.close()

    def _put(self, new: T | None) -> T | None:
        """Returns the old resource if no thread uses it."""
        old, self.newest = self.newest, new
        return None if id(old) in self._users else old
