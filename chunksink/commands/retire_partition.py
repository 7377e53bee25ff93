"""`chunksink retire-partition`: gives up a partition that is gone for good."""

import click

from chunksink.options import chunks_option, home_option, open_index
from chunksink.output import counted


@click.command()
@click.argument("key")
@chunks_option
@home_option
def command(key: str) -> None:
    """Give up the partition KEY, whose chunks file and manifest are gone for good.

    The sources of a missing partition stay in the index until you give it up. The next sync (with --watch, the one
    after the next commit) removes those that no other partition has; it stops at the brake if they are many. The
    partition's tombstones go, too: sources that they withdrew return if another partition has them.

    \b
    Example:
      chunksink retire-partition 2024-01
    """

    with open_index() as index:
        retired = index.retire_partition(key)
    gone = counted(retired.removed, "source")
    click.echo(f"partition {key} is given up; the next sync removes {gone} that only it held")
    if retired.returning:
        it = "it" if retired.returning == 1 else "them"
        back = f"{counted(retired.returning, 'source')} that this one had withdrawn and another partition holds"
        click.echo(f"it brings back {back}: withdraw {it} there too", err=True)
