"""`chunksink forget`: erases one source from everything that chunksink writes."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.exits import Exit
from chunksink.options import chunks_option, home_option, json_option, open_index
from chunksink.output import Note, counted, echo, printable, show

if TYPE_CHECKING:
    from chunksink.rebuild.forget import ForgetReport


_OUT_OF_REACH = (
    "Out of reach are the bus itself, backups, copies of the cache, damaged caches that were set aside, servers and "
    "folders where a sink was before the configuration named another place, what `chunksink ledger` lists, "
    "names and checksums of files in `ingest.db` of the home, which may be deleted (the next ingest then reads all "
    "files again), and vectors of former texts where the records of this home were lost since: `chunksink cache gc` "
    "drops them. Engines keep "
    "deleted rows: Chroma their text in its log and their vectors in its index, of which `chroma vacuum` takes a part "
    "only; Meilisearch until it reuses the pages. Two times `chunksink rebuild` replaces all builds, and so removes "
    "these too."
)


@click.command()
@click.argument("source")
@click.option("--tenant", help="The source of this tenant, where several have one of this name.")
@click.option("--every", is_flag=True, help="All sources that SOURCE means, of every tenant.")
@chunks_option
@home_option
@json_option
def command(source: str, tenant: str | None, every: bool, as_json: bool) -> int:
    """Erase SOURCE from every build, the cache of vectors, dead letters and the records of past runs.

    SOURCE is its parent_id, family key, document_id, or the address that `chunksink search` shows. Where that means
    several sources, such as the same file of two tenants, nothing is erased until --tenant, the family key or --every
    chooses. While the bus holds it, the next sync brings it back: withdraw it there first, with a tombstone or by
    rewriting its partition. A source that is gone already is still found by its records. Earlier versions go, too.

    Keyword builds are rewritten, so that no page of theirs holds its words; that needs as much room again. Exits with 3
    when the bus still holds it or is not there, with 5 when a sink that is not configured any more could not be asked.

    \b
    Example:
      chunksink forget docs/contract-2019.pdf
    """

    with open_index() as index:
        found = index.forget(source, tenant=tenant, every=every)
    show(as_json, asdict(found) | {"out_of_reach": _OUT_OF_REACH}, _erased(found))
    is_bus_there = BusRoot(index.config.chunks_path).is_there
    echo(map(Note, _left(found, None if is_bus_there else index.config.chunks_path)))
    if found.still_in or not is_bus_there:
        return Exit.INVALID_INPUT
    return Exit.ENGINE if found.not_asked else Exit.OK


def _erased(found: "ForgetReport") -> Iterator[str]:
    for build, documents in found.documents.items():
        yield f"{build}: {counted(documents, 'document')} erased"
    yield f"{counted(found.vectors, 'vector')} and {counted(found.run_records, 'line')} of run records erased"
    if not found.texts:
        yield "No record and no build knew a text of it any more, so that none of its vectors could be found"
    yield _OUT_OF_REACH


def _left(found: "ForgetReport", missing_bus: Path | None) -> Iterator[str]:
    for sink, reason in found.not_asked.items():
        yield f"not erased from {sink}, which is not configured any more: {printable(reason)}"
    if found.still_in:
        yield f"the bus still holds it, in {', '.join(map(printable, found.still_in))}: the next sync brings it back"
    elif missing_bus is not None:
        yield f"no chunks at {printable(str(missing_bus))}: a sync from where they are now may bring it back"
