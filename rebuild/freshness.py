"""How far the live index is behind the chunks, and how long ago the engines were compared with them.

Made from the status of a home, the records of its runs, and the times of the files of the bus. Calls no engine.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from time import time

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.run_records import UPDATES, RunRecord, past_runs
from chunksink.rebuild.status import HomeStatus

_COMPLETE = ("ok", "refused")
"""Results of an update that confirmed every change. Refused documents are reported by the status."""
NO_DRIFT = ("ok", "behind")
"""Results of a `verify` that compared all chunks and found no differences, or only changes that waited for a sync. With
the result `held`, some chunks could not be compared, so it is no proof."""
LOCKED_OUT = ("HomeLocked", "IngestBusy")
"""Errors of a run that found the home in use."""
NO_FAILURES = (*LOCKED_OUT, "NothingBuilt", "OtherPlan", "UnknownPlan")
"""Errors of a run that do not count as failures of the index, since it did nothing."""


@dataclass(frozen=True)
class Freshness:
    """Ages are in seconds. All but `lag` are counted from the start of a run, and are None if there was no such run."""

    lag: float | None
    """Age of the oldest change that the live index has not confirmed; 0 if there is none, None if the chunks are
    missing. Its time is estimated: a change of a pending partition has the time of its file, any other change the
    start of the first run that read it. Changes are never dated before the start of the last complete update."""
    updated: float | None
    """Age of the last sync, repair or rebuild that confirmed every change."""
    verified: float | None
    """Age of the last `verify` of the live builds that compared all chunks or found drift."""
    verdict: str | None
    """`ok`, `behind` or `drift`."""
    deep_verified: float | None
    deep_verdict: str | None
    has_drift: bool
    """A `verify` found a sink that still has no build, or differences in a build that is still live, and they may still
    exist. A later `verify` of at least the same depth that succeeds shows that they are gone. Scans and complete rounds
    of spot checks show it too, unless the differences may be in vectors, or the build has sources that are too large
    for spot checks."""
    failed_run: RunRecord | None
    """The last verify, sync, repair or rebuild, if it failed; else the last ingest, if it failed."""


def freshness(status: HomeStatus, home: Path, root: BusRoot, now: float | None = None) -> Freshness:
    """`now` is in seconds since 1970."""
    at = time() if now is None else now
    complete, later = _updates(home)
    results = (run for run in past_runs(home, "verify") if run.status in (*NO_DRIFT, "drift"))
    verdicts = [run for run in results if status.is_checked_by(run)]
    last, deep = next(iter(verdicts), None), next((run for run in verdicts if run.facts.get("deep")), None)
    return Freshness(
        lag=_lag(status, root, complete, later, at),
        updated=_age(complete, at),
        verified=_age(last, at),
        verdict=last.status if last else None,
        deep_verified=_age(deep, at),
        deep_verdict=deep.status if deep else None,
        has_drift=has_drift(status, home),
        failed_run=failed_run(home),
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


def _updates(home: Path) -> tuple[RunRecord | None, list[RunRecord]]:
    """The last complete update, and later runs that read a change."""
    later: list[RunRecord] = []
    for run in past_runs(home, "ingest", *UPDATES):
        if run.command in UPDATES and run.status in _COMPLETE:
            return run, later
        changed = run.command != "ingest" or run.facts.get("report", {}).get("partitions")
        if changed and run.error not in LOCKED_OUT:
            later.append(run)
    return None, later


def has_drift(status: HomeStatus, home: Path) -> bool:
    """See `Freshness.has_drift`."""
    is_verified = False  # whether the loop, which goes back in time, has passed a successful `verify` without vectors
    for run in past_runs(home, "verify"):
        is_deep = bool(run.facts.get("deep"))
        if run.status in NO_DRIFT and status.is_checked_by(run):
            if is_deep:
                return False
            is_verified = True
        elif run.status == "drift" and (is_deep or not is_verified) and _may_persist(status, run):
            return True
    return False


def _may_persist(status: HomeStatus, verify: RunRecord) -> bool:
    """Whether differences that this run found may still exist. Syncs compare neither vectors nor very large sources."""
    ended = _time(verify.started_at) + (verify.seconds or 0)
    builds = {name: sink.build for name, sink in status.sinks.items()} | dict.fromkeys(status.unbuilt)
    for name, _ in verify.facts.get("drifted", {}).items() & builds.items():
        found, sink = verify.facts["sinks"].get(name, {}), status.sinks.get(name)
        in_vectors = verify.facts.get("deep") and (found.get("changed") or found.get("unjudged"))
        since = None if sink is None or sink.coverage.leaves_out else sink.coverage.compared_since
        if in_vectors or since is None or _time(since) < ended:
            return True
    return False


def failed_run(home: Path) -> RunRecord | None:
    """See `Freshness.failed_run`."""
    last = (_last_result(home, "verify", *UPDATES), _last_result(home, "ingest"))
    return next((run for run in last if run is not None and run.status == "failed"), None)


def _last_result(home: Path, *commands: str) -> RunRecord | None:
    """The last of these runs that ended, except those that were interrupted or did nothing (`NO_FAILURES`)."""
    for run in past_runs(home, *commands):
        if run.finished and run.status != "interrupted" and run.error not in NO_FAILURES:
            return run
    return None


def _age(run: RunRecord | None, at: float) -> float | None:
    return None if run is None else max(0.0, at - _time(run.started_at))


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
