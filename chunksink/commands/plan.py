"""`chunksink plan`: what a sync would do."""

import math

import click

from chunksink.options import adopt_option, chunks_option, home_option, json_option, open_index
from chunksink.output import counted, print_json, printable
from chunksink.rebuild.forecast import Forecast

_SHOWN = 10


@click.command()
@chunks_option
@home_option
@adopt_option
@json_option
def command(adopt: bool, as_json: bool) -> None:
    """Show what a sync would do, and what it would cost. The engines are only looked at.

    `sync --plan HASH` then carries out exactly this plan in the live index, or refuses because the world has moved;
    the first 12 digits are enough. Sinks without a build, and a first index, are made by a `sync` without --plan.
    Where a sync would stop because a large share of the index goes, the flag that lets it go on is told. Not where the
    home has no records of an index: the first sync asks the engines whether there is one, and may stop then.
    Seconds are told once a run has measured this machine; a cost, where the setting token_price says what a million
    tokens cost.

    \b
    Examples:
      chunksink plan
      chunksink plan --json | jq .families
    """

    with open_index() as index:
        found = index.plan(adopt=adopt)
    if as_json:
        print_json(found.as_json())
    else:
        _print(found)


def _money(cost: float) -> str:
    """Cents; of less than one the first two digits."""
    digits = 2 if cost <= 0 else max(2, 1 - math.floor(math.log10(cost)))
    return f"{cost:,.{digits}f}"


def _print(found: Forecast) -> None:
    families = found.families
    in_metadata = f", {families.metadata_only:,} of them in metadata alone" if families.metadata_only else ""
    for number, what, names in (
        (families.added, "to add", found.added),
        (families.changed, f"to change{in_metadata}", found.changed),
        (families.removed, "to remove", found.removed),
    ):
        if number:
            click.echo(f"{counted(number, 'source')} {what}")
            for name in names[:_SHOWN]:
                click.echo(f"  {printable(name) or '(documents that name no source)'}")
            if number > _SHOWN:
                click.echo(f"  ... and {number - _SHOWN:,} more")
    click.echo(f"{counted(families.unchanged, 'source')} unchanged")
    if found.superseded:
        click.echo(f"{counted(found.superseded, 'older version')} left out")
    if found.held:
        click.echo(f"{counted(found.held, 'source')} held as they are; `chunksink status` says why")
    if found.chunks:
        click.echo(
            f"{counted(found.chunks, 'chunk')} to write: {found.cached:,} vectors cached, {found.missing:,} to compute"
        )
    if found.missing:
        cost = "" if found.cost is None else f", which costs {_money(found.cost)}"
        click.echo(f"about {counted(found.tokens, 'token')} to embed{cost}")
    if found.seconds:
        click.echo(f"about {found.seconds:,.0f} s at the pace of the last run")
    for name, changed in found.settings.items():
        click.echo(f"{name}: index settings to change: {', '.join(changed)}")
    if found.rebuild_due:
        click.echo(f"a rebuild is due: {found.rebuild_due}")
    for name, sink in found.sinks.items():
        if sink.filled:
            click.echo(f"{name}: {counted(sink.families.added, 'source')} to write, {printable(sink.filled)}")
    if found.brake:
        click.echo(
            f"a sync would stop at the brake: {found.brake.removed:,} of the {found.brake.total:,} sources in the "
            f"index would be removed; if they are meant to go, `chunksink sync {found.brake.flag}` goes on, also with "
            "--plan"
        )
    if found.hash:
        click.echo(f"plan {found.hash}")
    else:
        click.echo("there is no index yet; `chunksink sync` makes it")
