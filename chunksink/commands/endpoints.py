"""`chunksink endpoints`: where the live index is, for programs that ask the engines themselves."""

from contextlib import ExitStack
from typing import Any

import click

from chunksink.options import config_from, home_option, json_option
from chunksink.output import print_json, printable
from chunksink.session import open_one_sink


@click.command()
@home_option
@json_option
def command(home: str | None, as_json: bool) -> None:
    """Name the live index, collection or file of each engine, and the model that its vectors are made with.

    For programs that ask the engines themselves. A rebuild makes new builds: ask again after each, or keep to
    Meilisearch's index, whose public name always has the live one. Queries to a vector store must be embedded by the
    model that is named here. Nothing is asked of any engine, and no key is shown.

    \b
    Examples:
      chunksink endpoints
      chunksink endpoints --json | jq -r .sinks.chroma.path
      chunksink endpoints --json | jq -r .sinks.meilisearch.index
    """
    from chunksink.rebuild.state import State

    config = config_from(home=home)
    with State.existing(config.home_path) as state:
        live = state.live()
    with ExitStack() as stack:
        sinks = {
            name: {"build": build, **_address(open_one_sink(config, stack, name), build)}
            for name, build in live.builds.items()
        }
    model = None
    if live.holds_vectors:
        model = {"name": live.model.name, "fingerprint": live.model_fingerprint, "dimension": live.model.dimension}
    if as_json:
        print_json({"generation": live.id, "model": model, "sinks": sinks})
        return
    click.echo(f"generation  {live.id}")
    size = f", {live.model.dimension:,} dimensions" if live.holds_vectors else ""
    click.echo(f"model       {printable(live.model.name)}{size}")
    for name, where in sinks.items():
        click.echo(name)
        for part, value in where.items():
            click.echo(f"  {part:<12}{printable(value)}")


def _address(sink: Any, build_id: str) -> dict[str, str]:
    """What the sink says of itself; one of another package need not say anything."""
    from chunksink.sinks.capabilities import SupportsAddress, capability

    addressed = capability(sink, SupportsAddress)
    return dict(addressed.address(build_id)) if addressed is not None else {}
