"""Options that several commands share, and the configuration and index that they select."""

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chunksink.chunkbus.errors import ExtraMissing, extra_needed
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.output import note
from chunksink.command_line.progress import progress, report_fault
from chunksink.rebuild.errors import NothingBuilt
from chunksink.rebuild.locks import held_locks
from chunksink.rebuild.run_records import last_bus
from chunksink.rebuild.state import live_sinks
from chunksink.search.access import Access
from chunksink.settings.config import CONFIG_FILE, MEILI_URL, Config, nearest_variable, unknown_variables
from chunksink.settings.load import load_config
from chunksink.wiring import keep_live_sinks

if TYPE_CHECKING:
    from chunksink.index import Index
Command = Callable[..., Any]
_FILE_SECONDS = 60.0
"""How long --metrics-file waits for the chunks."""


@dataclass(frozen=True)
class SharedOptions:
    """Shared options of a command, which gets them as its argument `shared`. None: not set."""

    chunks: str | None = None
    home: str | None = None
    index: str | None = None
    config: str | None = None
    engine: str | None = None
    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float | None = None
    metrics_file: Path | None = None

    def arguments(self) -> str:
        """The options that select an index, for a message about the command to run next."""
        values = {name: getattr(self, name) for name in ("chunks", "home", "index", "config")}
        return "".join(f" --{name} {shlex.quote(value)}" for name, value in values.items() if value is not None)


def home_option(command: Command) -> Command:
    """--home, and with it --index and --config."""
    home = _shared("home", "DIR", "Where chunksink keeps its own records. [default: .chunksink]")
    index = _shared(
        "index", "NAME", "Use one of several indexes: the table [index.NAME] of chunksink.toml. [env: CHUNKSINK_INDEX]"
    )
    config = _shared("config", "FILE", "The settings file. [default: chunksink.toml; env: CHUNKSINK_CONFIG]")
    return home(index(config(_suggesting_a_sync(command))))


def index_options(command: Command) -> Command:
    """--chunks, and the options of `home_option`."""
    chunks = "The bus root: a folder with canonical/ and manifest/, or s3://BUCKET/PREFIX. [default: chunks]"
    return _shared("chunks", "DIR", chunks)(home_option(command))


def writing_options(command: Command) -> Command:
    """--allow-deletions, --adopt and --metrics-file, for commands that write to the engines."""
    allow_deletions = click.option(
        "--allow-deletions",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="Allow up to N sources to be removed or to lose most of their chunks, if the run would stop otherwise.",
    )
    return allow_deletions(adopt_option(metrics_file_option(command)))


