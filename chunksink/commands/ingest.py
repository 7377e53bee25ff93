"""`chunksink ingest`: documents become canonical chunks."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunkbus.layout import BusRoot, check_partition_key
from chunkbus.runlog import RunLog
from chunksink.exits import Exit
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json
from chunksink.progress import progress
from chunksink.wiring import ledger_file

if TYPE_CHECKING:
    from producers.report import IngestReport

_SHOWN_FAILURES = 20


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="SOURCE...")
@click.option("--to", "chunks", metavar="DIR", help="The bus root to write to.  [default: chunks]")
@click.option(
    "--partition", "key", default="markdown", show_default=True, metavar="KEY", help="The partition to write."
)
@click.option("--base", type=click.Path(path_type=Path), metavar="DIR", help="Name sources by their path below this.")
@click.option("--tenant", metavar="NAME", help="Whose documents they are; searches can be bound to a tenant.")
@home_option
@json_option
def command(
    sources: tuple[Path, ...],
    chunks: str | None,
    key: str,
    base: Path | None,
    tenant: str | None,
    home: str | None,
    as_json: bool,
) -> int:
    """Make canonical chunks from documents: SOURCE is a folder (all Markdown below it) or a file.

    Writes one partition. Sources that did not change are left as they are, a source that fails keeps its last good
    chunks, and what the partition held from other sources stays. A second run does nothing and says so. Exits with 3
    when a source failed; the others are in.

    \b
    Examples:
      chunksink ingest ~/notes
      chunksink ingest docs README.md --to /data/chunks --partition docs
    """
    with ExitStack() as stack:
        from chunkbus.ledger import Ledger
        from producers.ingest import ingest_markdown

        config = config_from(chunks=chunks, home=home)
        check_partition_key(key)
        run_log = stack.enter_context(RunLog(config.home_path, "ingest"))
        ledger = stack.enter_context(Ledger(ledger_file(config.home_path)))
        bar = stack.enter_context(progress("ingest", None, "sources"))
        report = ingest_markdown(
            sources,
            BusRoot(config.chunks_path),
            ledger,
            key=key,
            base=base,
            tenant=tenant,
            run_id=run_log.run_id,
            on_progress=lambda _done: bar.advance(1),
        )
        for failure in report.failures:
            run_log.write("failure", **asdict(failure))
        run_log.finish("failures" if report.failures else "ok", report=asdict(report))
    if as_json:
        print_json(asdict(report))
    else:
        _print(report, config.chunks_path)
    return Exit.INVALID_INPUT if report.failures else Exit.OK


def _print(report: "IngestReport", root: Path) -> None:
    place = f"{root}/canonical/{report.partition_key}.jsonl"
    if not report.written:
        click.echo(f"nothing to do: {place} holds {counted(report.unchanged, 'source')} as they are")
    else:
        click.echo(
            f"wrote {counted(report.chunks, 'chunk')} of {counted(report.documents, 'source')} to {place} "
            f"({report.processed:,} new or changed, {report.unchanged:,} unchanged, {report.carried_over:,} others)"
        )
    if report.sources == 0:
        click.echo("no Markdown (.md, .markdown) was found there", err=True)
    if report.empty:
        click.echo(f"{counted(report.empty, 'source')} without text")
    for failure in report.failures[:_SHOWN_FAILURES]:
        click.echo(f"{failure.code} {failure.source_uri} {failure.reason}", err=True)
    if len(report.failures) > _SHOWN_FAILURES:
        click.echo(
            f"and {len(report.failures) - _SHOWN_FAILURES:,} more; see chunksink ledger --status failed", err=True
        )
