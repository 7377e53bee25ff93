"""`chunksink retire-partition`: retires a partition that will not come back."""

import click

from chunksink.chunkbus.wording import counted
from chunksink.command_line.options import SharedOptions, index_options, open_index
from chunksink.command_line.output import note


@click.command()
@click.argument("key")
@index_options
def command(shared: SharedOptions, key: str) -> None:
    """Retire the partition KEY, whose chunks file and manifest will not come back.

    The sources of a missing partition stay in the index until it is retired. Then the next sync removes those that no
    other partition has. A running `sync --watch` does so after the next commit. If they are a large share of the index,
    the sync stops and names the option that allows it. The partition's tombstones no longer apply: sources
    that they withdrew return if another partition has them.

    \b
    Example:
      chunksink retire-partition 2024-01
    """
    with open_index(shared) as index:
        retired = index.retire_partition(key)
    removed = counted(retired.removed, "source")
    click.echo(f"partition {key} is retired; the next sync removes {removed} that only it had")
    if retired.returning:
        returning = f"{counted(retired.returning, 'source')} that this partition withdrew and other partitions have"
        note(f"the next sync restores {returning}; to prevent that, rewrite those partitions without them")