def _shared(name: str, metavar: str, help: str, kind: Any = None) -> Callable[[Command], Command]:
    """A decorator that adds the option --NAME, and puts its value into the argument `shared` of the command."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def sharing(*arguments: Any, shared: SharedOptions = SharedOptions(), **values: Any) -> Any:
            return command(*arguments, shared=replace(shared, **{name: values.pop(name)}), **values)

        return click.option(_flag(name), metavar=metavar, help=help, type=kind)(sharing)

    return decorate


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _suggesting_a_sync(command: Command) -> Command:
    """If there is no index yet, the error names the command that builds it."""

    @wraps(command)
    def suggesting(*arguments: Any, shared: SharedOptions, **values: Any) -> Any:
        try:
            return command(*arguments, shared=shared, **values)
        except NothingBuilt as error:
            same = shared.arguments()
            remedy = (
                f"build one with `chunksink sync{same}`, or from documents: `chunksink ingest FOLDER --sync{same}`; "
                "or name an existing one with --home or --config"
            )
            if held_locks(error.home):  # by another run: this command has released its own
                remedy = "the run that builds one is under way"
            raise Refusal(f"no index in {error.home.absolute()} yet; {remedy}", Exit.USAGE) from error

    return suggesting


json_option = click.option("--json", "as_json", is_flag=True, help="Print a JSON document, for programs.")
adopt_option = click.option(
    "--adopt", is_flag=True, help="Take over the live builds and the public index name if another home made them."
)

_RAY_OPTIONS = {
    "address": (
        str,
        "ADDRESS",
        "Address of a Ray cluster; `auto`: the one on this machine. By default a new one is started.",
    ),
    "workers": (click.IntRange(1), "N", "Number of workers on Ray. By default one for each processor."),
    "gpus_per_worker": (click.FloatRange(0), "N", "GPUs of each worker; 0.5 if two share one.  [default: 0]"),
}


def metrics_file_option(command: Command) -> Command:
    """--metrics-file. The file is written when the command ends, however it ends."""
    text = "Write metrics for the textfile collector of Prometheus's node exporter; the name ends in .prom."
    return _shared("metrics_file", "FILE", text, click.Path(dir_okay=False, path_type=Path))(command)


def require_extra(extra: str, package: str) -> None:
    """Raises ExtraMissing if the package of this extra is not installed."""
    if find_spec(package) is None:
        raise ExtraMissing(f"{package} is missing: {extra_needed(extra)}")


def _write_metrics_at_end(config: Config, file: Path, *, needs_index: bool) -> None:
    require_extra("metrics", "prometheus_client")
    if file.suffix != ".prom":
        message = f"--metrics-file {file}: the textfile collector reads only names that end in .prom"
        raise Refusal(message, Exit.USAGE)
    click.get_current_context().call_on_close(partial(_write_metrics, config, file, needs_index=needs_index))


def _write_metrics(config: Config, file: Path, *, needs_index: bool) -> None:
    from prometheus_client import write_to_textfile

    from chunksink.metrics import registry_of

    try:
        # A reader sees the old file or the new one.
        write_to_textfile(str(file), registry_of(config, _FILE_SECONDS, needs_index=needs_index))
    except OSError as error:
        note(f"warning: no metrics were written to {file}: {error.strerror or error}", severity="warning")


def engine_options(command: Command) -> Command:
    """--engine and the options of Ray."""
    for name, (kind, metavar, help) in reversed(_RAY_OPTIONS.items()):
        command = _shared(name, metavar, help, kind)(command)
    kinds = click.Choice(["local", "ray"])
    return _shared("engine", "[local|ray]", "Where vectors are computed.  [default: local]", kinds)(command)


def config_from(shared: SharedOptions, *, uses_sinks: bool = True, **flags: Any) -> Config:
    """The configuration with these options and `flags`. Warns of likely misspellings.

    With `uses_sinks`, an existing index stays in its engines if no setting names sinks (`keep_live_sinks`).
    """
    for name in unknown_variables():
        if near := nearest_variable(name):
            note(f"warning: {name} is not a setting and is ignored; did you mean {near}?", severity="warning")
    flags |= {name: getattr(shared, name) for name in ("chunks", "home", "index", "engine")}
    if ray := {name: value for name in _RAY_OPTIONS if (value := getattr(shared, name)) is not None}:
        flags["ray"] = ray
    config = load_config(flags, place=shared.config)
    if ray and config.engine != "ray":
        raise click.UsageError(f"{_flag(next(iter(ray)))} needs --engine ray")
    kept = keep_live_sinks(config) if uses_sinks else config
    unused = sorted(config.origin.sinks_with_options - {*kept.sinks})
    if uses_sinks and config.origin.has_default_sinks and unused and MEILI_URL not in os.environ:
        note(f"note: {unused[0]} has options, but is not used: `sinks` does not name it", severity="warning")
    if kept is not config:
        stays = f"note: {MEILI_URL} is set, but this index has its keyword search in fts, which stays in use"
        note(f"{stays}. To move the index to Meilisearch, set `sinks` in {CONFIG_FILE}")
    return kept


def open_index(shared: SharedOptions, *, needs_index: bool = True, **flags: Any) -> "Index":
    """The index that the options select. It prints progress and engine faults on standard error.

    Without `needs_index`, the metrics do not report that there is no index to search."""
    from chunksink.index import Index

    config = config_from(shared, **flags)
    if shared.metrics_file is not None:
        _write_metrics_at_end(config, shared.metrics_file, needs_index=needs_index)
    return Index(config, stage=progress, on_fault=report_fault)


def note_index(config: Config, command: str) -> None:
    """Before a run that writes: say that it makes a new index, or that its chunks are in a different place now."""
    from chunksink.notifications import notifying

    home = config.home_path
    with notifying(config, command):  # a bucket that denies access is noticed here, before the run
        bus = config.bus
        if not live_sinks(home):
            if bus.exists:
                note(f"creating a new index in {home.absolute()}")
        elif (before := last_bus(home)) not in (None, bus.place):
            note(f"this index was last written from {before}; now from {bus.place}")


def access_of(config: Config, tenant: str | None) -> Access:
    """What a search may see. Refused if the index requires a tenant and none is named."""
    access = Access(tenant, required=config.tenants == "required")
    if access.denied:
        raise Refusal("this index requires a tenant: add --tenant NAME", Exit.USAGE)
    return access
