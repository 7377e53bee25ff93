"""What the status page tells of a home: from its own records, without asking any engine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from chunksink.output import counted, sized
from chunksink.rebuild.state import cache_file
from chunksink.session import status_of
from chunksink.settings.config import Config
from chunksink.troubles import troubles

if TYPE_CHECKING:
    from chunksink.rebuild.receipts import DeadLetter
    from chunksink.rebuild.run_records import RunRecord
    from chunksink.rebuild.status import HomeStatus
    from chunksink.search.page.report import Figure, Report, Row, Section, Tone

_SUMMARIES = {True: "Up to date", False: "Not up to date", None: "Not known if up to date"}
_SHOWN = 3
_LETTERS = 20
_RUNS_LOOKED_AT = 200


def report(config: Config) -> "Report":
    """Raises NoGeneration where nothing was built yet."""
    from chunksink.rebuild import run_records
    from chunksink.rebuild.receipts import receipts_of_live
    from chunksink.rebuild.state import State
    from chunksink.search.page.report import Report, Section

    found = status_of(config, named=_SHOWN)
    with State.existing(config.home_path) as state:
        records = receipts_of_live(state)
        letters = {sink: receipts.dead_letters(_LETTERS) for sink, receipts in records.items()}
        refused = sum(receipts.refused() for receipts in records.values())
    done = list(run_records.past_runs(config.home_path, _RUNS_LOOKED_AT))
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


def _figures(found: "HomeStatus", refused: int, cache: "list[Row]") -> "Iterator[Figure]":
    from chunksink.search.page.report import Figure

    yield Figure("Sources", f"{found.bus.families:,}")
    yield Figure("Chunks", f"{found.bus.chunks:,}")
    waiting = max((sink.to_write + sink.to_remove + sink.open_intents for sink in found.sinks.values()), default=0)
    yield Figure("To be synced", f"{waiting:,}")
    yield Figure("Held", f"{found.held:,}", tone="bad" if found.held else "")
    yield Figure("Dead letters", f"{refused:,}", tone="bad" if refused else "")
    yield Figure("Cached vectors", cache[0].value if cache else "none")


def _generation(found: "HomeStatus") -> "Iterator[Row]":
    from chunksink.search.page.report import Row

    yield Row("generation", found.live.id)
    yield Row("made at", _moment(found.live.created_at))
    yield Row("model", found.live.model if found.live.holds_vectors else "none: no engine holds vectors")
    if found.live.holds_vectors:
        yield Row("fingerprint", found.live.model_fingerprint)
    yield Row("one before", found.previous.id if found.previous else "none is kept")


def _engines(found: "HomeStatus") -> "Iterator[Row]":
    from chunksink.search.page.report import Row

    for name, sink in found.sinks.items():
        behind = sink.to_write or sink.to_remove or sink.open_intents
        told = [counted(sink.families, "source"), counted(sink.chunks, "chunk")]
        told += [f"{counted(sink.refused, 'document')} refused"] if sink.refused else []
        told += ["not all that the chunks say"] if behind else []
        yield Row(name, ", ".join(told), "bad" if behind or sink.refused else "")


def _verified(run: "RunRecord | None") -> "Section":
    from chunksink.search.page.report import Row, Section

    if run is None:
        return Section(
            "Last verify", (), "Nothing was verified lately: `chunksink verify` compares engines and chunks."
        )
    rows = [Row("run", f"{run.command} {run.id}"), Row("at", _moment(run.started_at))]
    rows.append(Row("result", run.status, "good" if run.status == "ok" else "bad"))
    if run.error:
        rows.append(Row("error", run.error, "bad"))
    for name, numbers in run.facts.get("sinks", {}).items() if run.command == "verify" else ():
        wrong = {what: numbers.get(what, 0) for what in ("missing", "extra", "changed")}
        said = ", ".join(f"{number} {what}" for what, number in wrong.items() if number) or "nothing amiss"
        rows.append(
            Row(name, f"{counted(numbers.get('chunks', 0), 'chunk')}, {said}", "bad" if any(wrong.values()) else "")
        )
    return Section("Last verify", tuple(rows))


def _run(run: "RunRecord") -> "Row":
    from chunksink.search.page.report import Row

    took = f" in {run.seconds:.1f} s" if run.seconds is not None else ""
    tone: Tone = "" if run.status == "ok" or not run.finished else "bad"
    return Row(run.command, f"{_moment(run.started_at)}: {run.status}{took}", tone)


def _moment(at: str) -> str:
    """A moment of our records, which are in UTC, as people write it."""
    return f"{at[:19].replace('T', ' ')} UTC"


def _dead_letters(found: "Mapping[str, Sequence[DeadLetter]]", refused: int) -> "Section":
    from chunksink.search.page.report import Row, Section

    rows = [
        Row(f"{sink}: {letter.source or letter.family}", letter.reason, "bad")
        for sink, letters in found.items()
        for letter in letters
    ]
    if refused > len(rows):
        rows.append(Row("", f"and {refused - len(rows):,} more: `chunksink dead-letters` lists them"))
    return Section("Dead letters", tuple(rows), "No document was refused by an engine.")


def _cache(config: Config) -> "list[Row]":
    """Counted by the index of the table: vectors themselves are not read."""
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.errors import EmbeddingsError
    from chunksink.search.page.report import Row

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
        return [Row("vectors", "unknown"), Row("error", str(error), "bad")]
    total = sum(int(str(number)) for _, number in of_models)
    rows = [Row("vectors", f"{total:,}"), Row("size", sized(path.stat().st_size))]
    return [*rows, *(Row("of a model", f"{name or 'an old one'}: {number:,}") for name, number in of_models)]
