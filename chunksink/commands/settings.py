"""`chunksink settings`: the index settings of Meilisearch, as the file has them and as the live index has them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from chunksink.exits import Exit
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json
from settings.engine_settings import EMBEDDERS
from settings.index_settings import Difference, differences, patch_of

if TYPE_CHECKING:
    from sinks.meilisearch import MeilisearchSink

_SINK = "meilisearch"


@click.group()
def command() -> None:
    """Compare the index settings of Meilisearch with the file that is their source, and apply it.

    The file is meilisearch-settings.json in this folder, else the one that came with chunksink; the option
    settings_file of the sink names another. A rebuild gives every new index these settings.
    """


@command.command("show")
@home_option
def show_command(home: str | None) -> None:
    """Print the settings of the live index, in the form of the file.

    \b
    Example:
      chunksink settings show > meilisearch-settings.json
    """
    with _live(home) as (sink, wanted):
        live = sink.live_settings()
    print_json({name: live[name] for name in live if name in wanted and name != EMBEDDERS})


@command.command("diff")
@home_option
@json_option
def diff_command(home: str | None, as_json: bool) -> int:
    """Show where the live index differs from the file. Exits with 4 when it does.

    \b
    Example:
      chunksink settings diff
    """
    with _live(home) as (sink, wanted):
        found = differences(wanted, sink.live_settings())
    _print(found, as_json)
    return Exit.DRIFT if found else Exit.OK


@command.command("apply")
@home_option
@json_option
def apply_command(home: str | None, as_json: bool) -> None:
    """Change the live index to what the file says: only what differs is sent.

    Meilisearch then indexes again what the change touches, while it goes on answering. A second time nothing is sent.

    \b
    Example:
      chunksink settings apply
    """
    from rebuild.lock import writing

    with writing(config_from(home=home).home_path), _live(home) as (sink, wanted):
        found = differences(wanted, sink.live_settings())
        sink.change_live_settings(patch_of(found))
    _print(found, as_json)
    if not as_json:
        click.echo(f"{counted(len(found), 'setting')} changed" if found else "nothing to do")


@contextmanager
def _live(home: str | None) -> Iterator["tuple[MeilisearchSink, dict[str, Any]]"]:
    from chunksink.wiring import live_dimensions
    from sinks.meilisearch import open_sink

    config = config_from(home=home)
    options = config.sink.get(_SINK, {})
    sink = open_sink(config.home_path, options)
    try:
        yield sink, sink.wanted_settings(live_dimensions(config, _SINK))
    finally:
        sink.close()


def _print(found: list[Difference], as_json: bool) -> None:
    if as_json:
        print_json({each.name: {"live": each.live, "file": each.wanted} for each in found})
        return
    for each in found:
        click.echo(f"{each.name}\n  live  {_line(each.live)}\n  file  {_line(each.wanted)}")
    if not found:
        click.echo("the live index has the settings of the file")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
