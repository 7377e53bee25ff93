"""The command line as a whole: help, exit codes, and which modules it does not load."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from chunksink import __version__
from chunksink.command_line import cli
from chunksink.command_line.cli import COMMANDS, run
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.conftest import ROOT
from tests.support.bus import source
from tests.support.commands import commands

# Modules that are slow to import or start an engine. `--help` must not import them.
HEAVY = {"numpy", "tqdm", "torch", "chromadb", "sentence_transformers", "meilisearch", "sqlite_utils", "transformers"}
HEAVY |= {"starlette", "ray", "orjson", "mmh3", "rfc8785", "httpx", "requests", "pydantic", "markdown_it"}
PACKAGES = {f"chunksink.{name}" for name in ("chunkbus", "ingest", "sinks", "embeddings", "rebuild", "search")}


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    for name, text in COMMANDS.items():
        assert name in out
        assert text.split(".")[0][:40] in out


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_has_help_with_an_example(
    name: str, command: click.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*name.split(), "--help"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"Usage: chunksink {name} ")
    assert f"chunksink {name}" in re.split("Examples?:", out)[1]
    assert err == ""
    assert command.help
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("option", ["--log-format", "--version"])
def test_option_of_the_whole_command_line_after_a_command_is_explained(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sync", option, "json"]) == Exit.USAGE
    assert f"{option!r}. It goes before the command.\n" in capsys.readouterr().err
    assert run(["sync", "--log-fromat", "json"]) == Exit.USAGE
    assert "before the command" not in capsys.readouterr().err


def test_option_of_a_command_before_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", "chunksink.toml", "status"]) == Exit.USAGE
    assert "after its name" in capsys.readouterr().err


def test_misspelt_option_of_a_search_suggests_the_right_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "--limt", "3", "battery"]) == Exit.USAGE
    assert "--limit" in capsys.readouterr().err


def loaded_after(statement: str) -> set[str]:
    """The top-level modules and the packages of chunksink that are loaded in a new process after a statement."""
    program = f"import json, sys\n{statement}\njson.dump(sorted(sys.modules), sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    modules = json.loads(done.stderr)
    return {name.split(".")[0] for name in modules} | {name for name in modules if name in PACKAGES}


@pytest.mark.parametrize(
    "statement",
    [
        "import chunksink; assert not hasattr(chunksink, 'Nonsense')",
        "from chunksink.command_line.cli import run; assert run(['--help']) == 0",
    ],
)
def test_the_overview_loads_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)
    assert "chunksink" in loaded
    assert loaded & (HEAVY | PACKAGES) <= {"chunksink.chunkbus"}  # the words of messages are there


@pytest.mark.parametrize(
    ("call", "library"),
    [("validate --help", "sqlite_utils"), ("validate --chunks {0} --home {0}/h", "sqlite_utils")],
)
def test_light_commands_load_no_engine(call: str, library: str, tmp_path: Path) -> None:
    (tmp_path / "canonical").mkdir()
    arguments = call.format(tmp_path).split()
    loaded = loaded_after(f"from chunksink.command_line.cli import run; assert run({arguments!r}) == 0")
    assert loaded & {library, "tqdm", "torch", "chromadb", "sentence_transformers", "meilisearch"} == set()


def test_help_of_commands_does_not_load_numpy() -> None:
    """Importing it takes a tenth of a second. The other three commands need it for their options."""
    commands = sorted(COMMANDS.keys() - {"cache", "eval", "settings"})
    loaded = loaded_after(
        f"from chunksink.command_line import cli; assert not any(cli.run([c, '--help']) for c in {commands})"
    )
    assert loaded & {"numpy", "torch", "chromadb", "sentence_transformers"} == set()


def test_exit_codes_are_distinct_and_explained() -> None:
    assert len({code.value for code in Exit.__members__.values()}) == len(Exit.__members__)
    assert len({code.meaning for code in Exit}) == len(Exit)


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["--version"], 0, __version__),
        (["nonsense"], Exit.USAGE, "nonsense"),
        (["--nonsense"], Exit.USAGE, "--nonsense"),
        (["search", "--leak-check=full"], Exit.USAGE, "chunksink search -- QUERY"),
        (["sync", "--log-format=json"], Exit.USAGE, "before the command"),
        ([], Exit.OK, "chunksink ingest FOLDER --sync"),
    ],
)
def test_group_with_these_arguments_prints_and_exits(
    arguments: list[str], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert expected in out + err


def test_interrupt_removes_its_sign_from_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.cli, "get_command", lambda *_: click.Command("sync", callback=interrupted))
    assert run(["sync"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err.startswith("Interrupted")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(["sync"]) == Exit.INTERRUPTED
    assert capsys.readouterr().err.startswith("\r\x1b[KInterrupted")


def test_exit_runs_no_garbage_collection() -> None:
    """A collection over all objects of models and engines takes longer than many commands."""
    code = """
import gc, sys
class Left:
    def __init__(self): self.itself = self
    def __del__(self): print("looked", flush=True)
gc.disable()
Left()
sys.argv[1:] = ["--version"]
from chunksink.command_line.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"chunksink, version {__version__}\n", "")


def test_shell_completion_offers_command_names() -> None:
    def completed(**variables: str) -> str:
        environment = os.environ | variables
        done = subprocess.run(
            [sys.executable, "-m", "chunksink"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.stdout

    assert "_CHUNKSINK_COMPLETE=bash_source chunksink" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert "complete -o nosort -F" in completed(_CHUNKSINK_COMPLETE="bash_source")
    names = completed(_CHUNKSINK_COMPLETE="bash_complete", COMP_WORDS="chunksink se", COMP_CWORD="1")
    assert names.split() == ["plain,search", "plain,serve", "plain,settings"]
    completed(_CHUNKSINK_COMPLETE="bash_complete", COMP_WORDS="chunksink serach --l", COMP_CWORD="2")


def test_closed_output_has_its_own_exit_code_for_rebuild_index() -> None:
    """As in `rebuild-index --help | head -0`. Python reports an error of its own at exit if output is buffered."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; sys.argv[1:] = ['--help']; from chunksink.command_line import cli; cli.rebuild_index()"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with os.fdopen(writing, "wb") as output:
        ended = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=buffered, stdout=output, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (Exit.OUTPUT_CLOSED, b"")


def test_rebuild_index_help_shows_its_own_name() -> None:
    code = "import sys; sys.argv[1:] = ['--help']; from chunksink.command_line import cli; cli.rebuild_index()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("Usage: chunksink rebuild-index ")


@pytest.mark.parametrize(
    ("module", "extra", "arguments"),
    [
        ("obstore.store", "s3", ["validate", "--chunks", "s3://bucket/a"]),
        ("obstore.store", "s3", ["ingest", ".", "--chunks", "s3://bucket/a"]),
        ("pyarrow.ipc", "cache", ["cache", "export", "vectors"]),
    ],
)
def test_missing_package_is_a_usage_error_that_names_the_extra(
    module: str, extra: str, arguments: list[str], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    monkeypatch.setitem(sys.modules, module, None)
    ended = shell(*arguments)
    assert ended.code == Exit.USAGE
    assert f"'.[{extra}]'" in ended.err
