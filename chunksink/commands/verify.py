"""`chunksink verify`: what the engines really hold, compared with the chunks."""

from dataclasses import replace

import click

from chunksink.exits import Exit
from chunksink.options import adopt_option, allow_deletions_option, chunks_option, home_option, json_option, open_index
from chunksink.output import counted, print_json, printable
from chunksink.rebuild.removals import LEAST_REMOVALS
from chunksink.rebuild.verify import SinkVerified, Verified
from chunksink.summary import exit_code, print_report, unbuilt_lines, unconfigured_lines

_SHOWN = 5


@click.command()
@chunks_option
@home_option
@click.option("--deep", is_flag=True, help="Also compare every vector with the cached one of its text.")
@click.option("--repair", is_flag=True, help="Write what is missing or wrong, remove what is extra, verify again.")
@allow_deletions_option
@adopt_option
@json_option
def command(deep: bool, repair: bool, allow_deletions: int, adopt: bool, as_json: bool) -> int:
    """Compare what the engines hold with what the chunks say, document by document, and repair it.

    Every document is read through the engine's own interface; our records are not asked. Named are ids that are
    missing, extra or changed. Documents that an engine refused are told apart. Sources that are held, since their
    chunks are missing or invalid, are compared with what was last read of them, and left as they are. The digest
    depends on nothing but the content: two homes that hold the same show the same one.
    Exits with 4 when something is wrong, and was not repaired; else with 3 where sources are held.

    \b
    Examples:
      chunksink verify
      chunksink verify --deep --repair
      chunksink verify --json | jq '.sinks[].digest'
    """

    with open_index() as index:
        found = index.verify(deep=deep)
        repaired = None
        if repair and not found.ok:
            if not as_json:
                _print(found, index.config.why_these_sinks)
            repaired = index.repair(adopt=adopt, allow_deletions=allow_deletions, deep=deep)
            found = index.verify(deep=deep)
    if as_json:
        print_json(found.as_json() | ({"repair": repaired.as_json()} if repaired else {}))
    else:
        if repaired is not None:
            print_report(repaired, as_json=False, verb="repaired")
        _print(found, index.config.why_these_sinks)
        if not repair and any(sink.unjudged for sink in found.sinks.values()):
            click.echo("`chunksink verify --deep --repair` computes what the cache has lost, and compares", err=True)
        if not repair and any(_can_be_repaired(sink) for sink in found.sinks.values()):
            click.echo(_remedy(found), err=True)
    if found.unknown:
        return Exit.ENGINE
    if not found.ok:
        return Exit.DRIFT
    if found.held or found.unread:
        return Exit.INVALID_INPUT
    return exit_code(repaired) if repaired is not None else Exit.OK


def _remedy(found: Verified) -> str:
    """A source that goes has at least one document that is extra."""
    remedy = "`chunksink verify --repair` puts it right"
    if all(len(sink.extra) < LEAST_REMOVALS for sink in found.sinks.values()):
        return remedy
    return (
        f"{remedy}; where a large share of the sources would be removed it stops before it writes, and says the "
        "number that --allow-deletions wants"
    )


def _print(found: Verified, why_these_sinks: str | None) -> None:
    for name, sink in found.sinks.items():
        refused = f", {counted(len(sink.refused), 'document')} refused" if sink.refused else ""
        click.echo(
            f"{name}: {counted(sink.chunks, 'chunk')} of {counted(sink.families, 'source')}, {_state(sink)}{refused}"
        )
        _print_drift(sink)
        if not sink.shown and name not in found.failed:
            click.echo("  other programs do not find it: its public name shows nothing, or another build", err=True)
        if sink.unjudged:
            lost = counted(sink.unjudged, "vector")
            click.echo(f"  {lost} could not be compared: the cache has none of their texts", err=True)
        if sink.settings:
            click.echo(f"  its settings are not as configured: {', '.join(sink.settings)}", err=True)
        click.echo(f"  digest {sink.digest}")
    for name, error in found.failed.items():
        click.echo(f"{name}: {error}", err=True)
    for line in (*_held_lines(found), *unconfigured_lines(found.unconfigured), *unbuilt_lines(found.unbuilt)):
        click.echo(line, err=True)
    if found.unconfigured and why_these_sinks:
        click.echo(why_these_sinks, err=True)


def _state(sink: SinkVerified) -> str:
    if sink.ok:
        return "as it should be"
    is_only_unproved = replace(sink, unjudged=0).ok
    return "as it should be, but not all vectors are proved" if is_only_unproved else "not as it should be"


def _held_lines(found: Verified) -> list[str]:
    lines = [f"partition {printable(key)} is missing or invalid" for key in found.unread[:_SHOWN]]
    if len(found.unread) > _SHOWN:
        lines.append(f"... and {len(found.unread) - _SHOWN:,} more")
    if found.held:
        lines.append(f"{counted(found.held, 'source')} held as they are; `chunksink status` says why")
    if wrong := max((sink.held for sink in found.sinks.values()), default=0):
        lines.append(
            f"{counted(wrong, 'document')} of those named above cannot be put right now, for they are of held sources"
        )
    return lines


def _can_be_repaired(sink: SinkVerified) -> bool:
    """Whether a repair would change anything: what is held stays."""
    wrong = len(sink.missing) + len(sink.extra) + len(sink.changed)
    return bool(not sink.shown or sink.settings or wrong > sink.held)


def _print_drift(sink: SinkVerified) -> None:
    for kind, ids in (("missing", sink.missing), ("extra", sink.extra), ("changed", sink.changed)):
        for id in ids[:_SHOWN]:
            click.echo(f"  {kind} {printable(id)}", err=True)
        if len(ids) > _SHOWN:
            click.echo(f"  ... and {len(ids) - _SHOWN:,} more {kind}", err=True)
