"""A search that stays open. It shows what other processes write, and a new generation when that becomes live."""

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic

from chunksink.chunkbus.errors import ChunkBusError
from chunksink.chunkbus.shared_resource import Shared
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.errors import RebuildError
from chunksink.rebuild.run_records import RunRecord, last_update
from chunksink.rebuild.state import Generation, State
from chunksink.search.access import Access
from chunksink.search.answer import Answer, Surrounded
from chunksink.search.errors import InvalidQuestion
from chunksink.search.facets import contents
from chunksink.search.neighbours import get
from chunksink.search.query import search
from chunksink.search.query_vectors import QueryEncoder
from chunksink.search.question import Question
from chunksink.settings.config import Config
from chunksink.settings.errors import ConfigError
from chunksink.sinks.errors import SinkError
from chunksink.sinks.reader import FacetValue
from chunksink.views import View, open_view

_search_process: int | None = None
"""The process that has loaded a model or Chroma."""
SEARCH_ERRORS = (RebuildError, SinkError, EmbeddingsError, ChunkBusError, ConfigError, OSError)
"""The errors of a search that the operator can fix. Others are bugs, or mistakes in the query."""
_RETRY_SECONDS = 15.0
"""Seconds until a leg that could not be opened is tried again: each try delays one search."""


class LiveSearch:
    """Answers from the live generation, for any number of threads. The last user of an old view closes it."""

    def __init__(self, config: Config, *, every_seconds: float = 0.0, needed: Collection[str] | None = None) -> None:
        """Checks for changes by other processes at most once in `every_seconds`: reopening vectors takes
        a moment.

        `needed` names legs of a search (keyword, semantic, engine): sinks are opened, in the order of the
        configuration, until they offer all of these.
        """
        self.config = config
        self._needed = needed
        self._every_seconds = every_seconds
        self._queries = QueryEncoder(config.model_cache_path)
        self._update_lock = threading.Lock()
        self._view: Shared[View] = Shared()
        self._closed = False
        self._watch = _HomeWatch(config)
        self._checked_at = 0.0
        self._update: RunRecord | None = None
        self._opened_at = 0.0

    def search(self, question: Question, access: Access) -> Answer:
        """Raises NoGeneration if nothing was built yet."""
        with self._current() as view:
            answer = search(view.legs, question, access)
        if not answer.moved:  # every leg answered from the build of this view
            return answer
        with self._update_lock:
            if self._view.newest is view:  # else another thread has opened the new one
                self._open()
        with self._current() as view:
            return search(view.legs, question, access)

    def get(self, chunk_id: str, access: Access, context: int = 0, query: str = "") -> Surrounded | None:
        """One chunk by its id, with `context` chunks before and after it; None if `access` sees no such chunk. With a
        `query` the result marks its words."""
        with self._current() as view:
            return get(view.legs, access, chunk_id, context, query)

    def contents(self, fields: Sequence[str], access: Access, limit: int) -> Mapping[str, list[FacetValue]]:
        """The most frequent values of these fields, each with its number of sources."""
        with self._current() as view:
            return contents(view.legs, access, fields, limit)

    def embed_query(self, text: str) -> Vectors:
        """The vector of a query by the model of the live index. Raises InvalidQuestion if the index has no vectors."""
        with self._current() as view:
            if not view.generation.holds_vectors:
                raise InvalidQuestion("no build of this index has vectors: configure a sink with vectors, then sync")
            return self._queries.of(view.generation.model, view.generation.encoder)(text)

    def generation(self) -> Generation:
        with self._current() as view:
            return view.generation

    def updated_at(self) -> str:
        """When the last run that wrote the live index began, as far as this search has noticed."""
        with self._current() as view:
            return view.generation.created_at if self._update is None else self._update.started_at

    def close(self) -> None:
        """Close permanently. Searches under way are still answered."""
        self._closed = True
        with self._update_lock:
            self._view.close()
            self._watch.close()
        self._queries.close()

    @contextmanager
    def _current(self) -> Iterator[View]:
        global _search_process
        _require_own_process()
        self._follow_changes()
        with self._view.use() as view:
            if view is None:
                raise _closed()
            if view.legs.semantic is not None:
                _search_process = os.getpid()
            yield view

    def _follow_changes(self) -> None:
        """One thread checks for changes; the others use the current view."""
        if self._view.newest is not None and monotonic() - self._checked_at < self._every_seconds:
            return
        if not self._update_lock.acquire(blocking=self._view.newest is None):
            return
        try:
            self._update_view()
            self._checked_at = monotonic()
        except BaseException:  # the view does not show the change yet
            self._watch.forget()
            raise
        finally:
            self._update_lock.release()

    def _update_view(self) -> None:
        view = self._view.newest
        if view is None:
            self._open()
            return
        is_retry_due = bool(view.legs.unavailable) and monotonic() - self._opened_at >= _RETRY_SECONDS
        if not self._watch.has_changed() and not is_retry_due:
            return
        with State.existing(self.config.home_path) as state:
            live, projections = state.live(), state.projections()
        # A new run may have recreated a missing build.
        has_new_run = bool(view.legs.unavailable) and last_update(self.config.home_path) != self._update
        if is_retry_due or has_new_run or (live, projections) != (view.generation, view.projections):
            self._open()
            return
        try:
            update = last_update(self.config.home_path)  # read first: the refreshed view may be newer than this record
            view.refresh()
            self._update = update
        except SinkError:  # keep the old view until the next check
            self._watch.forget()

    def _open(self) -> None:
        if self._closed:
            raise _closed()
        # Both come before the view is opened, so that the next check notices later changes.
        self._watch.has_changed()
        update = last_update(self.config.home_path)
        self._view.replace(open_view(self.config, self._queries, self._needed))
        self._update, self._opened_at = update, monotonic()


def _require_own_process() -> None:
    """Raise in a fork of a process that has searched: a model or Chroma would wait forever for threads it lacks."""
    if _search_process not in (None, os.getpid()):
        raise RuntimeError(
            "this process was forked from one that had searched; models and Chroma do not survive a fork: "
            "start it with multiprocessing's spawn method, or search in the children only"
        )


def _closed() -> RuntimeError:
    return RuntimeError("this search is closed: open another one")


class _HomeWatch:
    """Notices in microseconds whether another process has written to `state.db` since the last check."""

    def __init__(self, config: Config) -> None:
        self._path = config.home_path / "state.db"
        self._db: sqlite3.Connection | None = None
        self._state: tuple[int, int] | None = None

    def has_changed(self) -> bool:
        """Also True if the records cannot be read: opening them reports the reason."""
        before, self._state = self._state, None
        with suppress(sqlite3.Error, OSError):
            file = self._path.stat().st_ino
            if self._db is None or before is None or before[0] != file:  # the first check, or a new file
                self.close()
                uri = f"{self._path.absolute().as_uri()}?mode=ro"
                self._db = sqlite3.connect(uri, uri=True, check_same_thread=False)
            (version,) = self._db.execute("pragma data_version").fetchone()
            self._state = file, version
        return self._state is None or self._state != before

    def forget(self) -> None:
        """The next call of `has_changed` returns True."""
        self._state = None

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
