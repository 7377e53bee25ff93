"""`chunksink sync`: updates the index to match the chunks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from chunksink.command_line.commands.plan import print_plan
from chunksink.command_line.exits import Exit, Refusal, errors_as_refusals, print_failure
from chunksink.command_line.options import (
    SharedOptions,
    engine_options,
    index_options,
    json_option,
    note_index,
    open_index,
    require_extra,
    writing_options,
)
from chunksink.command_line.output import note
from chunksink.command_line.progress import ALIVE, STARTED, notify
from chunksink.command_line.summary import exit_code, print_report
from chunksink.command_line.watch import BusWatch
from chunksink.notifications import notifying
from chunksink.rebuild.errors import OtherBus, OtherHome
from chunksink.settings.config import Config
from chunksink.wiring import require_chunks

if TYPE_CHECKING:
    from chunksink.index import Index

_TEMPORARY = (Exit.ENGINE, Exit.LOCKED)


@click.command()
@index_options
@click.option("--watch", is_flag=True, help="Sync again whenever a partition is committed, until Ctrl-C.")
@click.option(
    "--strict",
    is_flag=True,
    help="Write nothing if a partition is missing or invalid, or a source is held; exit with 11 if a rebuild is due.",
)
@click.option("--rebuild", is_flag=True, help="Rebuild if the configured model has changed.")
@click.option("--dry-run", is_flag=True, help="Only show what would be done, as `chunksink plan` does.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="With --watch: serve metrics for Prometheus at this port; 0 picks a free one.",
)
@click.option("--metrics-host", metavar="HOST", help="The address of --metrics-port.  [default: 127.0.0.1]")
@click.option("--plan", metavar="HASH", help="Execute exactly the plan that `chunksink plan` showed, or nothing.")
@engine_options
@writing_options
@json_option
def command(
    shared: SharedOptions,
    watch: bool,
    dry_run: bool,
    as_json: bool,
    metrics_port: int | None,
    metrics_host: str | None,
    **options: Any,
) -> int:
    """Update the index to match the chunks, with as few writes as possible.

    Reads the partitions that changed, embeds texts that have no vector yet, replaces the sources that differ and
    removes those that are gone. Searches find a source even while it is replaced. A sync can be killed at any
    time: the next one continues. Sources of missing or invalid partitions stay unchanged. A first sync builds an index.

    \b
    Examples:
      chunksink sync
      chunksink sync --watch
      chunksink sync --engine ray --workers 4
      chunksink plan --json | jq -r .hash | xargs chunksink sync --plan
    """
    if options["plan"] is not None and (watch or options["rebuild"]):
        raise click.UsageError("--plan executes one plan of a sync: leave out --watch and --rebuild")
    if dry_run and (watch or options["rebuild"] or options["plan"] is not None):
        raise click.UsageError("--dry-run shows the plan of one sync: leave out --watch, --rebuild and --plan")
    if metrics_port is not None and not watch:
        raise click.UsageError("--metrics-port needs --watch; for the metrics of one sync, use --metrics-file FILE")
    if metrics_host is not None and metrics_port is None:
        raise click.UsageError("--metrics-host is the address of --metrics-port: add --metrics-port N")
    if watch and shared.metrics_file:
        raise click.UsageError("--metrics-file is written when the command ends: use --metrics-port with --watch")
    with open_index(shared) as index:
        if dry_run:
            return print_plan(index, adopt=options["adopt"], as_json=as_json)
        if not as_json:
            note_index(index.config, "sync")
        if watch:
            host = "127.0.0.1" if metrics_host is None else metrics_host
            with _metrics_served(index.config, host, metrics_port):
                _watch(index, as_json, options)
            return Exit.OK  # not reached: Ctrl-C ends a watch with an exception
        report = index.sync(**options)
    print_report(report, as_json=as_json)
    return exit_code(report, strict=options["strict"])


@contextmanager
def _metrics_served(config: Config, host: str, port: int | None) -> Iterator[None]:
    if port is None:
        yield
        return
    require_extra("metrics", "prometheus_client")
    from prometheus_client import start_http_server

    from chunksink.metrics import registry_of

    try:
        server, _ = start_http_server(port, host, registry_of(config))
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the host name is empty or too long
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        message = f"cannot serve metrics on {host}, port {port}: {reason}; choose another --metrics-port"
        raise Refusal(message, Exit.USAGE) from error
    note(f"metrics at http://{host}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _watch(index: "Index", as_json: bool, options: dict[str, Any]) -> None:
    """Sync until Ctrl-C. Errors are printed; after a temporary one, sync again. Wrong chunks, or an index that another
    home has taken over, end the watch."""
    with notifying(index.config, "sync"):
        root = require_chunks(index.config, "sync")
    note(f"watching {root.address}/manifest; Ctrl-C ends it")
    notify(STARTED)
    watch = BusWatch(root, note, sleep=_sleep)
    for _ in watch:
        try:
            with errors_as_refusals():
                report = index.sync(**options)
                print_report(report, as_json=as_json)
                code = exit_code(report, strict=options["strict"])
        except Refusal as refusal:
            if isinstance(refusal.__cause__, OtherBus | OtherHome):
                raise
            refusal.show()
            if as_json:
                print_failure(refusal, refusal.code)
            # An error of the operating system, such as "no permission", may be corrected without a commit.
            code = Exit.ENGINE if isinstance(refusal.__cause__, OSError) else refusal.code
        if code in _TEMPORARY:
            note(f"trying again in {watch.failed():.0f} s, or with the next commit")
        elif code == Exit.INVALID_INPUT:
            watch.held()
        else:
            watch.settled()


def _sleep(seconds: float) -> None:
    """Sleep, after telling systemd that the process is alive."""
    notify(ALIVE)
    time.sleep(seconds)
