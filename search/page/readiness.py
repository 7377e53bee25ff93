"""Readiness: whether searches work, why they fail, and which legs are unavailable."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from chunksink.search.access import EVERYTHING
from chunksink.search.page.security import note_bug
from chunksink.search.page.site import Site
from chunksink.search.page.workers import Workers
from chunksink.search.question import Question

_FRESH_SECONDS = 2.0
_PATIENCE_SECONDS = 1.0
_MAX_SECONDS = 15.0
"""A search that takes longer than this counts as unavailable."""

REASONS = ("starting", "no_index", "no_answer", "timeout", "error")


@dataclass(frozen=True)
class Health:
    """Shown to everybody, so it contains no messages and no names."""

    status: str
    reason: str | None = None
    """Why searches fail: one of `REASONS`."""
    unavailable: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        return 200 if self.status in ("ok", "degraded") else 503


class Readiness:
    """The result of a real search, repeated at most every two seconds. The first search loads the model, which takes
    seconds; until then the status is `starting`."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._workers = Workers(threads=1, max_waiting=1, seconds=600)
        self._asking: asyncio.Task[Health] | None = None
        self._latest = Health("starting", "starting")
        self._began = 0.0
        self._at = 0.0

    async def now(self) -> Health:
        self.begin()
        assert self._asking is not None
        await asyncio.wait({self._asking}, timeout=_PATIENCE_SECONDS)
        if self._asking.done():
            return self._asking.result()
        if self._latest.status != "starting" and monotonic() - self._began > _MAX_SECONDS:
            return Health("unavailable", "timeout")
        return self._latest

    def begin(self) -> None:
        """Called on the event loop."""
        if self._asking is None or (self._asking.done() and monotonic() - self._at > _FRESH_SECONDS):
            self._began = monotonic()
            self._asking = asyncio.create_task(self._ask())

    def close(self) -> None:
        self._workers.close()

    async def _ask(self) -> Health:
        try:
            self._latest = await self._workers.do(self._search)
        except Exception as error:
            note_bug("/readyz", error)
            self._latest = Health("unavailable", "error")
        self._at = monotonic()
        return self._latest

    def _search(self) -> Health:
        try:
            answer = self._site.ask(Question("ready", limit=1), EVERYTHING)
        except self._site.unready as error:
            return Health("unavailable", "no_index" if isinstance(error, self._site.unbuilt) else "error")
        failed = tuple(sorted(answer.unavailable))
        if not answer.answered:
            return Health("unavailable", "no_answer", failed)
        return Health("degraded" if failed else "ok", unavailable=failed)
