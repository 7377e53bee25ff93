"""`chunksink ledger`: lists which sources were read, by what, and with what result."""

from typing import Any

import click

from chunksink.chunkbus.wording import printable
from chunksink.command_line.options import SharedOptions, config_from, home_option, json_option
from chunksink.command_line.output import Note, show


@click.command()
@click.option("--source", metavar="TEXT", help="Only sources whose name contains this.")
@click.option(
    "--status",
    type=click.Choice(["processed", "failed"]),
    help="failed: the source or one of its records could not be read; processed: all other attempts.",
)
@click.option("--run", "run_id", metavar="ID", help="Only attempts of this run.")
@click.option("--partition", metavar="KEY", help="Only attempts that went to this partition.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most this many, newest first."
)
@home_option
@json_option
def command(shared: SharedOptions, limit: int, as_json: bool, **filters: Any) -> None:
    """Show which sources were read, by what, and with what result, newest first.

    Attempts are never overwritten: a source that failed and then succeeded has two.

    \b
    Examples:
      chunksink ledger --status failed
      chunksink ledger --source handbook/ --limit 5 --json
    """
    from chunksink.ingest.store import FILE_NAME, IngestStore

    config = config_from(shared, uses_sinks=False)
    path = config.home_path / FILE_NAME
    if not path.exists():
        show(as_json, [], [Note(f"no ledger at {path} yet; chunksink ingest writes one")])
        return
    with IngestStore(config.home_path) as store:
        listed = list(store.attempts(limit=limit, **filters))
        total = sum(1 for _ in store.attempts(**filters)) if len(listed) == limit else len(listed)
    lines = [_line(attempt) for attempt in listed] or [Note("no attempt matches these filters")]
    if total > limit:
        lines.append(Note(f"the newest {limit:,} of {total:,}; --limit N shows more"))
    show(as_json, listed, lines)


def _line(attempt: dict[str, Any]) -> str:
    outcome = attempt["error_type"] or attempt["status"]
    reader = f"{attempt['parser_name']} {attempt['parser_version']}" if attempt["parser_name"] else "not read"
    tenant = f"; tenant {printable(attempt['tenant'])}" if attempt["tenant"] else ""
    return f"{attempt['processed_at']}  {outcome:<24}  {printable(attempt['source_uri'])}  ({reader}{tenant})"
