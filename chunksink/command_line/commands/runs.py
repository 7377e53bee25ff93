"""`chunksink runs`: lists past runs from their records in HOME/runs."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any

import click
import orjson

from chunksink.chunkbus.wording import counts, printable
from chunksink.command_line.options import SharedOptions, config_from, home_option, json_option
from chunksink.command_line.output import Note, show
from chunksink.rebuild.run_records import UNFINISHED, RunRecord, count_runs, find_run, past_runs, read_events

_LENGTH = 300


@click.command()
@click.argument("run_id", metavar="[ID]", required=False)
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most this many, newest first."
)
@home_option
@json_option
def command(shared: SharedOptions, run_id: str | None, limit: int, as_json: bool) -> None:
    """List past runs, newest first. With the ID of a run, or the beginning of an ID, show its whole record.

    A run writes its record as it works. One without an end was killed or is still running; `chunksink status` shows
    whether one is writing. The records are JSON lines in HOME/runs and may be deleted at any time.

    \b
    Examples:
      chunksink runs
      chunksink runs 20260131T1200
      chunksink runs --json | jq '.[] | select(.status == "failed") | .id'
    """
    folder = config_from(shared, uses_sinks=False).home_path
    if run_id is not None:
        events = list(read_events(find_run(folder, run_id)))
        show(as_json, events, _event_lines(events))
        return
    found, total = list(islice(past_runs(folder), limit)), count_runs(folder)
    lines = [_line(run) for run in found]
    if not total:
        lines.append(Note(f"no record of a run in {folder} yet; `ingest`, `sync` and other commands write one"))
    elif total > limit:
        lines.append(Note(f"the newest {limit:,} of {total:,}; --limit N shows more"))
    show(as_json, [asdict(run) for run in found], lines)


def _line(run: RunRecord) -> str:
    """The start time is left out, because the id begins with it."""
    seconds = f"{run.seconds:,.1f} s" if run.seconds is not None else ""
    result = printable(run.error) if run.error else _changes(run.facts)
    command, status = printable(run.command), printable(run.status)
    return f"{run.id}  {command:<16}  {status:<9} {seconds:>9}  {result}".rstrip()


def _changes(facts: Mapping[str, Any]) -> str:
    """What a run changed, if its record counts sources and chunks."""
    families, chunks = (facts[name] if isinstance(facts.get(name), dict) else {} for name in ("families", "chunks"))
    sources = counts({name: families.get(name, 0) for name in ("added", "changed", "removed")})
    written = counts({name: chunks.get(name, 0) for name in ("written", "deleted")}, "chunk")
    if sources or written:
        return ", ".join(filter(None, (sources, written)))
    if families:
        return "nothing changed"
    return f"generation {facts['generation']}" if isinstance(facts.get("generation"), str) else ""


def _event_lines(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in events:
        yield f"{event.get('at', '?')}  {event.get('event', '?')}"
        for fact, value in event.items():
            if fact not in ("at", "event", "run_id"):
                yield f"    {printable(fact):<18} {_value(value)}"
    if not events or events[-1].get("event") != "finished":
        yield f"(no end: {UNFINISHED})"


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return printable(text if len(text) <= _LENGTH else f"{text[:_LENGTH]} ...")
