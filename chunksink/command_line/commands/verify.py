"""`chunksink verify`: compares the engines with the chunks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.wording import counted, counts, more, named, printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, index_options, json_option, open_index, writing_options
from chunksink.command_line.output import Note, echo, first, note, print_json
from chunksink.command_line.summary import (
    brake_line,
    exit_code,
    print_report,
    recall_lines,
    unbuilt_lines,
    unconfigured_lines,
)

if TYPE_CHECKING:
    from chunksink.rebuild.verify import SinkCheck, VerifyReport

_SHOWN = 5


@click.command()
@index_options
@click.option(
    "--deep", is_flag=True, help="Also compare every vector with the cached one of its text, and measure recall."
)
@click.option("--repair", is_flag=True, help="Write what is missing or wrong, remove what is extra, then verify again.")
@writing_options
@json_option
def command(shared: SharedOptions, deep: bool, repair: bool, allow_deletions: int, adopt: bool, as_json: bool) -> int:
    """Compare every document in the engines with the chunks, and repair differences with --repair.

    Documents are read through the engine's own interface, not from chunksink's records.
    Sources with missing, extra or changed chunks are named; --json has the ids. Refused documents are counted
    separately. Sources that are held, because their chunks are missing or invalid, are not compared. The digest of
    a sink depends on its content alone: it is the same in another home with the same chunks, model and fields.
    `--allow-deletions` and `--adopt` apply to the repair.
    Exits with 5 if an engine does not answer, else with 4 if something differs and was not repaired, else with 3 if
    sources are held, else with 6 if documents were refused during a repair.

    \b
    Examples:
      chunksink verify
      chunksink verify --deep --repair
      chunksink verify --json | jq '.sinks[].digest'
    """
    with open_index(shared) as index:
        report = index.verify(deep=deep)
        repaired = None
        if repair and not report.ok:
            if not as_json:
                echo(_lines(report))
            repaired = index.repair(adopt=adopt, allow_deletions=allow_deletions, deep=deep)
            report = index.verify(deep=deep)
    if as_json:
        print_json(report.as_json() | ({"repair": repaired.as_json()} if repaired else {}))
    else:
        if repaired is not None:
            print_report(repaired, as_json=False, verb="repaired")
        echo(_lines(report))
        if not repair and any(sink.unjudged for sink in report.sinks.values()):
            note("`chunksink verify --deep --repair` computes the missing vectors and compares again")
        differing = [sink for sink in report.sinks.values() if not replace(sink, unjudged=0).ok]
        if not repair and differing:
            is_behind = all(sink.is_behind for sink in differing)
            repairing = f"`chunksink verify {'--deep ' if deep else ''}--repair` fixes it"
            remedy = "`chunksink sync` applies these changes" if is_behind else repairing
            note(brake_line(report.brake) if report.brake else remedy)
    if report.unknown:
        return Exit.ENGINE
    if not report.ok:
        return Exit.DRIFT
    if report.held or report.unread:
        return Exit.INVALID_INPUT
    return exit_code(repaired) if repaired is not None else Exit.OK


def _lines(report: "VerifyReport") -> Iterator[str]:
    for name, sink in report.sinks.items():
        refused = f", {counted(len(sink.refused), 'document')} refused" if sink.refused else ""
        holds = f"{counted(sink.chunks, 'chunk')} of {counted(sink.families, 'source')}"
        yield f"{name}: {holds}, {_state(sink, report.held)}{refused}"
        yield from map(Note, _drift(sink))
        if not sink.shown and name not in report.failed:
            yield Note("  other programs do not find it: its public name does not show this build")
        if sink.unjudged:
            yield Note(f"  {counted(sink.unjudged, 'vector')} could not be compared: the cache does not have them")
        if sink.settings:
            yield Note(f"  its settings are not as configured: {', '.join(sink.settings)}")
        yield from recall_lines(name, sink.recall)
        yield f"  digest {sink.digest}"
    if report.ok and len({sink.digest for sink in report.sinks.values()}) > 1:
        yield "Compare digests only between indexes of the same sink, such as fts on two machines"
    yield from (Note(f"{name}: {error}") for name, error in report.failed.items())
    yield from map(Note, (*_held(report), *unconfigured_lines(report.unconfigured), *unbuilt_lines(report.unbuilt)))


def _state(sink: "SinkCheck", held: int) -> str:
    if not sink.matches_chunks:
        return f"differs from the chunks{' (changes wait for a sync)' if sink.is_behind else ''}"
    skipped = f", except {counted(held, 'held source')}, which could not be compared" if held else ""
    matches = f"matches the chunks{skipped}"
    if sink.ok:
        return matches
    is_only_unproved = replace(sink, unjudged=0).ok
    return f"{matches}, but {'not all vectors could be compared' if is_only_unproved else 'needs a repair'}"


def _held(report: "VerifyReport") -> Iterator[str]:
    yield from first([f"partition {printable(key)} is missing or invalid" for key in report.unread], _SHOWN)
    if report.held:
        yield f"{counted(report.held, 'source')} held and not compared; `chunksink status` shows why"


def _drift(sink: "SinkCheck") -> Iterator[str]:
    for each in sink.drifted_sources[:_SHOWN]:
        numbers = {"missing": each.missing, "extra": each.extra, "changed": each.changed}
        yield f"  {named(each.source)}: {counts(numbers, 'chunk')}"
    yield from (f"  ... and {rest}" for rest in more(len(sink.drifted_sources), _SHOWN, " sources"))
