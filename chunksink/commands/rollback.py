"""`chunksink rollback`: back to the previous generation."""

import click

from chunksink.options import config_from, home_option
from chunksink.summary import tell_fault


@click.command()
@home_option
def command(home: str | None) -> None:
    """Switch back to the previous generation, in every engine, in one step.

    The last rebuild keeps the generation that it replaced. It comes back as it was then, with its own model; the next
    sync updates it. A second rollback undoes the first.

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
