"""`chunksink status`: what is live, held, due or under way, without calling an engine."""

from dataclasses import asdict

import click

from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import show
from chunksink.session import status_of
from chunksink.status_report import SHOWN, status_lines


@click.command()
@chunks_option
@home_option
@click.option("--all", "everything", is_flag=True, help="Name every held source, partition and finding.")
@json_option
def command(everything: bool, as_json: bool) -> None:
    """Show what readers see, what is held back and why, and whether a sync or a rebuild is due or under way.

    All of it comes from chunksink's records. `chunksink verify` reads the engines, `chunksink plan` shows what a sync
    would do, and `chunksink doctor` whether it could run. Changed files are seen after `chunksink ingest`.

    \b
    Examples:
      chunksink status
      chunksink status --json | jq '.sinks.fts.to_write'
      chunksink status --json | jq -e '.current and .rebuild_due == null' && echo "nothing to do"
    """
    config = config_from()
    status = status_of(config, -1 if as_json or everything else SHOWN)
    lines = status_lines(status, None if everything else SHOWN)
    show(as_json, {"current": status.is_current, **asdict(status)}, lines)
