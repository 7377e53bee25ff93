"""`chunksink forget`: erases one source from everything that is ours."""

from dataclasses import asdict

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable

_OUT_OF_REACH = (
    "Out of reach are the bus itself, backups, exports of the cache, servers and folders that the configuration named "
    "before and does not any more, what `chunksink ledger` lists, names and checksums of files in `ingest.db` of the "
    "home, which may be deleted (the next ingest then reads all files again), and vectors of former texts where the "
    "records of this home were lost since: `chunksink cache gc` drops them. Engines keep "
    "deleted rows: Chroma their text in its log and their vectors in its index, of which `chroma vacuum` takes a part "
    "only; Meilisearch until it reuses the pages. Two times `chunksink rebuild` replaces all builds, and so removes "
    "these too."
)


@click.command()
@click.argument("source")
@click.option("--tenant", help="That of this tenant, where several have a source of this name.")
@click.option("--every", is_flag=True, help="All sources that are meant, of every tenant.")
@chunks_option
@home_option
@json_option
def command(source: str, tenant: str | None, every: bool, chunks: str | None, home: str | None, as_json: bool) -> int:
    """Erase SOURCE from every build, the cache of vectors, dead letters and the records of past runs.

    SOURCE is its parent_id, family key, document_id, or the address that `chunksink search` shows. Where that means
    more than one, such as the same file of two tenants, nothing is erased before --tenant, the family key or --every
    says which. While the bus holds it, the next sync brings it back: withdraw it there first, with a tombstone or by
    writing its partition anew.

    One that was withdrawn and synced before is found by what was noted of it. What it said in earlier versions goes,
    too. Keyword builds are written anew, so that no page of theirs holds its words; that takes as much room again.
    Exits with 3 when the bus still holds it or is not there to be asked, with 5 when a sink that is not configured any
    more could not be asked, or builds lie where a sink was before.

    \b
    Example:
      chunksink forget docs/contract-2019.pdf
    """
    from chunksink.index import Index

    config = config_from(chunks=chunks, home=home)
    with Index(config) as index:
        found = index.forget(source, tenant=tenant, every=every)
    if as_json:
        print_json(asdict(found) | {"out_of_reach": _OUT_OF_REACH})
    else:
        for build, documents in found.documents.items():
            click.echo(f"{build}: {counted(documents, 'document')} erased")
        click.echo(f"{counted(found.vectors, 'vector')} and {counted(found.run_records, 'line')} of run records erased")
        if not found.texts:
            click.echo("No record and no build knew a text of it any more, so that none of its vectors could be found")
        click.echo(_OUT_OF_REACH)
    for sink, folder in found.left_behind.items():
        click.echo(
            f"not erased from {printable(folder)}, where builds of {sink} are left from before it was configured to be "
            "elsewhere: remove that folder if nobody needs it",
            err=True,
        )
    for sink, reason in found.not_asked.items():
        click.echo(f"not erased from {sink}, which is not configured any more: {printable(reason)}", err=True)
    if found.still_in:
        names = ", ".join(printable(key) for key in found.still_in)
        click.echo(f"the bus still holds it, in {names}: the next sync brings it back", err=True)
        return Exit.INVALID_INPUT
    if not BusRoot(config.chunks_path).is_there:
        chunks_path = printable(str(config.chunks_path))
        click.echo(
            f"no chunks at {chunks_path}: a sync from where they are now brings back what they hold of it", err=True
        )
        return Exit.INVALID_INPUT
    return Exit.ENGINE if found.not_asked or found.left_behind else Exit.OK
