"""`chunksink runs`: what past runs did, from the records below HOME/runs."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json, printable

if TYPE_CHECKING:
    from chunksink.rebuild.run_records import RunRecord

_FAMILIES = ("added", "changed", "removed")
_LENGTH = 300


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many, newest first."
)
@home_option
@json_option
def command(run_id: str | None, limit: int, home: str | None, as_json: bool) -> None:
    """List past runs, newest first; with the ID of a run, or its beginning, show all that it told.

    Every run writes a record as it goes, so that one which was killed can be read too: it has no end, just as one
    that is still running (`chunksink status` says whether one is writing). The records are plain JSON lines and may
    be deleted at any time.

    \b
    Examples:
      chunksink runs
      chunksink runs 20260131T1200
      chunksink runs --json | jq '.[] | select(.status == "failed") | .id'
    """
    from chunksink.rebuild import run_records

    folder = config_from(home=home).home_path
    if run_id is not None:
        file = run_records.find_run(folder, run_id)
        _show(file, as_json)
        return
    found = list(run_records.past_runs(folder, limit))
    if as_json:
        print_json([asdict(run) for run in found])
        return
    for run in found:
        click.echo(_line(run))
    total = run_records.count_runs(folder)
    if not total:
        click.echo(f"no runs in {folder} yet; every command that changes something writes one", err=True)
    elif total > limit:
        click.echo(f"the newest {limit:,} of {total:,}; ask for more with --limit", err=True)


def _line(run: "RunRecord") -> str:
    seconds = f"{run.seconds:>8.1f} s" if run.seconds is not None else f"{'':>10}"
    told = printable(run.error) if run.error else _changes(run.facts)
    line = f"{run.id}  {run.started_at[:19]}  {printable(run.command):<16}  {printable(run.status):<9}{seconds}  {told}"
    return line.rstrip()


def _changes(facts: Mapping[str, Any]) -> str:
    """What a run changed, as far as it is one of those that count sources and chunks."""
    families, chunks = _table(facts, "families"), _table(facts, "chunks")
    parts = [f"{families[name]:,} {name}" for name in _FAMILIES if families.get(name)]
    parts += [f"{counted(chunks[name], 'chunk')} {name}" for name in ("written", "deleted") if chunks.get(name)]
    if not parts and families:
        return "nothing changed"
    if not parts and isinstance(facts.get("generation"), str):
        parts = [f"generation {facts['generation']}"]
    return ", ".join(parts)


def _table(facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = facts.get(name)
    return found if isinstance(found, dict) else {}


def _show(file: Path, as_json: bool) -> None:
    from chunksink.rebuild import run_records

    told = list(run_records.read_events(file))
    if as_json:
        print_json(told)
        return
    over = bool(told) and told[-1].get("event") == "finished"
    for event in told:
        click.echo(f"{event.pop('at', '?')}  {event.pop('event', '?')}")
        event.pop("run_id", None)
        for fact, value in event.items():
            click.echo(f"    {printable(fact):<18} {_value(value)}")
    if not over:
        click.echo(f"(no end: {run_records.UNFINISHED})")


def _value(value: Any) -> str:
    import orjson

    shown = value if isinstance(value, str) else orjson.dumps(value).decode()
    return printable(shown if len(shown) <= _LENGTH else f"{shown[:_LENGTH]} ...")
