"""The state of a home, for `chunksink status` and for the status page of `chunksink serve`.

`facts` returns labelled values. `advice` returns what is under way, wrong, held or due, with remedies.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from chunksink.chunkbus.wording import counted, counts, more, printable, sized, some
from chunksink.command_line.output import labelled
from chunksink.command_line.summary import brake_line, unbuilt_lines, unconfigured_lines
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.freshness import NO_DRIFT, failed_run, has_drift
from chunksink.rebuild.receipts import receipts_of_live
from chunksink.rebuild.run_records import RunRecord, past_runs
from chunksink.rebuild.spot_check import MAX_CHUNKS, Coverage
from chunksink.rebuild.state import State, cache_file
from chunksink.rebuild.status import BuildStatus, HomeStatus
from chunksink.search.page.report import Report, ReportRow, Section, Tone
from chunksink.settings.config import Config
from chunksink.wiring import existing_cache, status_of

SHOWN = 3
_SUMMARIES = {True: "Up to date", False: "Not up to date", None: "Unknown whether up to date"}
_SHOWN_DEAD_LETTERS = 20
_SHOWN_RUNS = 5


def facts(status: HomeStatus) -> Iterator[ReportRow]:
    live, previous, bus, last = status.live, status.previous, status.bus, status.last_run
    updated = f", updated {_minute(status.updated_at)}" if status.updated_at else ""
    yield ReportRow("live", f"{live.id}{updated}")
    fingerprint = f" ({live.model_fingerprint:.12})" if live.holds_vectors else ", as no engine has vectors"
    yield ReportRow("model", f"{printable(live.model)}{fingerprint}")
    for name, sink in status.sinks.items():
        pending = _pending(sink)
        size = f"{counted(sink.families, 'source')}, {counted(sink.chunks, 'chunk')}"
        yield ReportRow(name, f"{size}  ({pending})" if pending else size, "bad" if pending else "")
    if status.last_verify:
        yield _verified(status, status.last_verify)
    yield ReportRow("compared", _compared([sink.coverage for sink in status.sinks.values()]))
    rollback = f"{previous.id}; `chunksink rollback` switches to it" if previous else "none, so no rollback is possible"
    yield ReportRow("previous", rollback)
    superseded = f", {bus.superseded:,} superseded" if bus.superseded else ""
    chunks = f"{counted(bus.families, 'source')}, {counted(bus.chunks, 'chunk')}{superseded}"
    yield ReportRow("chunks", f"{chunks} as last read by a sync, in {printable(bus.path)}")
    if status.ingested_at:
        yield _ingested(status.ingested_at, status.ingest_failures)
    if last:
        run = f"{last.command}, {_minute(last.started_at)}: {last.status}"
        yield ReportRow("last run", f"{run} (`chunksink runs {last.id}`)")


def _ingested(at: str, failures: int) -> ReportRow:
    last = f"last read {_minute(at)}"
    if failures:
        problem = f"with {counted(failures, 'failure')}, so some chunks may be old: `chunksink ledger` shows why"
        return ReportRow("sources", f"{last}, {problem}", "bad")
    return ReportRow("sources", f"{last}; `chunksink ingest` reads them again")


def _minute(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _verified(status: HomeStatus, run: RunRecord) -> ReportRow:
    results = {
        "ok": "no differences",
        "behind": "only changes that waited for a sync",
        "held": "no drift, but not all chunks could be compared",
    }
    result = results.get(run.status, "differences found")
    old = ", before the last sync: run it again" if run.started_at < (status.updated_at or "") else ""
    if not status.is_checked_by(run):
        later = "; the live ones were compared later" if status.is_compared_since(run) else ": run it again"
        old = f", in builds that are not live now{later}"
    return ReportRow("verified", f"{_minute(run.started_at)}: {result}{old}", "" if run.status in NO_DRIFT else "bad")


def _compared(coverages: list[Coverage]) -> str:
    """Progress of the spot checks in the slowest sink."""
    since = min((coverage.compared_since or "" for coverage in coverages), default="")
    syncs = max((coverage.syncs_a_round for coverage in coverages), default=0)
    if not syncs:
        return "nothing yet: the index has no chunks"
    compared = f"every source at least once since {_minute(since)}" if since else "not yet every source"
    takes = "each sync compares all" if syncs == 1 else f"each sync compares some, {syncs:,} syncs compare all"
    return f"{compared}; {takes}. Only `chunksink verify` compares sources of over {MAX_CHUNKS:,} chunks"


def _pending(sink: BuildStatus) -> str:
    return counts(
        {
            "to write": sink.to_write,
            "to remove": sink.to_remove,
            "of unknown state": sink.open_intents,
            "refused": sink.refused,
        }
    )


def status_lines(status: HomeStatus, home: Path, shown: int | None) -> Iterator[str]:
    for row in facts(status):
        yield labelled(row.label, row.value)
    yield ""
    yield from advice(status, home, shown) or ["up to date with the chunks: a sync would find nothing to do"]


def advice(status: HomeStatus, home: Path, shown: int | None) -> list[str]:
    """Problems with their remedies, at most `shown` of each kind; None shows all."""
    return [*_under_way(status), *_bus(status, shown), *_held(status, shown), *_due(status), *_failures(status, home)]


def _under_way(status: HomeStatus) -> Iterator[str]:
    if "writer" in status.locks:
        yield "a run is writing to this home now"
    if status.unfinished:
        done = ", ".join(f"{name} {chunks:,}" for name, chunks in status.unfinished.chunks.items())
        what = "is under way" if status.unfinished.under_way else "was stopped; `chunksink rebuild` continues it"
        yield f"rebuild {status.unfinished.generation.id} {what} (chunks so far: {done})"
    elif "rebuild" in status.locks:
        yield "a rebuild is under way"
    if status.is_restored:
        yield "restored from a backup: `chunksink sync` compares the engines with the restored records"
    if status.begun_flip:
        yield "a run was killed while it switched generations: `chunksink sync` completes it"


def _bus(status: HomeStatus, shown: int | None) -> Iterator[str]:
    bus = status.bus
    if not bus.found:
        yield f"no chunks at {printable(bus.path)}: name their folder with --chunks DIR"
        return
    for broken in bus.broken[:shown]:
        problem = f"partition {broken.key} is {broken.state}, {counted(broken.families, 'source')} held"
        if broken.state == "missing":
            yield f"{problem}: bring it back, or `chunksink retire-partition {broken.key}`"
        else:
            yield f"{problem}: {printable(broken.finding)}; `chunksink validate` shows all"
    yield from _rest(len(bus.broken), shown, "partitions")
    if bus.dated_ahead:
        dated = f"{counted(len(bus.dated_ahead), 'partition')} dated in the future: {some(bus.dated_ahead, shown)}"
        yield f"{dated}; until these dates no other version of their sources is indexed; see `chunksink validate`"
    if bus.pending:
        pending = f"{counted(len(bus.pending), 'partition')} to read (new, changed or missing, or [fields] has changed)"
        yield f"{pending}: {some(bus.pending, shown)}; run `chunksink sync`"
    elif any(sink.pending for sink in status.sinks.values()):
        yield f"not every engine matches the chunks; {_catch_up(status)}"


def _catch_up(status: HomeStatus) -> str:
    return brake_line(status.brake) if status.brake else "run `chunksink sync`"


def _held(status: HomeStatus, shown: int | None) -> Iterator[str]:
    for held in status.held_families:
        yield f"source {printable(held.source or held.family)} is held: {printable(held.detail)}"
    yield from _rest(status.held, shown, "held sources")


def _rest(number: int, shown: int | None, noun: str) -> list[str]:
    return [f"... and {rest}; `chunksink status --all` names them" for rest in more(number, shown, f" {noun}")]


def _due(status: HomeStatus) -> Iterator[str]:
    refused = sum(sink.refused for sink in status.sinks.values())
    if refused:
        yield f"{counted(refused, 'document')} refused by engines; `chunksink dead-letters` lists them"
    yield from unconfigured_lines(status.unconfigured)
    yield from unbuilt_lines(status.unbuilt)
    if status.rebuild_due:
        yield f"a rebuild is due: {status.rebuild_due}; `chunksink rebuild`"


def _failures(status: HomeStatus, home: Path) -> Iterator[str]:
    """Failures that only the records of runs show."""
    if run := failed_run(home):
        yield f"the last {run.command} failed: `chunksink runs {run.id}` shows why"
    if has_drift(status, home):
        yield "verify found differences that were not repaired: `chunksink verify` lists them, `--repair` repairs them"


def page_report(config: Config) -> Report:
    """NoGeneration if nothing was built yet."""
    status = status_of(config, named=SHOWN)
    with State.existing(config.home_path) as state:
        refused, letters = _dead_letters(state)
    cache = list(_cache(config))
    runs = map(_run, islice(past_runs(config.home_path), _SHOWN_RUNS))
    pending = max((sink.pending for sink in status.sinks.values()), default=0)
    return Report(
        current=status.is_current,
        summary=_SUMMARIES[status.is_current],
        troubles=tuple(advice(status, config.home_path, SHOWN)),
        figures=(
            ReportRow("Sources", f"{status.bus.families:,}"),
            ReportRow("Chunks", f"{status.bus.chunks:,}"),
            ReportRow("To be synced", f"{pending:,}"),
            ReportRow("Held", f"{status.held:,}", tone="bad" if status.held else ""),
            ReportRow("Dead letters", f"{refused:,}", tone="bad" if refused else ""),
            ReportRow("Cached vectors", cache[0].value if cache else "none"),
        ),
        sections=(
            Section("Index", tuple(facts(status))),
            Section(
                "Last verify", tuple(_verify_rows(status)), "No recent verify: `chunksink verify` compares the engines."
            ),
            Section("Last runs", tuple(runs), "There is no record of a run."),
            Section("Dead letters", tuple(letters), "No document was refused by an engine."),
            Section("Cache of vectors", tuple(cache), "There is no cache yet."),
        ),
    )


def _dead_letters(state: State) -> tuple[int, list[ReportRow]]:
    live = receipts_of_live(state)
    refused = sum(receipts.refused() for receipts in live.values())
    rows = [
        ReportRow(f"{sink}: {letter.source or letter.family}", letter.reason, "bad")
        for sink, receipts in live.items()
        for letter in receipts.dead_letters(_SHOWN_DEAD_LETTERS)
    ]
    rest = more(refused, len(rows), ": `chunksink dead-letters` lists them")
    return refused, [*rows, *(ReportRow("", f"and {line}") for line in rest)]


def _verify_rows(status: HomeStatus) -> Iterator[ReportRow]:
    run = status.last_verify
    if run is None:
        return
    yield _verified(status, run)
    for name, numbers in run.facts.get("sinks", {}).items():
        if "error" in numbers:
            yield ReportRow(name, numbers["error"], "bad")
            continue
        wrong = counts({what: numbers.get(what, 0) for what in ("missing", "extra", "changed")})
        chunks = counted(numbers.get("chunks", 0), "chunk")
        yield ReportRow(name, f"{chunks}, {wrong or 'no difference'}", "bad" if wrong else "")


def _run(run: RunRecord) -> ReportRow:
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    tone: Tone = "" if run.status in NO_DRIFT or not run.finished else "bad"
    return ReportRow(run.command, f"{_minute(run.started_at)}: {run.status}{took}", tone)


def _cache(config: Config) -> Iterator[ReportRow]:
    """Counts from the table's index, without reading vectors."""
    path = cache_file(config.home_path)
    if not path.exists():
        return
    try:
        with existing_cache(config) as cache:
            models = cache.read(
                "SELECT coalesce(m.name, ''), count(*) FROM vector v LEFT JOIN model m USING (fingerprint) "
                "GROUP BY v.fingerprint ORDER BY 2 DESC"
            )
    except EmbeddingsError as error:
        yield ReportRow("vectors", "unknown")
        yield ReportRow("error", str(error), "bad")
        return
    yield ReportRow("vectors", f"{sum(int(str(number)) for _, number in models):,}")
    yield ReportRow("size", sized(path.stat().st_size))
    for name, number in models:
        yield ReportRow("by model", f"{name or '(unknown)'}: {number:,}")
