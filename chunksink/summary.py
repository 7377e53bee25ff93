"""How the report of a run is printed, and the exit code that it deserves."""

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from chunksink.exits import Exit
from chunksink.output import counted, print_json, printable

if TYPE_CHECKING:
    from chunksink.rebuild.plan import FamilyCounts
    from chunksink.rebuild.report import RunReport
    from chunksink.sinks.retry import Fault

BUILT = "built"
_SHOWN = 5
_CODES = {"ok": Exit.OK, "refused": Exit.REFUSED, "held": Exit.INVALID_INPUT, "failed": Exit.ENGINE}


def exit_code(report: "RunReport") -> Exit:
    return _CODES[report.status]


def unconfigured_lines(sinks: Iterable[str]) -> list[str]:
    return [
        f"{name} is not configured any more: the next rebuild leaves it out; until then it is not kept up to date"
        for name in sinks
    ]


def unbuilt_lines(sinks: Iterable[str]) -> list[str]:
    return [f"{name} has no build yet: `chunksink sync` makes it" for name in sinks]


def tell_fault(fault: "Fault") -> None:
    click.echo(f"{fault.sink}: {fault.call} failed ({fault.error}); it is tried again", err=True)


def print_report(
    report: "RunReport", *, as_json: bool, verb: str = "synced", why_these_sinks: str | None = None
) -> None:
    if as_json:
        print_json(report.as_json())
        return
    for line in [_built(report)] if verb == BUILT else _changed(report, verb):
        click.echo(line)
    if report.written and report.embeddings["model"]:
        _print_vectors(report.embeddings)
    if report.total.superseded:
        click.echo(f"{counted(report.total.superseded, 'older version')} of sources left out")
    if report.repeated and report.repeated.texts:
        example = " and ".join(printable(chunk_id) for chunk_id in report.repeated.examples[0])
        told = f"{counted(report.repeated.texts, 'text')} in more than one source, as in {example}"
        click.echo(f"{told}; `chunksink why` names their sources")
    change = report.model_change
    if change:
        share = "cannot be told" if change.overlap is None else f"{change.overlap:.0%} on {change.sample} chunks"
        click.echo(f"model changed from {change.before} to {change.after}; their ten nearest in common: {share}")
    _print_troubles(report)
    if report.unconfigured and why_these_sinks:
        click.echo(why_these_sinks, err=True)


def _built(report: "RunReport") -> str:
    chunks = max((sink.chunks for sink in report.sinks.values()), default=0)
    sources = counted(report.families.added + report.families.changed + report.families.unchanged, "source")
    return (
        f"built {_written(report)}: {counted(chunks, 'chunk')} of {sources}, verified and live, in {_seconds(report)}"
    )


def _written(report: "RunReport") -> str:
    return ", ".join(name for name, sink in report.sinks.items() if sink.error is None) or "nothing"


def _seconds(report: "RunReport") -> str:
    return f"{report.seconds:.1f} s"


def _changed(report: "RunReport", verb: str) -> list[str]:
    """Where a sink failed, what was planned for it is not what the others had: a line for each of them."""
    if report.status != "failed":
        held = f", {counted(sum(report.held.values()), 'source')} held" if report.held else ""
        counts = _counts(report.families, report.written)
        return [f"{verb} {_written(report)}: {counts}{held}, in {_seconds(report)}"]
    sound = [(name, sink) for name, sink in report.sinks.items() if sink.error is None]
    return [
        f"{verb} {name}: {_counts(sink.families, sink.written)}, in {_seconds(report)}" for name, sink in sound
    ] or [f"{verb} nothing, in {_seconds(report)}"]


def _counts(families: "FamilyCounts", written: int) -> str:
    parts = [
        counted(number, "source") + f" {what}"
        for number, what in (
            (families.added, "added"),
            (families.changed, "changed"),
            (families.removed, "removed"),
            (families.unchanged, "unchanged"),
        )
        if number
    ]
    told = ", ".join(parts) or "no sources"
    return told + (f" ({counted(written, 'chunk')} written)" if written else "")


def _print_vectors(embedded: dict[str, Any]) -> None:
    click.echo(
        f"vectors: {embedded['computed']:,} computed in {embedded['precision']}, {embedded['cached']:,} from the cache"
    )
    for problem in sorted(set(embedded["problems"].values())):
        click.echo(f"no vector: {printable(problem)}", err=True)
    if embedded["long_chunks"]:
        longer = f"{counted(embedded['long_chunks'], 'chunk')} longer than the model takes at once"
        click.echo(f"{longer}; `chunksink cache long-texts` lists them")
    if embedded["corrupt"]:
        click.echo(f"{counted(embedded['corrupt'], 'damaged vector')} in the cache computed again", err=True)
    for salvaged in embedded["salvaged"]:
        click.echo(
            f"the cache was damaged: {counted(salvaged['rows'], 'sound vector')} carried over, "
            f"the damaged file kept as {salvaged['kept']}",
            err=True,
        )


def _print_troubles(report: "RunReport") -> None:
    for name, sink in report.sinks.items():
        if sink.settings:
            click.echo(f"{name}: index settings changed: {', '.join(sink.settings)}")
        if sink.built:
            click.echo(f"{name} is new: {counted(sink.written, 'chunk')} written")
        if sink.made_again:
            click.echo(f"{name}: its build was gone or broken; it was made again", err=True)
        if sink.drifted:
            click.echo(f"{name} did not hold what its records said; it was read and put right", err=True)
        if sink.held_and_lost:
            lost = counted(sink.held_and_lost, "source")
            click.echo(f"{name} has lost {lost} that cannot be written again while they are held", err=True)
        for letter in sink.refused[:_SHOWN]:
            click.echo(f"refused by {name}: {printable(letter.id)}: {printable(letter.reason)}", err=True)
        if len(sink.refused) > _SHOWN:
            click.echo(f"... and {len(sink.refused) - _SHOWN:,} more; see `chunksink dead-letters`", err=True)
        if sink.error is not None:
            click.echo(f"{name} is not up to date: {sink.error}", err=True)
    for key in report.missing_partitions[:_SHOWN]:
        click.echo(
            f"partition {key} is missing; what it held stays in the index. Bring it back, or give it up with "
            f"`chunksink retire-partition {key}`",
            err=True,
        )
    for finding in report.findings[:_SHOWN]:
        click.echo(str(finding), err=True)
    if len(report.findings) > _SHOWN:
        click.echo(f"... and {len(report.findings) - _SHOWN:,} more", err=True)
    if report.findings:
        click.echo(
            "none of that was taken; what was there before stays. `chunksink validate` says what to do", err=True
        )
    if report.left_behind:
        click.echo(
            f"{counted(report.left_behind, 'source')} of the index before, of which the records are lost, not found in "
            "the chunks and so not in this one; if they should be, bring their partitions back and sync again",
            err=True,
        )
    for reason, families in islice(report.held.items(), _SHOWN):
        click.echo(f"{counted(families, 'source')} held, unchanged in the index: {printable(reason)}", err=True)
    if len(report.held) > _SHOWN:
        click.echo("... and for other reasons; see `chunksink status`", err=True)
    for line in unconfigured_lines(report.unconfigured):
        click.echo(line, err=True)
    for left in report.not_removed:
        click.echo(
            f"could not remove build {left.build} of {left.sink}, which nobody needs: {printable(left.reason)}; "
            "the next rebuild tries again",
            err=True,
        )
    if report.rebuild_due:
        click.echo(
            f"a rebuild is due: {report.rebuild_due}. The live model was kept; `chunksink rebuild` changes it", err=True
        )
