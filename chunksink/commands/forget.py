"""`chunksink forget`: erases one source from everything that is ours."""

from dataclasses import asdict

import click

from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable

_OUT_OF_REACH = (
    "Out of reach are the bus itself, backups, exports of the cache, and what engines keep of deleted rows until they "
    "are compacted: Chroma in its log until `chroma utils vacuum`, Meilisearch until it reuses the pages."
)


@click.command()
@click.argument("source")
@chunks_option
@home_option
@json_option
def command(source: str, chunks: str | None, home: str | None, as_json: bool) -> int:
    """Erase SOURCE from every build, the cache of vectors, dead letters and the records of past runs.

    SOURCE is its parent_id, family key, document_id, or the address that `chunksink search` shows. While the bus
    holds it, the next sync brings it back: withdraw it there first, with a tombstone or by writing its partition anew.
    Exits with 3 when the bus still holds it.

    \b
    Example:
      chunksink forget docs/contract-2019.pdf
    """
    from chunksink.index import Index

    with Index(config_from(chunks=chunks, home=home)) as index:
        found = index.forget(source)
    if as_json:
        print_json(asdict(found) | {"out_of_reach": _OUT_OF_REACH})
    else:
        for build, documents in found.documents.items():
            click.echo(f"{build}: {counted(documents, 'document')} erased")
        click.echo(f"{counted(found.vectors, 'vector')} and {counted(found.run_records, 'line')} of run records erased")
        click.echo(_OUT_OF_REACH)
    if found.still_in:
        names = ", ".join(printable(key) for key in found.still_in)
        click.echo(f"the bus still holds it, in {names}: the next sync brings it back", err=True)
        return Exit.INVALID_INPUT
    return Exit.OK
