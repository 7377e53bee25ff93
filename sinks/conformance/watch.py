"""A reader that polls while somebody else writes."""

import threading
from typing import Any

from chunksink.sinks.conformance.samples import vector
from chunksink.sinks.reader import Filter


class Watch(threading.Thread):
    """Asks for one family all the time."""

    def __init__(self, reader: Any, parent_id: str, *, nearest: bool) -> None:
        super().__init__(daemon=True)
        self._reader = reader
        self._nearest = nearest
        self._filters = [Filter("parent_id", any_of=(parent_id,))]
        self._done = threading.Event()
        self._asked = threading.Condition()
        self._error: BaseException | None = None
        self.polls = 0
        self.absent = 0

    def run(self) -> None:
        try:
            while not self._done.is_set():
                self._poll()
                with self._asked:
                    self.polls += 1
                    self._asked.notify_all()
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
            with self._asked:
                self._asked.notify_all()
            self._reader.close()

    def _poll(self) -> None:
        if self._nearest:
            hits = self._reader.query(vector("round 3 chunk 0"), 5, self._filters)
        else:
            hits = self._reader.search("", 5, self._filters)
        self.absent += not hits

    def wait_for_more(self) -> None:
        with self._asked:
            seen = self.polls
            self._asked.wait_for(lambda: self.polls > seen or self._done.is_set(), timeout=30)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self._done.set()
        self.join(timeout=30)
        if self._error is not None:
            raise self._error
