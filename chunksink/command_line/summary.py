"""The report of a run as lines of text, and its exit code."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from chunksink.chunkbus.findings import FAMILY_SPLIT
from chunksink.chunkbus.wording import counted, counts, named, printable, some
from chunksink.command_line.exits import Exit, code_of
from chunksink.command_line.output import Note, first, show
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.plan import FamilyCounts

if TYPE_CHECKING:
    from chunksink.rebuild.errors import Removal
    from chunksink.rebuild.forecast import Forecast
    from chunksink.rebuild.recall import Recall
    from chunksink.rebuild.report import RunReport, SinkReport

BUILT = "built"
_SHOWN = 5
_NAMED = 3
_CODES = {"ok": Exit.OK, "refused": Exit.REFUSED, "held": Exit.INVALID_INPUT, "failed": Exit.ENGINE}


def exit_code(report: "RunReport", *, strict: bool = False) -> Exit:
    """With `strict`, a due rebuild has its own code. If sinks failed only for lack of vectors, it is that error's
    code."""
    code = _CODES[report.status]
    errors = [sink.error for sink in report.sinks.values() if sink.error is not None]
    if errors and all(isinstance(error, EmbeddingsError) for error in errors):
        code = code_of(errors[0]) or code
    return Exit.REBUILD_DUE if code == Exit.OK and strict and report.rebuild_due else code


def unconfigured_lines(sinks: Iterable[str]) -> list[str]:
    return [
        f"{name} is no longer configured: it is not kept up to date, and the next rebuild leaves it out"
        for name in sinks
    ]


def unbuilt_lines(sinks: Iterable[str]) -> list[str]:
    return [f"{name} has no build yet: `chunksink sync` creates it" for name in sinks]


def print_report(report: "RunReport", *, as_json: bool, verb: str = "synced") -> None:
    show(as_json, report.as_json(), _lines(report, verb))


def _lines(report: "RunReport", verb: str) -> Iterator[str]:
    yield from [_built(report)] if verb == BUILT else _changed(report, verb)
    yield from _vectors(report)
    if report.total.superseded:
        yield f"{counted(report.total.superseded, 'older version')} of sources left out"
    if report.wrong_field_values:
        values = counted(report.wrong_field_values, "custom field value")
        yield f"{values} of the wrong type left out; `chunksink validate` lists them"
    if report.repeated and report.repeated.texts:
        example = " and ".join(map(printable, report.repeated.sources[0]))
        yield f"{counted(report.repeated.texts, 'text')} in more than one source, as in {example}"
    if change := report.model_change:
        sample = f"a sample of {counted(change.sample, 'chunk')}"
        near = f"of the ten nearest neighbours of a chunk, {change.overlap or 0:.0%} are the same as before ({sample})"
        share = "neighbours not compared" if change.overlap is None else near
        yield f"model changed from {change.before} to {change.after}; {share}"
    if report.evaluation:
        from chunksink.search.evaluation.comparison import comparison_lines

        yield from comparison_lines(report.evaluation)
    for name, sink in report.sinks.items():
        yield from _sink(name, sink)
    yield from map(Note, _input(report))
    yield from map(Note, unconfigured_lines(report.unconfigured))
    for build in report.not_removed:
        failure = f"could not remove the unused build {build.build} of {build.sink}"
        yield Note(f"{failure}: {printable(build.reason)}; the next rebuild tries again")
    if report.rebuild_due:
        yield Note(f"a rebuild is due: {report.rebuild_due}. The live model was kept; `chunksink rebuild` changes it")


def _built(report: "RunReport") -> str:
    chunks = max((sink.chunks for sink in report.sinks.values()), default=0)
    sources = counted(report.families.added + report.families.changed + report.families.unchanged, "source")
    size = f"{counted(chunks, 'chunk')} of {sources}"
    return f"built {_working_sinks(report)}: {size}, verified and live, {_seconds(report)}"


def _working_sinks(report: "RunReport") -> str:
    return ", ".join(name for name, sink in report.sinks.items() if sink.error is None) or "nothing"


def _seconds(report: "RunReport") -> str:
    return f"in {report.seconds:.1f} s"


def _changed(report: "RunReport", verb: str) -> list[str]:
    """One line with the numbers of the whole run. If a sink failed, each other sink has a line with its own numbers."""
    if report.status != "failed":
        sources = _families(report.families, report.written, held=sum(report.held.values()))
        return [f"{verb} {_working_sinks(report)}: {sources}, {_seconds(report)}"]
    working = [(name, sink) for name, sink in report.sinks.items() if sink.error is None]
    lines = [f"{verb} {name}: {_families(sink.families, sink.written)}, {_seconds(report)}" for name, sink in working]
    return lines or [f"{verb} nothing, {_seconds(report)}"]


def _families(families: FamilyCounts, written: int, held: int = 0) -> str:
    numbers = {
        "added": families.added,
        "changed": families.changed,
        "removed": families.removed,
        "unchanged": families.unchanged,
    }
    chunks = f" ({counted(written, 'chunk')} written)" if written else ""
    parts = [counts(numbers, "source") + chunks, counts({"held": held}, "source")]
    return ", ".join(filter(None, parts)) or "no sources"


def _vectors(report: "RunReport") -> Iterator[str]:
    embedded = report.embeddings
    if report.written and embedded["model"]:
        computed = f"{embedded['computed']:,} computed in {embedded['precision']}"
        yield f"vectors: {computed}, {embedded['cached']:,} reused"
    for problem in sorted(set(embedded["problems"].values())):
        yield Note(f"no vector: {printable(problem)}")
    if embedded["long_chunks"]:
        longer = f"{counted(embedded['long_chunks'], 'chunk')} longer than the model's maximum"
        how = "only the beginning is embedded" if embedded["long_texts"] == "truncate" else "embedded whole, in parts"
        yield f"{longer}: {how}; `chunksink cache long-texts` lists them"
    if embedded["corrupt"]:
        yield Note(f"{counted(embedded['corrupt'], 'damaged vector')} in the cache computed again")
    for kept in embedded["set_aside"]:
        yield Note(f"the cache was damaged and replaced. {kept} is the damaged file; it can be deleted")


def _sink(name: str, sink: "SinkReport") -> Iterator[str]:
    if sink.settings:
        yield f"{name}: index settings changed: {', '.join(sink.settings)}"
    if sink.built:
        yield f"{name} is new: {counted(sink.written, 'chunk')} written"
    if sink.made_again:
        yield Note(f"{name}: its build was missing or broken and was recreated")
    if sink.drifted:
        yield Note(f"{name} {_drift(sink)}; rescanned and repaired")
    if sink.held_and_missing:
        yield Note(f"{name} lacks {counted(sink.held_and_missing, 'held source')}, which cannot be written while held")
    refused = [
        f"refused by {name}: {printable(one.source or one.family)}, chunk {printable(one.id):.16}: "
        f"{printable(one.reason)}"
        for one in sink.refused
    ]
    yield from map(Note, first(refused, _SHOWN, "; see `chunksink dead-letters`"))
    if sink.error is not None:
        yield Note(f"{name} is not up to date: {sink.error}")


def _drift(sink: "SinkReport") -> str:
    lost = f"had lost {counted(sink.lost, 'source')}" if sink.lost else ""
    altered = f"had wrong content in {counted(sink.altered, 'source')}" if sink.altered else ""
    names = _examples(sink.drifted_sources, sink.lost + sink.altered)
    return (" and ".join(filter(None, [lost, altered])) or "had drifted from its records") + names


def bus_lines(report: "RunReport | Forecast") -> Iterator[str]:
    """Lines about missing partitions, and about findings in the other partitions."""
    missing = [
        f"partition {key} is missing; its sources stay in the index. Bring it back, or retire it with "
        f"`chunksink retire-partition {key}`"
        for key in report.missing_partitions
    ]
    yield from first(missing, _SHOWN)
    errors = [finding for finding in report.findings if finding.is_error]
    yield from first(list(map(str, errors)), _SHOWN, total=report.errors)
    if errors:
        elsewhere = " and the partitions among which a family is split"
        shows = f"the remedies{elsewhere if any(each.code == FAMILY_SPLIT for each in errors) else ''}"
        yield f"these partitions were not read; their sources are unchanged. `chunksink validate` shows {shows}"
    warnings = [finding for finding in report.findings if not finding.is_error]
    yield from map(str, warnings[:_SHOWN])
    if warnings:
        yield "these partitions were read. `chunksink validate` lists all warnings and their remedies"


def _input(report: "RunReport") -> Iterator[str]:
    """Problems of the chunks, and sources that are held because of them."""
    yield from bus_lines(report)
    held = [
        f"{counted(families, 'source')} held, unchanged in the index: {printable(reason)}"
        f"{_examples(report.held_sources.get(reason, ()), families)}"
        for reason, families in report.held.items()
    ]
    yield from first(held, _SHOWN, " reasons; see `chunksink status`")


def _examples(names: Sequence[str], total: int) -> str:
    """Some of the names, in brackets."""
    shown = [named(name) for name in names[:_NAMED]]
    return f" ({some(shown, len(shown), total=total)})" if names else ""


def brake_line(brake: "Removal") -> str:
    loss = f"{brake.sources} would be removed or lose most of their chunks, so a sync would stop"
    return f"{loss}: `chunksink plan` names some of them, `chunksink sync {brake.flag}` continues"


def recall_lines(sink: str, recall: "Recall | None") -> Iterator[str]:
    """The measured recall of a live build's vector search, with a remedy if it is low."""
    if recall is not None:
        line, remedy = f"{sink} {recall.summary}", recall.remedy(sink)
        yield Note(f"{line}: {remedy}") if remedy else line
