"""The state of a home, for `chunksink status` and for the status page of `chunksink serve`.

`facts` are labelled values. `advice` lists what is under way, wrong, held or due, with remedies.
"""

from collections.abc import Iterator

from chunksink.output import counted, counts, labelled, more, printable, sized, some
from chunksink.rebuild.receipts import receipts_of_live
from chunksink.rebuild.run_records import RunRecord, past_runs
from chunksink.rebuild.spot_check import LARGEST, Coverage
from chunksink.rebuild.state import State, cache_file
from chunksink.rebuild.status import BuildStatus, HomeStatus
from chunksink.search.page.report import Figure, Report, ReportRow, Section, Tone
from chunksink.session import status_of
from chunksink.settings.config import Config
from chunksink.summary import unbuilt_lines, unconfigured_lines

SHOWN = 3
_SUMMARIES = {True: "Up to date", False: "Not up to date", None: "Not known if up to date"}
_LETTERS = 20
_RUNS = 5


def facts(found: "HomeStatus") -> Iterator[ReportRow]:
    live, previous, bus, last = found.live, found.previous, found.bus, found.last_run
    updated = f", updated {_moment(found.updated_at)}" if found.updated_at else ""
    yield ReportRow("live", f"{live.id}{updated}")
    fingerprint = f" ({live.model_fingerprint:.12})" if live.holds_vectors else ", as no engine holds vectors"
    yield ReportRow("model", f"{printable(live.model)}{fingerprint}")
    for name, sink in found.sinks.items():
        waiting = _waiting(sink)
        held = f"{counted(sink.families, 'source')}, {counted(sink.chunks, 'chunk')}"
        yield ReportRow(name, f"{held}  ({waiting})" if waiting else held, "bad" if waiting else "")
    if found.last_verify:
        yield _verified(found.last_verify, found.updated_at)
    yield ReportRow("compared", _compared([sink.coverage for sink in found.sinks.values()]))
    rollback = f"{previous.id}; `chunksink rollback` shows it again" if previous else "none, so no rollback is possible"
    yield ReportRow("previous", rollback)
    superseded = f", {bus.superseded:,} superseded" if bus.superseded else ""
    chunks = f"{counted(bus.families, 'source')}, {counted(bus.chunks, 'chunk')}{superseded}"
    yield ReportRow("chunks", f"{printable(bus.path)}: {chunks}, as last synced")
    if found.ingested_at:
        yield ReportRow("sources", f"last read {_moment(found.ingested_at)}; `chunksink ingest` reads them again")
    if last:
        run = f"{last.command}, {_moment(last.started_at)}: {last.status}"
        yield ReportRow("last run", f"{run} (`chunksink runs {last.id}`)")


