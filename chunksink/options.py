"""Options that several commands share, named the same everywhere, and the configuration they lead to."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from settings.config import Config, load_config

Command = TypeVar("Command", bound=Callable[..., Any])

_INDEX = "chunksink.index"
"""What --index said, in the context of the command that runs; subcommands share it."""


def chunks_option(command: Command) -> Command:
    return click.option(
        "--chunks", metavar="DIR", help="The bus root: a folder with canonical/ and manifest/. [default: chunks]"
    )(command)


def home_option(command: Command) -> Command:
    """--home, and with it --index: that is no argument of the command, `config_from` knows it."""
    home = click.option("--home", metavar="DIR", help="Where chunksink keeps its own records. [default: .chunksink]")
    index = click.option(
        "--index",
        metavar="NAME",
        expose_value=False,
        callback=_note_index,
        help="One of several indexes: a table [index.NAME] of chunksink.toml; or CHUNKSINK_INDEX.",
    )
    return home(index(command))


def _note_index(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    if name is not None:
        context.meta[_INDEX] = name


def json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document for a machine to read.")(
        command
    )


def allow_deletions_option(command: Command) -> Command:
    return click.option(
        "--allow-deletions",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Let so many sources go, though they are a large share of the index.",
    )(command)


def adopt_option(command: Command) -> Command:
    return click.option("--adopt", is_flag=True, help="Take over what another home has written under these names.")(
        command
    )


def config_from(**flags: Any) -> Config:
    """The configuration of the command that runs, with what its flags say."""
    return load_config({**flags, "index": click.get_current_context().meta.get(_INDEX)})
