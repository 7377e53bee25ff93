"""When `chunksink sync --watch` syncs: at once, after each commit, again after what may pass, and when another folder
lies where the manifests were.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from chunksink.chunkbus.layout import BusRoot

FIRST_WAIT_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
_ROUND_MILLISECONDS = 500


class Watch:
    """Each step of an iteration over it is a sync that is due; whoever made it says how it ended. Ctrl-C ends it."""

    def __init__(
        self, root: BusRoot, tell: Callable[[str], object], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._root = root
        self._tell = tell
        self._clock = clock
        self._seen: frozenset[tuple[object, ...]] = frozenset()
        self.settled()

    def settled(self) -> None:
        """Only another commit makes the next sync due."""
        self._wait = FIRST_WAIT_SECONDS
        self._next_try: float | None = None
        self._next_look: float | None = None

    def failed(self) -> float:
        """It may pass: the next sync is due in so many seconds, or with a commit before that."""
        seconds, self._wait = self._wait, min(2 * self._wait, LONGEST_WAIT_SECONDS)
        self._next_try, self._next_look = self._clock() + seconds, None
        return seconds

    def held(self) -> None:
        """Some partition is not whole: a chunks file may come without a commit, so any change makes a sync due."""
        self.settled()
        self._next_look = self._clock() + FIRST_WAIT_SECONDS

    def __iter__(self) -> Iterator[None]:
        self._root.manifests.mkdir(exist_ok=True)
        while True:
            folder = self._opened()
            try:  # while it is open, no other folder can get its inode
                yield from self._syncs(folder)
            finally:
                os.close(folder)

    def _opened(self) -> int:
        told = False
        while True:
            try:
                return os.open(self._root.manifests, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                if not told:
                    self._tell(f"{error.filename}: {error.strerror}; waiting for it, the index stays as it is")
                told = True
                time.sleep(_ROUND_MILLISECONDS / 1000)

    def _syncs(self, folder: int) -> Iterator[None]:
        """As long as this folder lies there."""
        from watchfiles import watch

        rounds = watch(
            self._root.manifests,
            watch_filter=None,  # what is filtered out would keep timeouts from coming
            debounce=_ROUND_MILLISECONDS,
            rust_timeout=_ROUND_MILLISECONDS,
            yield_on_timeout=True,
            recursive=False,
        )
        due = True  # from the first round on it watches: what is committed during the first sync is not missed
        with closing(rounds), suppress(FileNotFoundError):
            for changed in rounds:
                if not self._lies_there(folder):
                    return
                if due or any(_is_commit(path) for _, path in changed) or self._is_due():
                    self._seen = self._files()
                    yield
                    due = False

    def _lies_there(self, folder: int) -> bool:
        manifests = self._root.manifests
        try:
            same = os.path.samestat(manifests.stat(), os.fstat(folder))
        except OSError:
            return False
        if not same:
            self._tell(f"{manifests} is another folder now; watching that one")
        return same

    def _is_due(self) -> bool:
        now = self._clock()
        if self._next_look is not None and now >= self._next_look:
            self._next_look = now + FIRST_WAIT_SECONDS
            return self._files() != self._seen
        return self._next_try is not None and now >= self._next_try

    def _files(self) -> frozenset[tuple[object, ...]]:
        """What tells the files of the bus from others under the same names."""
        found: set[tuple[object, ...]] = set()
        for folder in (self._root.canonical, self._root.manifests):
            with suppress(OSError), os.scandir(folder) as entries:  # gone: then it is another set as well
                for entry in entries:
                    with suppress(OSError):
                        stat = entry.stat()
                        found.add((entry.path, stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return frozenset(found)


def _is_commit(path: str) -> bool:
    name = Path(path).name
    return name.endswith(".manifest.json") and not name.startswith(".")
