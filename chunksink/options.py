"""Options that several commands share, named the same everywhere, and the configuration they lead to."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from chunksink.settings.config import Config, load_config, nearest_variable, unknown_variables

Command = TypeVar("Command", bound=Callable[..., Any])

_INDEX, _FILE = "chunksink.index", "chunksink.config"
"""What --index and --config said, in the context of the command that runs; subcommands share it."""


def chunks_option(command: Command) -> Command:
    return click.option(
        "--chunks", metavar="DIR", help="The bus root: a folder with canonical/ and manifest/. [default: chunks]"
    )(command)


def home_option(command: Command) -> Command:
    """--home, and with it --index and --config: those are no arguments of the command, `config_from` knows them."""
    home = click.option("--home", metavar="DIR", help="Where chunksink keeps its own records. [default: .chunksink]")
    index = click.option(
        "--index",
        metavar="NAME",
        expose_value=False,
        callback=partial(_note, _INDEX),
        help="One of several indexes: a table [index.NAME] of chunksink.toml; or CHUNKSINK_INDEX.",
    )
    config = click.option(
        "--config",
        metavar="FILE",
        expose_value=False,
        callback=partial(_note, _FILE),
        help="The file of settings; or CHUNKSINK_CONFIG. [default: chunksink.toml]",
    )
    return home(index(config(command)))


def _note(key: str, context: click.Context, _option: click.Parameter, said: str | None) -> None:
    if said is not None:
        context.meta[key] = said


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
    """The configuration of the command that runs, with what its flags say. What looks like a slip is told."""
    for name in unknown_variables():
        if meant := nearest_variable(name):
            click.echo(f"warning: no setting is called {name}, and it is ignored; {meant} is one", err=True)
    return load_config({**flags, "index": click.get_current_context().meta.get(_INDEX)}, place=named_file())


def named_file() -> str | None:
    """What --config said."""
    said: str | None = click.get_current_context().meta.get(_FILE)
    return said
