"""`chunksink prove`: a report of the index that a second machine can reproduce."""

from pathlib import Path

import click

from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option
from chunksink.progress import progress
from chunksink.summary import tell_fault


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@chunks_option
@home_option
@click.option("--check", is_flag=True, help="Compare with the report in FILE instead of writing it.")
@click.option("--deep", is_flag=True, help="Also compare every vector with the cached one of its text.")
def command(file: Path, chunks: str | None, home: str | None, check: bool, deep: bool) -> int:
    """Write to FILE what the index was made from and what the engines hold.

    Checksums of the partitions, counts, the model's fingerprint, a hash of the index settings (where there is an engine
    that has some: Meilisearch), and a digest for each sink that was just read from the engine. Nothing in it depends on
    the machine, the home or the time: made from the same chunks, it is the same file. An index that is not what the
    chunks say is not proved.

    \b
    Examples:
      chunksink prove index.json
      chunksink prove index.json --check
    """
    from chunksink.index import Index
    from chunksink.proof import differences, prove, read_proof, write_proof

    config = config_from(chunks=chunks, home=home)
    known = read_proof(file) if check else None
    with Index(config, stage=progress, on_fault=tell_fault) as index:
        found = index.verify(deep=deep)
        if found.unknown:
            told = "\n".join(f"{name}: {error}" for name, error in found.unknown.items())
            raise Refusal(f"not every engine could be asked, so nothing is proved\n{told}", Exit.ENGINE)
        if not found.ok:
            raise Refusal(
                "the engines do not hold what the chunks say, so there is nothing to prove: see `chunksink verify`",
                Exit.DRIFT,
            )
        proof = prove(config, found)
    if known is None:
        write_proof(file, proof)
        click.echo(f"{file} proves {', '.join(found.sinks)}")
        return Exit.OK
    wrong = differences(known, proof)
    for line in wrong:
        click.echo(line, err=True)
    click.echo(f"{file} {'is not' if wrong else 'is'} what is here")
    return Exit.DRIFT if wrong else Exit.OK