def _moment(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


def _verified(run: "RunRecord", updated_at: str | None) -> ReportRow:
    result = "no differences" if run.status == "ok" else "differences found"
    old = ", before the last sync: run it again" if updated_at and run.started_at < updated_at else ""
    return ReportRow("verified", f"{_moment(run.started_at)}: {result}{old}", "" if run.status == "ok" else "bad")


def _compared(coverages: list[Coverage]) -> str:
    """Progress of the spot checks, in the sink that is furthest behind."""
    since = min((coverage.compared_since or "" for coverage in coverages), default="")
    syncs = max((coverage.syncs_a_round for coverage in coverages), default=0)
    if not syncs:
        return "nothing yet: the index has no chunks"
    compared = f"every source of up to {LARGEST:,} chunks since {_moment(since)}" if since else "not yet every source"
    return f"{compared}; a round takes at most {counted(syncs, 'sync')}"


def _waiting(sink: "BuildStatus") -> str:
    return counts(
        {
            "to write": sink.to_write,
            "to remove": sink.to_remove,
            "of unknown state, to be written again": sink.open_intents,
            "refused": sink.refused,
        }
    )


def status_lines(found: "HomeStatus", shown: int | None) -> Iterator[str]:
    for row in facts(found):
        yield labelled(row.label, row.value)
    yield ""
    yield from advice(found, shown) or ["up to date with the chunks: a sync would find nothing to do"]


def advice(found: "HomeStatus", shown: int | None) -> list[str]:
    """Problems with their remedies. Lists are cut to `shown` entries; None shows all."""
    return [*_under_way(found), *_bus(found, shown), *_held(found, shown), *_due(found), *_last_run(found)]


def _under_way(found: "HomeStatus") -> Iterator[str]:
    if "writer" in found.locks:
        yield "a run is writing to this home now"
    if found.unfinished:
        done = ", ".join(f"{name} {chunks:,}" for name, chunks in found.unfinished.chunks.items())
        what = "is under way" if found.unfinished.under_way else "was stopped; `chunksink rebuild` continues it"
        yield f"rebuild {found.unfinished.generation.id} {what} (chunks so far: {done})"
    elif "rebuild" in found.locks:
        yield "a rebuild is under way"
    if found.begun_flip:
        yield "a run was killed while it switched generations: `chunksink sync` completes it"


def _bus(found: "HomeStatus", shown: int | None) -> Iterator[str]:
    bus = found.bus
    if not bus.found:
        yield f"no chunks at {printable(bus.path)}: name their folder with --chunks DIR"
        return
    for broken in bus.broken[:shown]:
        held = f"partition {broken.key} is {broken.state}, {counted(broken.families, 'source')} held"
        if broken.state == "missing":
            yield f"{held}: bring it back, or `chunksink retire-partition {broken.key}`"
        else:
            yield f"{held}: {printable(broken.finding)}; `chunksink validate` shows all"
    yield from _rest(len(bus.broken), shown, "partitions")
    if bus.pending:
        new = f"{counted(len(bus.pending), 'partition')} new, changed or gone since the last sync"
        yield f"{new}: {some(bus.pending, shown)}; run `chunksink sync`"
    elif any(sink.to_write or sink.to_remove or sink.open_intents for sink in found.sinks.values()):
        yield f"not every engine matches the chunks; {_catch_up(found)}"


def _catch_up(found: "HomeStatus") -> str:
    brake = found.brake
    if brake is None:
        return "run `chunksink sync`"
    return (
        f"{brake.sources} would be removed or lose most of their chunks, and a sync would stop at that number: "
        f"`chunksink plan` names some, `chunksink sync {brake.flag}` removes them"
    )


def _held(found: "HomeStatus", shown: int | None) -> Iterator[str]:
    for held in found.held_families:
        yield f"held as it was: source {printable(held.source or held.family)}: {printable(held.detail)}"
    yield from _rest(found.held, shown, "held sources")


def _rest(number: int, shown: int | None, noun: str) -> list[str]:
    return [f"... and {rest}; --all names them" for rest in more(number, shown, f" {noun}")]


def _due(found: "HomeStatus") -> Iterator[str]:
    refused = sum(sink.refused for sink in found.sinks.values())
    if refused:
        yield f"{counted(refused, 'document')} refused by engines; `chunksink dead-letters` lists them"
    yield from unconfigured_lines(found.unconfigured)
    yield from unbuilt_lines(found.unbuilt)
    if found.rebuild_due:
        yield f"a rebuild is due: {found.rebuild_due}; `chunksink rebuild`"


def _last_run(found: "HomeStatus") -> Iterator[str]:
    """Failures that the records of the index do not show."""
    last = found.last_run
    if last and last.command in ("sync", "rebuild") and last.status == "failed":
        yield f"the last {last.command} failed: `chunksink runs {last.id}` says why"
    verified = found.last_verify
    if verified and verified.status == "drift" and not (found.updated_at and verified.started_at < found.updated_at):
        yield "the last verify found differences: `chunksink verify` lists them, `--repair` repairs them"


def page_report(config: Config) -> Report:
    """NoGeneration if nothing was built yet."""
    found = status_of(config, named=SHOWN)
    with State.existing(config.home_path) as state:
        refused, letters = _dead_letters(state)
    cache = list(_cache(config))
    waiting = max((sink.to_write + sink.to_remove + sink.open_intents for sink in found.sinks.values()), default=0)
    return Report(
        current=found.is_current,
        summary=_SUMMARIES[found.is_current],
        troubles=tuple(advice(found, SHOWN)),
        figures=(
            Figure("Sources", f"{found.bus.families:,}"),
            Figure("Chunks", f"{found.bus.chunks:,}"),
            Figure("To be synced", f"{waiting:,}"),
            Figure("Held", f"{found.held:,}", tone="bad" if found.held else ""),
            Figure("Dead letters", f"{refused:,}", tone="bad" if refused else ""),
            Figure("Cached vectors", cache[0].value if cache else "none"),
        ),
        sections=(
            Section("Index", tuple(facts(found))),
            Section(
                "Last verify", tuple(_verify_rows(found)), "No recent verify: `chunksink verify` compares the engines."
            ),
            Section("Last runs", tuple(map(_run, past_runs(config.home_path, _RUNS))), "There is no record of a run."),
            Section("Dead letters", tuple(letters), "No document was refused by an engine."),
            Section("Cache of vectors", tuple(cache), "There is no cache yet."),
        ),
    )


def _dead_letters(state: "State") -> tuple[int, list[ReportRow]]:
    live = receipts_of_live(state)
    refused = sum(receipts.refused() for receipts in live.values())
    rows = [
        ReportRow(f"{sink}: {letter.source or letter.family}", letter.reason, "bad")
        for sink, receipts in live.items()
        for letter in receipts.dead_letters(_LETTERS)
    ]
    rest = more(refused, len(rows), ": `chunksink dead-letters` lists them")
    return refused, [*rows, *(ReportRow("", f"and {line}") for line in rest)]


def _verify_rows(found: "HomeStatus") -> Iterator[ReportRow]:
    run = found.last_verify
    if run is None:
        return
    yield _verified(run, found.updated_at)
    for name, numbers in run.facts.get("sinks", {}).items():
        wrong = counts({what: numbers.get(what, 0) for what in ("missing", "extra", "changed")})
        chunks = counted(numbers.get("chunks", 0), "chunk")
        yield ReportRow(name, f"{chunks}, {wrong or 'no difference'}", "bad" if wrong else "")


def _run(run: "RunRecord") -> ReportRow:
    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    tone: Tone = "" if run.status == "ok" or not run.finished else "bad"
    return ReportRow(run.command, f"{_moment(run.started_at)}: {run.status}{took}", tone)


def _cache(config: Config) -> Iterator[ReportRow]:
    """Counts from the table's index, without reading vectors."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.errors import EmbeddingsError

    path = cache_file(config.home_path)
    if not path.exists():
        return
    try:
        with VectorCache.open(path, replace_damaged=False) as cache:
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
        yield ReportRow("of a model", f"{name or '(unknown)'}: {number:,}")
