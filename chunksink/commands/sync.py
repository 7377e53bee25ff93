"""`chunksink sync`: the engines are brought to what the chunks say now."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunkbus.layout import BusRoot
from chunksink.errors import Refusal, explained
from chunksink.options import adopt_option, allow_deletions_option, chunks_option, config_from, home_option, json_option
from chunksink.progress import progress
from chunksink.summary import exit_code, print_report, tell_fault

if TYPE_CHECKING:
    from chunksink.index import Index

_DEBOUNCE_MILLISECONDS = 500


@click.command()
@chunks_option
@home_option
@click.option("--watch", is_flag=True, help="Go on: sync again whenever a partition is committed, until Ctrl-C.")
@click.option("--strict", is_flag=True, help="One invalid or missing partition stops everything.")
@click.option("--rebuild", is_flag=True, help="Make the index anew where its model is not the configured one any more.")
@click.option("--plan", metavar="HASH", help="Carry out exactly the plan of `chunksink plan`, or nothing.")
@allow_deletions_option
@adopt_option
@json_option
def command(chunks: str | None, home: str | None, watch: bool, as_json: bool, **options: Any) -> int:
    """Bring the engines to what the chunks say now, with the least that must be written.

    Reads the partitions that changed, embeds texts that have no vector yet, replaces the sources that differ and
    removes those that are gone. Readers find every source at every moment. It can be killed anywhere: the next sync
    goes on. Partitions that are missing or invalid keep what they held. The first sync builds the index.

    \b
    Examples:
      chunksink sync
      chunksink sync --watch
      chunksink plan --json | jq -r .hash | xargs chunksink sync --plan
    """
    from chunksink.index import Index

    if options["plan"] is not None and (watch or options["rebuild"]):
        raise click.UsageError("--plan carries out one plan of a sync: it goes neither with --watch nor with --rebuild")
    config = config_from(chunks=chunks, home=home)
    with Index(config, stage=progress, on_fault=tell_fault) as index:
        if watch:
            _watch(index, config.chunks_path, as_json, options)
        report = index.sync(**options)
    print_report(report, as_json=as_json, verb="synced")
    return exit_code(report)


def _watch(index: "Index", chunks: Path, as_json: bool, options: dict[str, Any]) -> None:
    """Ends with Ctrl-C. What goes wrong in one sync is told, and the next one tries again."""
    manifests = BusRoot(chunks).require().manifests
    click.echo(f"watching {manifests}; Ctrl-C ends it", err=True)
    for _ in _commits(manifests):
        try:
            with explained():
                print_report(index.sync(**options), as_json=as_json, verb="synced")
        except Refusal as refusal:
            refusal.show()
    raise KeyboardInterrupt


def _commits(manifests: Path) -> Iterator[None]:
    """Once now, then after each manifest that was renamed into place; several at once are one."""
    from watchfiles import watch

    manifests.mkdir(exist_ok=True)
    changes = watch(
        manifests,
        watch_filter=lambda _change, path: path.endswith(".manifest.json") and not Path(path).name.startswith("."),
        debounce=_DEBOUNCE_MILLISECONDS,
        rust_timeout=_DEBOUNCE_MILLISECONDS,
        yield_on_timeout=True,
        recursive=False,
    )
    with suppress(KeyboardInterrupt):
        next(changes)  # it watches from here on: what is committed during the first sync is not missed
        yield
        for changed in changes:
            if changed:
                yield
