"""`chunksink plan`: what a sync would do."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from chunksink.options import adopt_option, chunks_option, home_option, json_option, open_index
from chunksink.output import counted, more, printable, show

if TYPE_CHECKING:
    from chunksink.index import Index
    from chunksink.rebuild.forecast import Forecast


_SHOWN = 10


@click.command()
@chunks_option
@home_option
@adopt_option
@json_option
def command(adopt: bool, as_json: bool) -> None:
    """Show what a sync would do and cost. Nothing is written to the engines.

    `sync --plan HASH` executes exactly this plan on the live index, or refuses if chunks or engines have changed. The
    first 12 digits are enough. Only a `sync` without --plan makes a first index or fills a new sink.
    If a sync would stop because it would remove a large share of the index, the plan names the flag that allows it.
    Without records of an index in the home this is not known: the first sync asks the engines.
    Seconds are shown after a run has measured this machine, a cost if the setting token_price is set.

    \b
    Examples:
      chunksink plan
      chunksink plan --json | jq .families
    """

    with open_index() as index:
        print_plan(index, adopt=adopt, as_json=as_json)


def print_plan(index: "Index", *, adopt: bool, as_json: bool) -> None:
    found = index.plan(adopt=adopt)
    show(as_json, found.as_json(), _lines(found))


def _money(cost: float) -> str:
    """With cents; below one cent with two significant digits."""
    digits = 2 if cost <= 0 else max(2, 1 - math.floor(math.log10(cost)))
    return f"{cost:,.{digits}f}"


def _lines(found: "Forecast") -> Iterator[str]:
    families = found.families
    for number, what, names in (
        (families.added, "to add", found.added),
        (families.changed, "to change", found.changed),
        (families.removed, "to remove", found.removed),
    ):
        if number:
            yield f"{counted(number, 'source')} {what}"
            yield from (f"  {printable(name) or '(documents that name no source)'}" for name in names[:_SHOWN])
            yield from (f"  ... and {rest}" for rest in more(number, _SHOWN))
    yield f"{counted(families.unchanged, 'source')} unchanged"
    if found.superseded:
        yield f"{counted(found.superseded, 'older version')} left out"
    if found.held:
        yield f"{counted(found.held, 'source')} held as they are; `chunksink status` says why"
    if found.chunks:
        repeated = f", {found.repeated:,} with the same text as another" if found.repeated else ""
        vectors = f"{found.cached:,} vectors cached, {found.missing:,} to compute{repeated}"
        most = "up to " if families.changed else ""  # what an engine holds already is not sent again
        yield f"{most}{counted(found.chunks, 'chunk')} to write: {vectors}"
    if found.missing:
        cost = "" if found.cost is None else f", which costs {_money(found.cost)}"
        yield f"about {counted(found.tokens, 'token')} to embed{cost}"
    if found.seconds:
        yield f"about {found.seconds:,.0f} s at the pace of the last run"
    for name, changed in found.settings.items():
        yield f"{name}: index settings to change: {', '.join(changed)}"
    if found.rebuild_due:
        yield f"a rebuild is due: {found.rebuild_due}"
    for name, sink in found.sinks.items():
        if sink.filled:
            yield f"{name}: {counted(sink.families.added, 'source')} to write, {printable(sink.filled)}"
    if brake := found.brake:
        removed = f"{brake.sources} would be removed or lose most of their chunks"
        remedy = f"if they are meant to go, `chunksink sync {brake.flag}` goes on, also with --plan"
        yield f"a sync would stop at the brake: {removed}; {remedy}"
    yield f"plan {found.hash}" if found.hash else "there is no index yet; `chunksink sync` makes it"
