"""`chunksink restore`: restores a home from a backup."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.wording import counted
from chunksink.command_line.options import SharedOptions, home_option, json_option, open_index
from chunksink.command_line.output import Note, show

if TYPE_CHECKING:
    from chunksink.backup import Backup


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace the records of the home; they are kept in a new folder there.")
@home_option
@json_option
def command(shared: SharedOptions, file: Path, force: bool, as_json: bool) -> None:
    """Restore the backup FILE into an empty home.

    Every file is checked first. The engines are not touched: the next sync compares them with the restored records,
    and repairs what differs. Sources that were erased after the backup must be erased again.

    \b
    Examples:
      chunksink restore /backup/search.tar.gz && chunksink sync
      chunksink restore /backup/search.tar.gz --force
    """
    with open_index(shared, uses_sinks=False) as index:
        restored = index.restore(file, force=force)
    show(as_json, {"file": str(file), **asdict(restored)}, _lines(restored, index.config.home))


def _lines(restored: "Backup", home: str) -> Iterator[str]:
    yield f"{home}: {counted(len(restored.digests), 'file')} restored from the backup of {restored.created_at}"
    if restored.replaced:
        yield f"the replaced files are in {restored.replaced}"
    yield Note("next: `chunksink sync`, which compares the engines with the restored records")
