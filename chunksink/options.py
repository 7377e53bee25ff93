"""Options that several commands share, and the configuration and index that they select.

--chunks, --home, --index and --config are not passed to a command: `config_from` reads them.
"""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chunksink.exits import Exit, Refusal
from chunksink.output import Note, echo
from chunksink.progress import progress, report_fault
from chunksink.search.access import Access
from chunksink.session import keep_live_sinks
from chunksink.settings.config import (
    CONFIG_FILE,
    MEILI_URL,
    Config,
    load_config,
    nearest_variable,
    unknown_variables,
)

if TYPE_CHECKING:
    from chunksink.index import Index
Command = TypeVar("Command", bound=Callable[..., Any])

_KEY = "chunksink.{}"
"""Key of a shared option in the context of the running command; subcommands share it."""


def home_option(command: Command) -> Command:
    """--home, and with it --index and --config."""
    home = _shared("home", "DIR", "Where chunksink keeps its own records. [default: .chunksink]")
    index = _shared(
        "index", "NAME", "One of several indexes: a table [index.NAME] of chunksink.toml; or CHUNKSINK_INDEX."
    )
    config = _shared("config", "FILE", "The file of settings; or CHUNKSINK_CONFIG. [default: chunksink.toml]")
    return home(index(config(command)))


def _shared(name: str, metavar: str, help: str) -> Callable[[Command], Command]:
    return click.option(f"--{name}", metavar=metavar, expose_value=False, callback=_keep, help=help)


def _keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_KEY.format(option.name)] = value


chunks_option = _shared(
    "chunks", "DIR", "The bus root: a folder with canonical/ and manifest/, or s3://BUCKET/PREFIX. [default: chunks]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document for a machine to read.")
adopt_option = click.option("--adopt", is_flag=True, help="Take over builds of these names that another home made.")
allow_deletions_option = click.option(
    "--allow-deletions",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Allow up to N deletions beyond the safety limit.",
)


def config_from(*, uses_sinks: bool = True, **flags: Any) -> Config:
    """The configuration with the shared options of this command and `flags`. Warns of likely misspellings."""
    for name in unknown_variables():
        if near := nearest_variable(name):
            click.echo(f"warning: {name} is no setting and is ignored; did you mean {near}?", err=True)
    shared = {name: shared_option(name) for name in ("chunks", "home", "index")}
    config = load_config(shared | flags, place=shared_option("config"))
    kept = keep_live_sinks(config) if uses_sinks else config
    if kept is not config:
        note = f"note: {MEILI_URL} is set, but this index is in {' and '.join(kept.sinks)}, which stay in use"
        echo([Note(f"{note}. To move it to Meilisearch, set `sinks` in {CONFIG_FILE}")])
    return kept


def shared_option(name: str) -> str | None:
    """The value of a shared option of the running command."""
    value: str | None = click.get_current_context().meta.get(_KEY.format(name))
    return value


def shared_arguments() -> list[str]:
    """The shared options of this command, for a message about the command to run next."""
    values = {name: shared_option(name) for name in ("chunks", "home", "index", "config")}
    return [f"--{name} {shlex.quote(value)}" for name, value in values.items() if value is not None]


def open_index(**flags: Any) -> "Index":
    """The index that the options select. It prints progress and engine faults on standard error."""
    from chunksink.index import Index

    return Index(config_from(**flags), stage=progress, on_fault=report_fault)


def access_of(config: Config, tenant: str | None) -> Access:
    """What a search may see. Refused if the index requires a tenant and none is named."""
    access = Access(tenant, required=config.tenants == "required")
    if access.denied:
        raise Refusal("this index requires a tenant: add --tenant NAME", Exit.USAGE)
    return access
