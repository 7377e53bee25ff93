"""`chunksink cache export | import`: vectors from one machine to another."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.exits import Exit
from chunksink.home_cache import existing_cache, find_encoder
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable, sized
from chunksink.rebuild.state import cache_file

if TYPE_CHECKING:
    from chunksink.embeddings.exchange import ImportReport


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace FILE where it is there already.")
@home_option
@json_option
def export_command(file: Path, replace: bool, home: str | None, as_json: bool) -> None:
    """Write all sound vectors of the cache to FILE, with a checksum, for another machine to import.

    \b
    Example:
      chunksink cache export vectors.bin
    """
    from chunksink.embeddings.exchange import export_cache

    with existing_cache(config_from(home=home), read_only=True) as cache:
        report = export_cache(cache, file, replace=replace)
    if as_json:
        print_json(asdict(report))
        return
    click.echo(f"{click.format_filename(file)}: {counted(report.rows, 'vector')}, {sized(report.file_bytes)}")
    click.echo(f"sha256 {report.sha256}")
    if report.skipped:
        click.echo(f"{counted(report.skipped, 'bad row')} left out; see `chunksink cache verify`", err=True)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@chunks_option
@home_option
@json_option
def import_command(file: Path, chunks: str | None, home: str | None, as_json: bool) -> int:
    """Take over the vectors of an exported FILE, after proving that they are what they say.

    Of each model and precision 16 texts that stand in your chunks (all, where there are fewer) are embedded again
    here; a cosine below 0.999 refuses the file. Vectors of a model that this machine does not have, or whose texts
    it does not have, cannot be proved and are left out; then the exit code is 6.

    \b
    Example:
      chunksink cache import vectors.bin --chunks /data/chunks
    """
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.exchange import import_cache
    from chunksink.embeddings.settings import EncoderSettings
    from chunksink.rebuild.locks import writing

    config = config_from(chunks=chunks, home=home)
    root = BusRoot(config.chunks_path).require()
    with ExitStack() as stack:
        stack.enter_context(writing(config.home_path))
        cache = stack.enter_context(VectorCache.open(cache_file(config.home_path), salvage=False))
        find = partial(find_encoder, EncoderSettings.of(config), stack)
        report = import_cache(cache, file, texts=partial(_texts_of, root), encoder_for=find)
    if as_json:
        print_json(asdict(report))
    else:
        _print(report)
    return Exit.REFUSED if report.unproved else Exit.OK


def _texts_of(root: BusRoot) -> Iterator[tuple[str, str]]:
    """Text hash and text of every chunk. Lines that hold none are skipped: this is not a validation."""
    import orjson

    from chunksink.chunkbus.canonical import text_hash
    from chunksink.chunkbus.reader import open_partition, read_lines

    for key in root.partition_keys():
        file, _ = open_partition(root, key)
        with file:
            for _, line in read_lines(file):
                try:
                    text = orjson.loads(line)["text"]
                    hashed = text_hash(text)
                except (ValueError, TypeError, KeyError, AttributeError):
                    continue
                yield hashed, text


def _print(report: "ImportReport") -> None:
    click.echo(f"{counted(report.rows, 'vector')} taken over")
    for proof in report.proofs:
        name = f"{printable(proof.model) or proof.fingerprint} in {proof.precision}"
        if proof.checked:
            again = counted(proof.checked, "text")
            click.echo(f"  {name}: {again} embedded again, least cosine {proof.least_cosine:.5f}")
        else:
            click.echo(f"  {name}: left out, since {proof.obstacle}", err=True)
    if report.unproved:
        click.echo(f"{counted(report.unproved, 'vector')} left out", err=True)
