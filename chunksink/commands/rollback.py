"""`chunksink rollback`: readers see the generation before again."""

import click

from chunksink.options import config_from, home_option
from chunksink.summary import tell_fault


@click.command()
@home_option
def command(home: str | None) -> None:
    """Show readers the generation before again, in every engine, in one step.

    The last rebuild keeps the generation that it replaced. It comes back as it was then, with its own model; the next
    sync brings it to what the chunks say now. A second rollback undoes the first.

    \b
    Example:
      chunksink rollback
    """
    from chunksink.index import Index

    with Index(config_from(home=home), on_fault=tell_fault) as index:
        generation = index.rollback()
    click.echo(
        f"live again: the generation of {generation.created_at} with {generation.model.name}; `chunksink sync` brings "
        "it up to date"
    )
