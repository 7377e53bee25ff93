"""The command line: one group, whose commands (`commands/`, one file each) are imported when called."""

import atexit
import gc
import os
import signal
import sqlite3
import sys
import traceback
from _thread import interrupt_main
from importlib import import_module
from threading import Event, Timer
from types import FrameType
from typing import Any

import click

from chunksink import __version__
from chunksink.chunkbus.wording import encodable
from chunksink.command_line import logs
from chunksink.command_line.exits import Exit, Refusal, errors_as_refusals, print_failure
from chunksink.command_line.output import note
from chunksink.command_line.progress import show_notices

# Each command with its line in the overview, so that --help imports no module of chunksink.command_line.commands.
COMMANDS = {
    "ingest": "Make canonical chunks from documents.",
    "validate": "Check chunks and manifests against the contract.",
    "schema": "Print the JSON Schema of a chunk, a manifest or an extractor's record.",
    "sync": "Update the index to match the chunks.",
    "rebuild": "Build a new index from the chunks, verify it, and switch to it.",
    "plan": "Show what a sync would do.",
    "verify": "Compare the engines with the chunks; --repair corrects the engines.",
    "prove": "Write a report of the index that a second machine can reproduce.",
    "rollback": "Switch back to the previous generation.",
    "search": "Search the index.",
    "eval": "Measure searches against judgements.",
    "serve": "Serve the search page and its API.",
    "mcp": "Serve the index to an assistant (Model Context Protocol).",
    "status": "Show what is live, held, due or under way.",
    "why": "Explain everything known about one chunk.",
    "runs": "List past runs, or show one.",
    "dead-letters": "List documents that engines refused, and send them again.",
    "retire-partition": "Retire a partition that will not come back.",
    "forget": "Erase one source from every build, cache and record.",
    "backup": "Copy the records and the cache of vectors to one file.",
    "restore": "Restore a backup into an empty home.",
    "endpoints": "Show where the live indexes are, for programs that query the engines themselves.",
    "doctor": "Check this machine, the engines and the configuration.",
    "init": "Write a commented configuration file.",
    "cache": "Show, check, shrink and copy the cache of vectors.",
    "settings": "Compare and apply the index settings of Meilisearch.",
    "reindex": "List sources whose extractor records are out of date.",
    "ledger": "Show which sources were read, by what, and with what result.",
}
ALIASES = {"rebuild-index": "rebuild"}
"""Other names of commands, which pipelines use."""
_QUICK_START = """\
chunksink ingest FOLDER --sync    read the documents in FOLDER and index them
chunksink search "a question"     search the index
chunksink --help                  list all commands"""


_hidden_interrupt = Event()
"""Set when Ctrl-C interrupted a function whose exceptions are dropped: a finalizer, or one that SQLite calls."""
_REPEAT_SECONDS = 1.0
"""Seconds after which a dropped Ctrl-C is raised again if the command has not ended by then."""


