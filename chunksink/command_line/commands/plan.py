"""`chunksink plan`: what a sync would do."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.wording import counted, more, named, printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, index_options, json_option, open_index
from chunksink.command_line.output import Note, show
from chunksink.command_line.summary import bus_lines

if TYPE_CHECKING:
    from chunksink.index import Index
    from chunksink.rebuild.forecast import Forecast

_SHOWN = 10


@click.command()
@index_options
@click.option("--adopt", is_flag=True, help="Show the plan of `sync --adopt`.")
@json_option
def command(shared: SharedOptions, adopt: bool, as_json: bool) -> int:
    """Show what a sync would do and cost. Nothing is written to the engines, except that an interrupted switch
    of generations is completed.

    `sync --plan HASH` executes exactly this plan on the live index, or refuses if chunks or engines have changed. The
    first 12 digits are enough. For a first index or a new sink, a plan has no hash: run `sync` without --plan. If a
    sync would stop because it would remove a large share of the index, the plan names the option that allows it. If
    the records of the home were lost, the plan cannot foresee that a sync would stop; the sync names the option then.
    The duration is shown once a run has been timed on this machine, and the cost if an endpoint and token_price are
    set. Exits with 3 if partitions are missing or invalid, or sources are held.

    \b
    Examples:
      chunksink plan
      chunksink plan --json | jq .families
    """
    with open_index(shared) as index:
        return print_plan(index, adopt=adopt, as_json=as_json)


def print_plan(index: "Index", *, adopt: bool, as_json: bool) -> Exit:
    """Returns the exit code."""
    forecast = index.plan(adopt=adopt)
    show(as_json, forecast.as_json(), _lines(forecast))
    is_incomplete = forecast.errors or forecast.missing_partitions or forecast.held
    return Exit.INVALID_INPUT if is_incomplete else Exit.OK


def _money(cost: float) -> str:
    """Two decimals; below ten cents, two significant digits."""
    digits = 2 if cost <= 0 else max(2, 1 - math.floor(math.log10(cost)))
    return f"{cost:,.{digits}f}"


def _lines(forecast: "Forecast") -> Iterator[str]:
    families = forecast.families
    for number, what, names in (
        (families.added, "to add", forecast.added),
        (families.changed, "to change", forecast.changed),
        (families.removed, "to remove", forecast.removed),
    ):
        if number:
            yield f"{counted(number, 'source')} {what}"
            yield from (f"  {named(name)}" for name in names[:_SHOWN])
            yield from (f"  ... and {rest}" for rest in more(number, _SHOWN))
    yield f"{counted(families.unchanged, 'source')} unchanged"
    if forecast.superseded:
        yield f"{counted(forecast.superseded, 'older version')} left out"
    if forecast.held:
        yield f"{counted(forecast.held, 'source')} held, unchanged in the index; `chunksink status` shows why"
    if forecast.chunks:
        repeated = f", {forecast.repeated:,} with the same text as another" if forecast.repeated else ""
        vectors = f"{forecast.cached:,} vectors cached, {forecast.missing:,} to compute{repeated}"
        up_to = "up to " if families.changed else ""  # unchanged documents are not sent again
        yield f"{up_to}{counted(forecast.chunks, 'chunk')} to write: {vectors}"
    if forecast.missing:
        cost = "" if forecast.cost is None else f", which costs {_money(forecast.cost)}"
        yield f"about {counted(forecast.tokens, 'token')} to embed{cost}"
    if forecast.seconds:
        yield f"about {forecast.seconds:,.0f} s at the pace of the last run"
    for name, changed in forecast.settings.items():
        yield f"{name}: index settings to change: {', '.join(changed)}"
    yield from map(Note, bus_lines(forecast))
    if forecast.rebuild_due:
        yield f"a rebuild is due: {forecast.rebuild_due}"
    for name, sink in forecast.sinks.items():
        if sink.filled:
            yield f"{name}: {counted(sink.families.added, 'source')} to write, {printable(sink.filled)}"
    if brake := forecast.brake:
        removed = f"{brake.sources} would be removed or lose most of their chunks"
        remedy = f"if that is intended, `chunksink sync {brake.flag}` continues, also with --plan"
        yield f"a sync would stop at the brake: {removed}; {remedy}"
    yield f"plan {forecast.hash}" if forecast.hash else "an engine has no build yet; `chunksink sync` creates it"
