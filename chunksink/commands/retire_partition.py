"""`chunksink retire-partition`: gives up a partition that is gone for good."""

import click

from chunksink.options import chunks_option, config_from, home_option
from chunksink.output import counted


@click.command()
@click.argument("key")
@chunks_option
@home_option
def command(key: str, chunks: str | None, home: str | None) -> None:
    """Give up the partition KEY, whose chunks file and manifest are gone for good.

    A partition that is missing is no deletion: its sources stay in the index until it is given up here. The next sync
    (with --watch, that after the next commit) removes those that no other partition holds, and stops at the brake if
    they are many.

    \b
    Example:
      chunksink retire-partition 2024-01
    """
    from chunksink.index import Index

    with Index(config_from(chunks=chunks, home=home)) as index:
        families = index.retire_partition(key)
    click.echo(f"partition {key} is given up; the next sync removes {counted(families, 'source')} that only it held")
