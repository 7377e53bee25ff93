"""`chunksink backup`: copies the records of a home and its cache of vectors to one file."""

from dataclasses import asdict
from pathlib import Path

import click

from chunksink.chunkbus.wording import counted, sized
from chunksink.command_line.options import SharedOptions, home_option, json_option, open_index
from chunksink.command_line.output import show


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@home_option
@json_option
def command(shared: SharedOptions, file: Path, as_json: bool) -> None:
    """Copy the records, the cache of vectors and the ledger of the home to FILE, a compressed tar.

    Other runs may write meanwhile. FILE appears only when it is complete; an older backup of that name is replaced
    then. It contains texts, so only you can read it. Not included: the chunks, chunksink.toml and the data of the
    engines, which a sync writes again.

    \b
    Examples:
      chunksink backup /backup/search.tar.gz
      chunksink backup "/backup/search-$(date +%A).tar.gz"
    """
    with open_index(shared, uses_sinks=False) as index:
        written = index.backup(file)
    size = file.stat().st_size
    line = f"{file}: {counted(len(written.digests), 'file')} of {index.config.home}, {sized(size)}"
    show(as_json, {"file": str(file), "bytes": size, **asdict(written)}, [line])
