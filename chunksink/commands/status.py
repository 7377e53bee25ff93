"""`chunksink status`: what is live, held, due or under way, without asking any engine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable
from chunksink.session import status_of
from chunksink.troubles import troubles

if TYPE_CHECKING:
    from chunksink.rebuild.status import BuildStatus, HomeStatus

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


def _report(found: "HomeStatus") -> dict[str, Any]:
    return {"current": found.is_current, **asdict(found)}


def _print(found: "HomeStatus", shown: int | None) -> None:
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
