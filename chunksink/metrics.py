"""Metrics for Prometheus: the state of a home, read when it is scraped, and the searches that `serve` answers.

Labels have few values: sinks, stages, commands, modes. No metric contains a text or the name of a source or tenant.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic, time

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from chunksink import __version__
from chunksink.chunkbus.threads import in_daemon_thread
from chunksink.live import SEARCH_ERRORS
from chunksink.notifications import COMMANDS
from chunksink.rebuild.errors import NoGeneration
from chunksink.rebuild.freshness import NO_DRIFT, NO_FAILURES, Freshness, freshness
from chunksink.rebuild.run_records import RunRecord, newest_run, past_runs
from chunksink.rebuild.state import State
from chunksink.rebuild.status import BuildStatus, HomeStatus, failures_of
from chunksink.search.page.site import SEARCH_PROBLEMS, SearchProblem
from chunksink.search.question import MODES, Mode
from chunksink.settings.config import Config
from chunksink.wiring import status_of

_DONE = ("ok", "refused", "held", "behind", "drift", "failures")
"""Statuses of runs that were able to do their work."""
_CHUNKS_SECONDS = 5.0
"""How long a scrape waits for the list of the partitions. `serve` answers a scrape within eight seconds."""
_LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SINK_METRICS: tuple[tuple[str, str, Callable[[BuildStatus], float]], ...] = (
    ("families_indexed", "Sources that the engine has confirmed.", lambda build: build.families),
    ("chunks_indexed", "Chunks that the engine has confirmed.", lambda build: build.chunks),
    ("documents_refused", "Documents that the engine refused.", lambda build: build.refused),
    ("families_pending", "Sources that the next sync compares, writes or removes.", lambda build: build.pending),
)
_Known = tuple[HomeStatus, Freshness, float]
"""The state of a home, its ages, and the time at which they were computed."""
_Values = float | Mapping[str, float] | Mapping[tuple[str, str], float]


class HomeCollector(Collector):
    """Reads the home at every scrape, as `chunksink status` does. Calls no engine.

    If the chunks cannot be read, or not within `seconds`, it reports only the figures of the home. Without
    `needs_index`, it leaves out `chunksink_live` if there is no index."""

    def __init__(self, config: Config, seconds: float, *, needs_index: bool) -> None:
        self._config = config
        self._seconds = seconds
        self._needs_index = needs_index
        self._reading: Future[_Known] | None = None
        self._give_up_at = 0.0

    def collect(self) -> Iterator[Metric]:
        yield InfoMetricFamily("chunksink_build", "The version of chunksink.", {"version": __version__})
        home, known, problem = self._config.home_path, None, None
        runs: list[RunRecord] = []
        try:
            runs += past_runs(home, *COMMANDS)
            known = self._known()
        except NoGeneration:
            pass
        except SEARCH_ERRORS as error:
            problem = error
        yield _gauge("home_readable", "Whether the records of the home can be read.", problem is None)
        if known is not None or self._needs_index:
            yield _gauge("live", "Whether there is a live generation to search.", known is not None)
        if problem is None:
            unread = "Files, folders or records that the last ingest could not read; their former chunks stay."
            yield _gauge("ingest_failures", unread, failures_of(newest_run(home, "ingest")))
        if known is not None:
            status, fresh, now = known
            yield from _state(status)
            yield from _freshness(fresh, now)
            yield from _recall(status, runs)
            yield from self._work(status)
        yield from _last_runs(runs)
        yield _gauge("home_bytes", "Size of the home, with embedded engines.", self._sizes(), "part")

    def _known(self) -> _Known:
        """What is known of the home. A former scrape may still be reading the chunks; then wait only for the rest of
        its time."""
        if self._reading is None or self._reading.done():
            self._give_up_at = monotonic() + self._seconds
            self._reading = in_daemon_thread(partial(self._read, reads_chunks=True))
        try:
            return self._reading.result(max(0.0, self._give_up_at - monotonic()))
        except SEARCH_ERRORS:  # also after a timeout
            return self._read(reads_chunks=False)  # fails, too, unless the chunks were the reason

    def _read(self, *, reads_chunks: bool) -> _Known:
        status = status_of(self._config, named=0, reads_chunks=reads_chunks)
        now = time()
        return status, freshness(status, self._config.home_path, self._config.bus, now), now

    def _work(self, status: HomeStatus) -> Iterator[Metric]:
        """The work of all runs of this home."""
        with State.existing(self._config.home_path) as state:
            totals = state.totals()
        vectors = {part: totals.get(("vectors", part), 0.0) for part in ("computed", "reused")}
        yield _counter("vectors", "Vectors that runs computed, or took from the cache.", vectors, "origin")
        yield _counter("tokens", "Tokens in the texts whose vectors were computed.", totals.get(("tokens", ""), 0.0))
        cost = "Price of the embedded tokens at the endpoint, in the currency of token_price."
        yield _counter("cost", cost, totals.get(("cost", ""), 0.0))
        seconds = defaultdict[tuple[str, str], float](float)
        for (kind, part), amount in totals.items():
            stage, _, rest = part.partition(" ")
            if kind == "seconds":
                seconds[stage, rest if rest in status.sinks else ""] += amount
        yield _counter("stage_seconds", "Seconds that runs spent in each stage.", seconds, "stage", "sink")

    def _sizes(self) -> dict[str, float]:
        """Bytes in the home by part: records, the cache of vectors, each embedded engine, and the rest."""
        parts = {"state": "records", "vectors": "vectors"} | {name: name for name in self._config.sinks}
        sizes = dict.fromkeys([*parts.values(), "other"], 0.0)
        home = self._config.home_path
        for folder, _, names in os.walk(home):
            top = Path(folder).relative_to(home).parts[:1]
            for name in names:
                part = parts.get(top[0] if top else name.partition(".")[0], "other")
                with suppress(OSError):  # a run may have removed it meanwhile
                    sizes[part] += (Path(folder) / name).stat().st_size
        return sizes


def _state(status: HomeStatus) -> Iterator[Metric]:
    bus = status.bus
    yield _gauge("chunks_readable", "Whether the chunks were found, and could be listed in time.", bus.found)
    yield _gauge("families_desired", "Sources in the chunks, as last read.", bus.families)
    yield _gauge("chunks_desired", "Chunks that the index should have, as last read.", bus.chunks)
    yield _gauge("families_superseded", "Older versions of sources, which are not indexed.", bus.superseded)
    yield _gauge("families_held", "Sources kept unchanged because their chunks are missing or invalid.", status.held)
    for name, help, value in _SINK_METRICS:
        yield _gauge(name, help, {sink: value(build) for sink, build in status.sinks.items()}, "sink")
    if bus.found:
        yield _gauge("partitions_pending", "Partitions that changed since they were last read.", len(bus.pending))
    yield _gauge("partitions_broken", "Partitions that are missing or invalid.", len(bus.broken))
    yield _gauge("current", "Whether a sync would find nothing to do.", status.is_current is True)
    yield _gauge("rebuild_due", "Whether a rebuild would make a different index.", status.rebuild_due is not None)
    yield _gauge("removal_blocked", "Whether the brake would stop a sync.", status.brake is not None)


def _freshness(fresh: Freshness, now: float) -> Iterator[Metric]:
    if fresh.lag is not None:
        yield _gauge("lag_seconds", "Age of the oldest change that is not in the index; 0 if there is none.", fresh.lag)
    if fresh.updated is not None:
        last = "Start of the last sync, repair or rebuild that confirmed every change."
        yield _gauge("last_sync_timestamp_seconds", last, now - fresh.updated)
    verified = {"any": (fresh.verified, fresh.verdict), "deep": (fresh.deep_verified, fresh.deep_verdict)}
    times = {depth: now - age for depth, (age, _) in verified.items() if age is not None}
    yield _gauge("last_verify_timestamp_seconds", "Start of the last verify of the live builds.", times, "depth")
    good = {depth: verdict in NO_DRIFT for depth, (_, verdict) in verified.items() if verdict is not None}
    yield _gauge("last_verify_success", "Whether the last verify of the live builds found no drift.", good, "depth")
    yield _gauge("drift", "Whether differences were found and not repaired since.", fresh.has_drift)


def _recall(status: HomeStatus, runs: Sequence[RunRecord]) -> Iterator[Metric]:
    """The recall of each sink, as `verify --deep` or `chunksink prove` last measured it."""
    measured: dict[str, dict[str, float]] = {}
    for run in (each for each in runs if each.command == "verify"):
        for name, sink in run.facts.get("sinks", {}).items():
            if name in status.sinks and sink.get("recall"):
                measured.setdefault(name, sink["recall"])
    for figure, help in (("mean", "on average"), ("worst", "in the worst search")):
        shares = {name: recall[figure] for name, recall in measured.items()}
        yield _gauge(
            f"recall_{figure}_ratio", f"Share of the nearest documents that are found, {help}.", shares, "sink"
        )


def _last_runs(runs: Sequence[RunRecord]) -> Iterator[Metric]:
    last: dict[str, RunRecord] = {}
    for run in runs:
        if run.finished and run.error not in NO_FAILURES:
            last.setdefault(run.command, run)
    began = {name: datetime.fromisoformat(run.started_at).timestamp() for name, run in last.items()}
    yield _gauge("last_run_timestamp_seconds", "Start of the last finished run.", began, "command")
    done = {name: run.status in _DONE for name, run in last.items()}
    yield _gauge("last_run_success", "Whether the last finished run was able to do its work.", done, "command")
    took = {name: run.seconds for name, run in last.items() if run.seconds is not None}
    yield _gauge("last_run_duration_seconds", "Duration of the last finished run.", took, "command")


def _gauge(name: str, help: str, values: _Values, *labels: str) -> Metric:
    return _filled(GaugeMetricFamily(f"chunksink_{name}", help, labels=labels), values)


def _counter(name: str, help: str, values: _Values, *labels: str) -> Metric:
    return _filled(CounterMetricFamily(f"chunksink_{name}", help, labels=labels), values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: _Values) -> Metric:
    for labels, value in values.items() if isinstance(values, Mapping) else [((), values)]:
        family.add_metric([labels] if isinstance(labels, str) else labels, value)
    return family


class ServeMetrics:
    """The state of the home, and the searches of one server."""

    def __init__(self, config: Config) -> None:
        self._registry = registry_of(config)
        self._seconds = Histogram(
            "chunksink_search_seconds",
            "Seconds until a search was answered.",
            ["mode"],
            buckets=_LATENCIES,
            registry=self._registry,
        )
        self._fallbacks = Counter(
            "chunksink_search_fallbacks",
            "Searches that were answered although one leg of them failed: keyword, semantic or engine.",
            ["mode", "leg"],
            registry=self._registry,
        )
        self._errors = Counter(
            "chunksink_search_errors", "Searches that were not answered.", ["reason"], registry=self._registry
        )
        for mode in MODES:  # otherwise the series would begin with its first event, and `rate` would miss that one
            self._seconds.labels(mode)
        for reason in SEARCH_PROBLEMS:
            self._errors.labels(reason)

    def answered(self, mode: Mode, seconds: float, failed: Collection[str]) -> None:
        self._seconds.labels(mode).observe(seconds)
        for leg in failed:
            self._fallbacks.labels(mode, leg).inc()

    def failed(self, reason: SearchProblem) -> None:
        self._errors.labels(reason).inc()

    def exposition(self, accept: str) -> tuple[bytes, str]:
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


def registry_of(config: Config, seconds: float = _CHUNKS_SECONDS, *, needs_index: bool = True) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)  # describing would read the home
    registry.register(HomeCollector(config, seconds, needs_index=needs_index))
    return registry
