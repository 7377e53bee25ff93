"""`chunksink rollback`: back to the previous generation."""

import click

from chunksink.command_line.options import SharedOptions, home_option, open_index
from chunksink.command_line.output import note


@click.command()
@home_option
def command(shared: SharedOptions) -> None:
    """Switch back to the previous generation, in every engine, in one step.

    The last rebuild keeps the generation that it replaced. A rollback makes it live again as it was, with its own
    model; the next sync updates it. A second rollback undoes the first.

    \b
    Example:
      chunksink rollback
    """
    with open_index(shared) as index:
        generation = index.rollback()
    click.echo(
        f"live again: the generation of {generation.created_at} with {generation.model.name}; `chunksink sync` brings "
        "it up to date"
    )
    if former := [name for name in generation.builds if name not in index.config.sinks]:
        note(f"not searched until named in `sinks` again: {', '.join(former)}")
