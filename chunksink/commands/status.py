"""`chunksink status`: what is live, held, due or under way, without asking any engine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable
from chunksink.summary import unbuilt_lines, unconfigured_lines
from chunksink.wiring import status_of

if TYPE_CHECKING:
    from rebuild.status import BuildStatus, Status

_SHOWN = 3


@click.command()
@chunks_option
@home_option
@click.option("--all", "everything", is_flag=True, help="Name every held source, partition and finding, not the first.")
@json_option
def command(chunks: str | None, home: str | None, everything: bool, as_json: bool) -> None:
    """Show what readers see, what is held back and why, whether a sync or a rebuild is due, and what is under way.

    It is told from chunksink's own records in a moment; no engine is asked. `chunksink verify` asks them, `chunksink
    plan` says what a sync would do, and `chunksink doctor` whether everything is there to do it.

    \b
    Examples:
      chunksink status
      chunksink status --json | jq '.sinks.fts.to_write'
      chunksink status --json | jq -e '.current and .rebuild_due == null' && echo "nothing to do"
    """
    config = config_from(chunks=chunks, home=home)
    found = status_of(config, -1 if as_json or everything else _SHOWN)
    if as_json:
        print_json(_report(found))
    else:
        _print(found, None if everything else _SHOWN)
        if found.unconfigured and config.why_these_sinks:
            click.echo(config.why_these_sinks)


def _report(found: "Status") -> dict[str, Any]:
    return {"current": found.is_current, **asdict(found)}


def _print(found: "Status", shown: int | None) -> None:
    live = found.live
    click.echo(f"live        {live.id}, made {live.created_at}")
    which = f" ({live.model_fingerprint:.12})" if live.holds_vectors else ""
    click.echo(f"model       {printable(live.model)}{which}")
    for name, sink in found.sinks.items():
        click.echo(f"{name:<11} {counted(sink.families, 'source')}, {counted(sink.chunks, 'chunk')}{_behind(sink)}")
    if found.previous:
        click.echo(f"previous    {found.previous.id}; `chunksink rollback` shows it again")
    else:
        click.echo("previous    none is kept, so there is nothing to roll back to")
    bus = found.bus
    superseded = f", {bus.superseded:,} superseded" if bus.superseded else ""
    click.echo(
        f"chunks      {printable(bus.path)}: {counted(bus.families, 'source')}, "
        f"{counted(bus.chunks, 'chunk')}{superseded}"
    )
    if found.last_run:
        last = found.last_run
        click.echo(f"last run    {last.command}, {last.started_at}: {last.status} (`chunksink runs {last.id}`)")
    click.echo()
    for line in troubles(found, shown) or ["up to date: a sync would find nothing to do"]:
        click.echo(line)


def troubles(found: "Status", shown: int | None) -> list[str]:
    """What is under way, amiss, held or due, each with what to do about it."""
    return [*_under_way(found), *_bus_troubles(found, shown), *_held(found, shown), *_due(found), *_drift(found)]


def _drift(found: "Status") -> list[str]:
    """Our records would say that all is well."""
    last = found.last_run
    if last is None or (last.command, last.status) != ("verify", "drift"):
        return []
    return ["the last verify did not find everything as it should be: `chunksink verify` says what, and what to do"]


def _behind(sink: "BuildStatus") -> str:
    parts = [
        f"{number:,} {what}"
        for number, what in (
            (sink.to_write, "to write"),
            (sink.to_remove, "to remove"),
            (sink.open_intents, "begun or to be sent again"),
            (sink.refused, "refused"),
        )
        if number
    ]
    return f"  ({', '.join(parts)})" if parts else ""


def _under_way(found: "Status") -> list[str]:
    lines = []
    if "writer" in found.locks:
        lines.append("a run is writing to this home now")
    if found.unfinished:
        done = ", ".join(f"{name} {chunks:,}" for name, chunks in found.unfinished.chunks.items())
        what = "is under way" if found.unfinished.under_way else "was stopped; `chunksink rebuild` goes on with it"
        lines.append(f"rebuild {found.unfinished.generation.id} {what} (chunks so far: {done})")
    elif "rebuild" in found.locks:
        lines.append("a rebuild is under way")
    if found.begun_flip:
        lines.append("a run died while it changed what readers see; the next sync ends it: `chunksink sync`")
    return lines


def _bus_troubles(found: "Status", shown: int | None) -> list[str]:
    bus = found.bus
    if not bus.found:
        return [f"no chunks at {printable(bus.path)}: name their folder with --chunks DIR"]
    lines = []
    for broken in bus.broken[:shown]:
        if broken.state == "missing":
            lines.append(
                f"partition {broken.key} is missing, {counted(broken.families, 'source')} held: bring it back, or "
                f"`chunksink retire-partition {broken.key}`"
            )
        else:
            lines.append(
                f"partition {broken.key} is invalid, {counted(broken.families, 'source')} held: "
                f"{printable(broken.finding)}; `chunksink validate` shows all"
            )
    lines += _more(len(bus.broken), shown, "partition")
    if bus.pending:
        names = ", ".join(bus.pending[:shown]) + (", ..." if shown and len(bus.pending) > shown else "")
        new = f"{counted(len(bus.pending), 'partition')} new, changed or gone since the last sync"
        lines.append(f"{new}: {names}; run `chunksink sync`")
    elif any(sink.to_write or sink.to_remove or sink.open_intents for sink in found.sinks.values()):
        lines.append(f"not every engine has what the chunks say; {_sync(found)}")
    return lines


def _sync(found: "Status") -> str:
    """What to do about sources that wait, some of which may be a large share that would go."""
    brake = found.brake
    if brake is None:
        return "run `chunksink sync`"
    return (
        f"a sync would remove {brake.removed:,} of the {brake.total:,} sources in the index, and stop at that number: "
        f"`chunksink plan` names some, `chunksink sync {brake.flag}` lets them go"
    )


def _held(found: "Status", shown: int | None) -> list[str]:
    if not found.held:
        return []
    told = [f"held as it was: source {held.family}: {printable(held.detail)}" for held in found.held_families]
    return [*told, *_more(found.held, shown, "held source")]


def _due(found: "Status") -> list[str]:
    lines = []
    refused = sum(sink.refused for sink in found.sinks.values())
    if refused:
        lines.append(f"{counted(refused, 'document')} refused by engines; `chunksink dead-letters` lists them")
    lines += unconfigured_lines(found.unconfigured) + unbuilt_lines(found.unbuilt)
    if found.rebuild_due:
        lines.append(f"a rebuild is due: {found.rebuild_due}; `chunksink rebuild`")
    return lines


def _more(number: int, shown: int | None, noun: str) -> list[str]:
    if shown is None or number <= shown:
        return []
    return [f"... and {counted(number - shown, f'more {noun}')}; --all names them"]
