"""`chunksink settings`: compares the index settings of Meilisearch in the file and in the live index."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click
import orjson
from msgspec import structs

from chunksink.chunkbus.wording import counted
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import SharedOptions, config_from, home_option, json_option
from chunksink.command_line.output import Note, echo, print_json, show
from chunksink.rebuild.errors import OtherHome
from chunksink.rebuild.locks import writing
from chunksink.rebuild.schema import existing_home_id
from chunksink.settings.config import Config
from chunksink.settings.file_paths import shipped_settings_file
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.meilisearch.index_settings import (
    EMBEDDERS,
    Difference,
    as_file,
    differences,
    patch_of,
    resets,
    unknown,
)
from chunksink.wiring import live_dimensions, open_one_sink, require_configured

_SINK = "meilisearch"


@click.group()
def command() -> None:
    """Compare the index settings of Meilisearch with the settings file, and apply the file.

    The file is meilisearch-settings.json beside the configuration file or in the current folder, else the one shipped
    with chunksink; the sink option settings_file names another. Every new index gets these settings. Settings that
    chunksink needs are always applied: filterable fields, and one hit for each source.
    """


@command.command("show")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write them to FILE instead.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@home_option
def show_command(shared: SharedOptions, output: Path | None, force: bool) -> None:
    """Print the settings of the live index, in the form of the file.

    Use --output instead of `>`: with `>`, the file is empty if the server does not answer.

    \b
    Examples:
      chunksink settings show
      chunksink settings show --output meilisearch-settings.json
    """
    if output is not None and output.exists() and not force:
        raise Refusal(f"{output} exists: name another file, or replace it with --force", Exit.USAGE)
    # Opening the sink reads its settings file. An invalid one must not prevent `show`, which does not use it.
    with _opened(shared, settings_file=str(shipped_settings_file())) as (_, sink):
        shown = as_file(sink.live_settings())
    if output is None:
        print_json(shown)
    else:
        output.write_bytes(orjson.dumps(shown, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        echo([f"{output} has the settings of the live index"])


@command.command("diff")
@home_option
@json_option
def diff_command(shared: SharedOptions, as_json: bool) -> int:
    """Show where the live index differs from the file. Exits with 4 when it does.

    Also names settings that Meilisearch does not know, and those that go back to the engine's default because the file
    does not name them.

    \b
    Example:
      chunksink settings diff
    """
    with _opened(shared) as (config, sink):
        live, desired = sink.live_settings(), _desired(config, sink)
    found = differences(desired, live)
    show(as_json, _document(found), _lines(found))
    echo(_warnings(desired, live))
    return Exit.DRIFT if found else Exit.OK


@command.command("apply")
@home_option
@json_option
def apply_command(shared: SharedOptions, as_json: bool) -> None:
    """Apply the settings of the file to the live index; only differences are sent.

    Meilisearch reindexes what the change affects, and keeps answering. An index of another home is not changed.

    \b
    Example:
      chunksink settings apply
    """
    with _opened(shared) as (config, sink), writing(config.home_path):
        _require_ours(config.home_path, sink)
        live, desired = sink.live_settings(), _desired(config, sink)
        found = differences(desired, live)
        echo(_warnings(desired, live))
        sink.change_live_settings(patch_of(found))
    summary = f"{counted(len(found), 'setting')} changed" if found else "nothing to do"
    show(as_json, _document(found), [*_lines(found), summary])


def _require_ours(home: Path, sink: MeilisearchSink) -> None:
    marker = sink.shown()
    if marker is not None and marker.home_id != existing_home_id(home):
        raise OtherHome(
            f"the live index was made by another home ({marker.home_id:.12}...), not by {home}; nothing was changed. "
            "Name that home with --home; or take the index over with `chunksink sync --adopt`"
        )


def _desired(config: Config, sink: MeilisearchSink) -> dict[str, Any]:
    """The settings that the live index should have."""
    return sink.desired_settings(live_dimensions(config, _SINK))


@contextmanager
def _opened(shared: SharedOptions, **instead: Any) -> Iterator[tuple[Config, MeilisearchSink]]:
    """The configuration and its sink, with `instead` replacing some of the sink's options."""
    config = config_from(shared, uses_sinks=False)
    if _SINK not in config.sink:  # without a table of options, the address is only the default
        require_configured(config, (_SINK,))
    options = {**config.sink.get(_SINK, {}), **instead}
    with ExitStack() as stack:
        sink = open_one_sink(structs.replace(config, sink={**config.sink, _SINK: options}), stack, _SINK)
        assert isinstance(sink, MeilisearchSink)
        yield config, sink


def _warnings(desired: dict[str, Any], live: dict[str, Any]) -> Iterator[Note]:
    if names := unknown({name: value for name, value in desired.items() if name != EMBEDDERS}, live):
        yield Note(f"warning: Meilisearch has no setting {', '.join(names)}; it refuses the whole file")
    if names := resets(desired, live):
        yield Note(f"warning: the file does not name {', '.join(names)}; apply and sync reset them to their defaults")


def _document(found: list[Difference]) -> dict[str, Any]:
    return {each.name: {"live": each.live, "file": each.desired} for each in found}


def _lines(found: list[Difference]) -> Iterator[str]:
    for each in found:
        live, desired = (json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (each.live, each.desired))
        yield f"{each.name}\n  live  {live}\n  file  {desired}"
    if not found:
        yield "the live index has the settings of the file"