class LazyGroup(click.Group):
    """Commands are loaded by name; the overview is printed without loading any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"chunksink.command_line.commands.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggests similar names: click itself knows none of these commands."""
        word = args[0]
        if word not in COMMANDS and word not in ALIASES and not ctx.resilient_parsing:
            from difflib import get_close_matches

            if near := get_close_matches(word, [*COMMANDS, *ALIASES]):
                ctx.fail(f"there is no command {word!r:.100}; did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with errors_as_refusals():  # also for errors while printing
                return super().invoke(ctx)
        except BrokenPipeError as error:  # the reader closed our output; click would exit with 1, our code for a bug
            raise click.exceptions.Exit(Exit.OUTPUT_CLOSED) from error
        except EOFError as error:  # a bug, or a truncated .pyc file; click would report an interrupt
            raise RuntimeError(f"unexpected end of a file: {error}") from error
        except (KeyboardInterrupt, Exception) as error:
            if not isinstance(error, KeyboardInterrupt) and not _hidden_interrupt.is_set():
                raise
            _hidden_interrupt.clear()
            raise click.Abort from error  # click prints an empty line for a KeyboardInterrupt

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", prog_name="chunksink")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    envvar="CHUNKSINK_LOG_FORMAT",
    default="text",
    show_default=True,
    is_eager=True,
    expose_value=False,
    callback=lambda _context, _option, value: logs.use_json() if value == "json" else None,
    help="The form of standard error; json: one JSON object per line.",
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Keeps a keyword index and a vector index in step with your documents.

    `ingest` cuts documents into chunks, in the folder ./chunks. `sync` updates the index, in ./.chunksink, to match
    the chunks. No configuration is needed. Options override CHUNKSINK_* variables, and variables override
    chunksink.toml.
    """
    if context.invoked_subcommand is None:
        click.echo(_QUICK_START)


def main(*first: str) -> None:
    """Run the command line with these words before the arguments, and end the process with its exit code."""
    _start_faster()
    _handle_sigterm()
    _detect_hidden_interrupts()
    show_notices()
    code = _run([*first, *sys.argv[1:]])
    try:
        sys.stdout.flush()
    except OSError:  # reported already; Python would report it again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    gc.freeze()  # looking through a million objects for garbage at exit took more than a second
    sys.exit(code)


def _start_faster() -> None:
    """Leave out optional parts of libraries that no command uses, and collect garbage rarely.

    A cold search takes a tenth less time. The libraries do without these modules if the import fails.
    """
    modules: dict[str, Any] = sys.modules
    modules["httpx._main"] = modules["openvino.tools.ovc"] = None
    gc.set_threshold(300_000, 20, 100)


def _handle_sigterm() -> None:
    """SIGTERM, which supervisors send, works like Ctrl-C; afterwards the process dies by that signal."""
    terminated = Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        terminated.set()
        raise KeyboardInterrupt

    def die() -> None:
        if terminated.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        atexit.register(die)  # registered first, called last
        signal.signal(signal.SIGTERM, end)


def _detect_hidden_interrupts() -> None:
    """Notice Ctrl-C in finalizers and in functions that SQLite calls. Python passes their exceptions to this hook, and
    then drops them.

    If SQLite had called the function, sqlite3 then raises an error of its own. After an interrupt
    in a finalizer nothing is raised, so the interrupt is repeated.
    """
    sqlite3.enable_callback_tracebacks(True)
    show = sys.unraisablehook

    def repeat() -> None:
        if _hidden_interrupt.is_set():
            interrupt_main()

    def hook(dropped: "sys.UnraisableHookArgs") -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            show(dropped)
            return
        _hidden_interrupt.set()
        timer = Timer(_REPEAT_SECONDS, repeat)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook


def rebuild_index() -> None:
    """`rebuild-index` is `chunksink rebuild` under the name that pipelines use."""
    main("rebuild-index")


def run(arguments: list[str]) -> int:
    """Run the command line within this process; returns the exit code."""
    try:
        return _run(arguments)
    finally:
        logs.use_text()


def _run(arguments: list[str]) -> int:
    has_no_colours = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"  # no-color.org
    color = False if has_no_colours else None  # None: the terminal decides
    try:
        result = cli.main(arguments, prog_name="chunksink", standalone_mode=False, color=color)
    except click.ClickException as error:
        error = _with_hint(error) if isinstance(error, click.NoSuchOption) else error
        return _failed(error, error.code if isinstance(error, Refusal) else error.exit_code, arguments)
    except (click.Abort, KeyboardInterrupt):
        if sys.stderr.isatty() and not logs.is_json():
            click.echo("\r\x1b[K", err=True, nl=False)  # removes the `^C` that the terminal shows
        note("Interrupted. Nothing is half done: run the command again.", event="interrupted")
        return Exit.INTERRUPTED
    except Exception as error:
        if isinstance(error, UnicodeEncodeError) and (wrong := _not_utf8(arguments)):
            refusal = click.ClickException(f"the argument {wrong:.200} is not in UTF-8: write it in UTF-8")
            return _failed(refusal, Exit.USAGE, arguments)
        if "--json" not in arguments and not logs.is_json():
            raise
        message = f"an unknown error, {type(error).__name__}: {error} (standard error has its traceback)"
        if logs.is_json():
            logs.write(message, severity="critical", event="bug", error=error)
        else:
            traceback.print_exc()
        if "--json" in arguments:
            print_failure(click.ClickException(message), Exit.BUG)
        return Exit.BUG
    return result if isinstance(result, int) else Exit.OK


def _with_hint(error: click.NoSuchOption) -> click.NoSuchOption:
    """The same error with a hint, if the option may be in the wrong place."""
    similar = error.possibilities
    if any(error.option_name in option.opts for option in cli.params):
        hint, similar = "It goes before the command.", None
    elif error.ctx is None or isinstance(error.ctx.command, click.Group):
        hint = "Options of a command go after its name."
    elif error.ctx.info_name == "search":
        hint = "To search for it: chunksink search -- QUERY."
    else:
        return error
    return click.NoSuchOption(error.option_name, f"{error.message} {hint}", similar, error.ctx)


def _failed(error: click.ClickException, code: int, arguments: list[str]) -> int:
    if logs.is_json() and not isinstance(error, Refusal):
        note(error.format_message(), severity="error", event="error")
    else:
        error.show()
    if "--json" in arguments:
        print_failure(error, code)
    return code


def _not_utf8(arguments: list[str]) -> str | None:
    """The first argument with bytes that are not UTF-8, escaped. Call it only after an error: a file name that is
    not in UTF-8 is valid in itself."""
    escaped = [(word, encodable(word)) for word in arguments]
    return next((text for word, text in escaped if text != word), None)
