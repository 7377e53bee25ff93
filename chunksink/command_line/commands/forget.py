"""`chunksink forget`: erases one source from everything that chunksink writes."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.storage import is_bucket
from chunksink.chunkbus.wording import counted, printable
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, index_options, json_option, open_index
from chunksink.command_line.output import Note, echo, show

if TYPE_CHECKING:
    from chunksink.rebuild.forget import ForgetReport

_OUT_OF_REACH = (
    "Not erased: the chunks themselves, backups, logs of servers, copies and exports of the cache, damaged caches that "
    "were set aside, and builds on servers or in folders that the configuration no longer names.",
    "The ledger `ingest.db` in the home has names and checksums. You may delete it: the next ingest reads all files "
    "again.",
    "If the records of this home were lost, vectors of former texts may remain: `chunksink cache gc` drops them.",
)
_IN_A_BUCKET = (
    "Earlier versions of partitions stay in the bucket for a day or longer: delete the objects "
    "`canonical/KEY.SHA256.jsonl` whose checksum is in no manifest. Every machine that syncs or ingests has copies of "
    "chunks in `partitions` of its home: run `chunksink forget` there, too, or delete that folder."
)


@click.command()
@click.argument("source")
@click.option("--tenant", help="Only the source of this tenant.")
@click.option("--every", is_flag=True, help="Erase all sources that SOURCE names, of every tenant.")
@index_options
@json_option
def command(shared: SharedOptions, source: str, tenant: str | None, every: bool, as_json: bool) -> int:
    """Erase SOURCE from every build, the cache of vectors, dead letters and the records of past runs.

    First remove the source from the chunks, with a tombstone or by rewriting its partition: otherwise the next sync
    restores it. SOURCE is a parent_id, family key, document_id, or the name that `chunksink search` shows. If it names
    several sources, such as the same file of two tenants, choose with --tenant, the family key or --every. Its
    earlier versions are erased, too, even if the source is no longer in the index. Local copies of the chunks of a
    bucket are removed, even if there is no index or SOURCE is unknown; the exit code is then 2.

    Keyword builds are rewritten, which needs the same disk space again. Exits with 3 if the chunks still contain the
    source or are missing, with 5 if a sink does not answer, even one that is no longer configured.

    \b
    Example:
      chunksink forget docs/contract-2019.pdf
    """
    with open_index(shared) as index:
        report = index.forget(source, tenant=tenant, every=every)
    out_of_reach = [*_OUT_OF_REACH, *_kept(report.not_scrubbed)]
    out_of_reach += [_IN_A_BUCKET] if is_bucket(index.config.chunks) else []
    show(as_json, asdict(report) | {"out_of_reach": " ".join(out_of_reach)}, [*_erased(report), *out_of_reach])
    missing_bus = None if index.config.bus.exists else index.config.bus.address
    echo(map(Note, _remaining(report, missing_bus)))
    if report.still_in or missing_bus is not None:
        return Exit.INVALID_INPUT
    return Exit.ENGINE if report.not_asked else Exit.OK


def _erased(report: "ForgetReport") -> Iterator[str]:
    for build, documents in report.documents.items():
        yield f"{build}: {counted(documents, 'document')} erased"
    yield f"{counted(report.vectors, 'vector')} and {counted(report.run_records, 'line')} of run records erased"
    if not report.texts:
        yield "its texts are in no record and no build, so its vectors could not be found"


def _kept(sinks: Sequence[str]) -> Iterator[str]:
    if sinks:
        yield (
            f"Some engines keep deleted texts or vectors in their files for a while: {', '.join(sinks)}. `chunksink "
            "rebuild`, run twice, replaces all builds and removes them."
        )


def _remaining(report: "ForgetReport", missing_bus: str | None) -> Iterator[str]:
    for sink, reason in report.not_asked.items():
        yield f"not erased from {sink}, which is no longer configured: {printable(reason)}"
    if report.still_in:
        places = ", ".join(map(printable, report.still_in))
        yield f"the chunks still contain it, in partition {places}: the next sync restores it"
    elif missing_bus is not None:
        yield f"no chunks at {printable(missing_bus)}: a sync from their new place may restore it"
