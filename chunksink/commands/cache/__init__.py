"""`chunksink cache`: the cache of vectors, looked at and looked after. One file for each kind of work."""

import click

from chunksink.commands.cache.exchange import export_command, import_command
from chunksink.commands.cache.gc import gc_command
from chunksink.commands.cache.look import long_texts_command, show_command, stats_command
from chunksink.commands.cache.verify import verify_command


@click.group()
def command() -> None:
    """Look after the cache of vectors: every text that was embedded once, by text hash and model.

    It lies in HOME/vectors.db. A vector is served only after its checksum matched, and computed once for each model;
    the cache can be deleted at any time, which costs computing everything again.
    """


for each in (
    stats_command,
    long_texts_command,
    show_command,
    verify_command,
    gc_command,
    export_command,
    import_command,
):
    command.add_command(each)
