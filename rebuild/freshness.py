"""How far the live index is behind the chunks, and how long ago the engines were compared with them.

Made from the status of a home, the records of its runs, and the times of the files of the bus. Calls no engine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import time

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.run_records import UPDATES, RunRecord, runs_of
from chunksink.rebuild.status import HomeStatus

_COMPLETE = ("ok", "refused")
"""Results of an update that confirmed every change. Refused documents are reported by the status."""
LOCKED_OUT = ("HomeLocked", "IngestBusy")
"""Errors of a run that met another one. They are no failure of the index."""


@dataclass(frozen=True)
class Freshness:
    """Ages are in seconds, counted from the start of a run. None: there was no such run."""

    lag: float | None
    """Age of the oldest change that the live index has not confirmed; 0 if there is none, None if the chunks are
    missing. The time of a change is the commit of its partition, or the first run that met it. It is never earlier than
    the last complete update."""
    updated: float | None
    """Age of the last sync, repair or rebuild that confirmed every change."""
    verified: float | None
    """Age of the last `verify` with a verdict."""
    verdict: str | None
    """`ok` or `drift`."""
    deep_verified: float | None
    deep_verdict: str | None
    has_drift: bool
    """A `verify` found differences, and no repair, rebuild or successful `verify` of the same depth followed."""
    failed_run: RunRecord | None
    """The last run that read or wrote the index, if it failed; else the last `ingest`, if that failed. A sync does not
    make up for a failed ingest."""


def freshness(status: HomeStatus, home: Path, root: BusRoot, now: float | None = None) -> Freshness:
    """`now` is in seconds since 1970."""
    at = time() if now is None else now
    updates = list(_since_complete_update(home))
    complete = updates.pop() if updates and _is_complete(updates[-1]) else None
    verdicts = [run for run in runs_of(home, "verify") if run.status in ("ok", "drift")]
    last, deep = next(iter(verdicts), None), next((run for run in verdicts if run.facts.get("deep")), None)
    return Freshness(
        lag=_lag(status, root, complete, updates, at),
        updated=_age(complete, at),
        verified=_age(last, at),
        verdict=last.status if last else None,
        deep_verified=_age(deep, at),
        deep_verdict=deep.status if deep else None,
        has_drift=_has_drift(home),
        failed_run=_failed_run(home),
    )


def _lag(
    status: HomeStatus, root: BusRoot, complete: RunRecord | None, later: list[RunRecord], at: float
) -> float | None:
    if status.is_current is None:
        return None
    if status.is_current:
        return 0.0
    confirmed = _time(complete.started_at if complete else status.live.created_at)
    changes = [_time(run.started_at) for run in later]
    changes += [changed for key in status.bus.pending if (changed := root.changed_at(key)) is not None]
    return max(0.0, at - max(confirmed, min(changes, default=confirmed)))


def _since_complete_update(home: Path) -> Iterator[RunRecord]:
    """Runs that met a change, newest first, and at the end the last complete update, if it is recorded."""
    for run in runs_of(home, "ingest", *UPDATES):
        is_ingest = run.command == "ingest"
        if run.error not in LOCKED_OUT and (not is_ingest or run.facts.get("report", {}).get("partitions")):
            yield run
        if _is_complete(run):
            return


def _is_complete(run: RunRecord) -> bool:
    return run.command in UPDATES and run.status in _COMPLETE


def _has_drift(home: Path) -> bool:
    is_cleared = False
    for run in runs_of(home, "verify", "repair", "rebuild"):
        is_deep = bool(run.facts.get("deep"))
        if _is_complete(run) or (run.status == "ok" and is_deep):
            return False
        if run.status == "drift" and (is_deep or not is_cleared):
            return True
        is_cleared = is_cleared or run.status == "ok"
    return False


def _failed_run(home: Path) -> RunRecord | None:
    last = (_last_result(home, "verify", *UPDATES), _last_result(home, "ingest"))
    return next((run for run in last if run is not None and run.status == "failed"), None)


def _last_result(home: Path, *commands: str) -> RunRecord | None:
    """The last of these runs that was neither stopped nor locked out."""
    for run in runs_of(home, *commands):
        if run.finished and run.status != "interrupted" and run.error not in LOCKED_OUT:
            return run
    return None


def _age(run: RunRecord | None, at: float) -> float | None:
    return None if run is None else max(0.0, at - _time(run.started_at))


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
