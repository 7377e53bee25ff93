"""What the status page tells of a home: from its own records, without asking any engine."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from chunksink.output import counted, sized
from chunksink.settings.config import Config
from chunksink.troubles import troubles
from chunksink.wiring import cache_file, status_of

if TYPE_CHECKING:
    from chunksink.rebuild.dead_letters import Letter
    from chunksink.rebuild.runs import Run
    from chunksink.rebuild.status import Status
    from chunksink.search.page.report import Figure, Report, ReportRow, Section, Tone

_SUMMARIES = {True: "Up to date", False: "Not up to date", None: "Not known if up to date"}
_SHOWN = 3
_LETTERS = 20
_RUNS_LOOKED_AT = 200


def report(config: Config) -> "Report":
    """Raises NoGeneration where nothing was built yet."""
    from chunksink.rebuild import dead_letters, runs
    from chunksink.rebuild.state import State
    from chunksink.search.page.report import Report, Section

    found = status_of(config, named=_SHOWN)
    with State.existing(config.home_path) as state:
        letters = dead_letters.letters(state, limit=_LETTERS)
        refused = dead_letters.count(state)
    done = list(runs.runs(config.home_path, _RUNS_LOOKED_AT))
    # One that found the home locked, say, has looked at nothing.
    verify = next((run for run in done if run.command in ("verify", "repair") and run.facts.get("sinks")), None)
    cache = _cache(config)
    return Report(
        current=found.is_current,
        summary=_SUMMARIES[found.is_current],
        troubles=tuple(troubles(found, _SHOWN)),
        figures=tuple(_figures(found, refused, cache)),
        sections=(
            Section("Live generation", tuple(_generation(found))),
            Section("Engines", tuple(_engines(found))),
            _verified(verify),
            Section("Last runs", tuple(_run(run) for run in done[:5]), "No run is on record."),
            _dead_letters(letters, refused),
            Section("Cache of vectors", tuple(cache), "There is no cache yet."),
        ),
    )


def _figures(found: "Status", refused: int, cache: "list[ReportRow]") -> "Iterator[Figure]":
    from chunksink.search.page.report import Figure

    yield Figure("Sources", f"{found.bus.families:,}")
    yield Figure("Chunks", f"{found.bus.chunks:,}")
    waiting = max((sink.to_write + sink.to_remove + sink.open_intents for sink in found.sinks.values()), default=0)
    yield Figure("To be synced", f"{waiting:,}")
    yield Figure("Held", f"{found.held:,}", tone="bad" if found.held else "")
    yield Figure("Dead letters", f"{refused:,}", tone="bad" if refused else "")
    yield Figure("Cached vectors", cache[0].value if cache else "none")


def _generation(found: "Status") -> "Iterator[ReportRow]":
    from chunksink.search.page.report import ReportRow

    yield ReportRow("generation", found.live.id)
    yield ReportRow("made at", _moment(found.live.created_at))
    yield ReportRow("model", found.live.model if found.live.holds_vectors else "none: no engine holds vectors")
    if found.live.holds_vectors:
        yield ReportRow("fingerprint", found.live.model_fingerprint)
    yield ReportRow("one before", found.previous.id if found.previous else "none is kept")


def _engines(found: "Status") -> "Iterator[ReportRow]":
    from chunksink.search.page.report import ReportRow

    for name, sink in found.sinks.items():
        behind = sink.to_write or sink.to_remove or sink.open_intents
        told = [counted(sink.families, "source"), counted(sink.chunks, "chunk")]
        told += [f"{counted(sink.refused, 'document')} refused"] if sink.refused else []
        told += ["not all that the chunks say"] if behind else []
        yield ReportRow(name, ", ".join(told), "bad" if behind or sink.refused else "")


def _verified(run: "Run | None") -> "Section":
    from chunksink.search.page.report import ReportRow, Section

    if run is None:
        return Section(
            "Last verify", (), "Nothing was verified lately: `chunksink verify` compares engines and chunks."
        )
    rows = [ReportRow("run", f"{run.command} {run.id}"), ReportRow("at", _moment(run.started_at))]
    rows.append(ReportRow("result", run.status, "good" if run.status == "ok" else "bad"))
    if run.error:
        rows.append(ReportRow("error", run.error, "bad"))
    for name, numbers in run.facts.get("sinks", {}).items() if run.command == "verify" else ():
        wrong = {what: numbers.get(what, 0) for what in ("missing", "extra", "changed")}
        said = ", ".join(f"{number} {what}" for what, number in wrong.items() if number) or "nothing amiss"
        rows.append(
            ReportRow(
                name, f"{counted(numbers.get('chunks', 0), 'chunk')}, {said}", "bad" if any(wrong.values()) else ""
            )
        )
    return Section("Last verify", tuple(rows))


def _run(run: "Run") -> "ReportRow":
    from chunksink.search.page.report import ReportRow

    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    tone: Tone = "" if run.status == "ok" or not run.finished else "bad"
    return ReportRow(run.command, f"{_moment(run.started_at)}: {run.status}{took}", tone)


def _moment(at: str) -> str:
    """A moment of our records, which are in UTC, as people write it."""
    return f"{at[:19].replace('T', ' ')} UTC"


def _dead_letters(letters: "list[Letter]", refused: int) -> "Section":
    from chunksink.search.page.report import ReportRow, Section

    rows = [ReportRow(f"{letter.sink}: {letter.source or letter.family}", letter.reason, "bad") for letter in letters]
    if refused > len(rows):
        rows.append(ReportRow("", f"and {refused - len(rows):,} more: `chunksink dead-letters` lists them"))
    return Section("Dead letters", tuple(rows), "No document was refused by an engine.")


def _cache(config: Config) -> "list[ReportRow]":
    """Counted by the index of the table: vectors themselves are not read."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.search.page.report import ReportRow

    path = cache_file(config.home_path)
    if not path.exists():
        return []
    try:
        with VectorCache.open(path, read_only=True) as cache:
            of_models = cache.read(
                "SELECT coalesce(m.name, ''), count(*) FROM vector v LEFT JOIN model m USING (fingerprint) "
                "GROUP BY v.fingerprint ORDER BY 2 DESC"
            )
    except EmbeddingsError as error:
        return [ReportRow("vectors", "unknown"), ReportRow("error", str(error), "bad")]
    total = sum(int(str(number)) for _, number in of_models)
    rows = [ReportRow("vectors", f"{total:,}"), ReportRow("size", sized(path.stat().st_size))]
    return [*rows, *(ReportRow("of a model", f"{name or 'an old one'}: {number:,}") for name, number in of_models)]
