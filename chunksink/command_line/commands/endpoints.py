"""`chunksink endpoints`: shows where the live index is, for programs that query the engines themselves."""

from contextlib import ExitStack

import click

from chunksink.chunkbus.wording import printable
from chunksink.command_line.options import SharedOptions, config_from, home_option, json_option
from chunksink.command_line.output import labelled, show
from chunksink.rebuild.state import State
from chunksink.sinks.capabilities import SupportsAddress, capability
from chunksink.wiring import open_one_sink


@click.command()
@home_option
@json_option
def command(shared: SharedOptions, as_json: bool) -> None:
    """Show the live index, collection or file of each configured engine, and the model that its vectors are made with.

    For programs that query the engines themselves. A rebuild makes new builds: call this again after each, or use
    Meilisearch's public index name, which always shows the live build. Before you query a vector store, embed the query
    with this model. No engine is called, and no key is shown.

    \b
    Examples:
      chunksink endpoints
      chunksink endpoints --json | jq -r .sinks.chroma.path
      chunksink endpoints --json | jq -r .sinks.meilisearch.index
    """
    config = config_from(shared)
    with State.existing(config.home_path) as state:
        live = state.live()
    with ExitStack() as stack:
        sinks = {}
        for name, build in live.builds.items():
            if name not in config.sinks:  # it is not kept up to date
                continue
            # None if a sink of another package does not support it
            addressed = capability(open_one_sink(config, stack, name), SupportsAddress)
            sinks[name] = {"build": build, **(addressed.address(build) if addressed is not None else {})}
    model, size = None, ""
    if live.holds_vectors:
        dimension = live.model.dimension_in_index
        model = {"name": live.model.name, "fingerprint": live.model_fingerprint, "dimension": dimension}
        size = f", {dimension:,} dimensions"
    lines = [labelled("generation", live.id), labelled("model", printable(live.model.name) + size)]
    for name, address in sinks.items():
        lines += [name, *(f"  {part:<12}{printable(value)}" for part, value in address.items())]
    show(as_json, {"generation": live.id, "model": model, "sinks": sinks}, lines)
