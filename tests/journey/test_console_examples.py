"""The console blocks of the docs show real output. CHUNKSINK_GOLDEN=1 rewrites it. Python blocks run after them."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from chunksink.command_line.cli import run
from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY, ROOT
from tests.journey.support import environment

REGENERATE = bool(os.environ.get("CHUNKSINK_GOLDEN"))
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Only slow machines print progress, and the home of a new index is at another place on each.
PROGRESS = re.compile(r"^(?:[a-z ]+: \d+( of \d+)? \w+|creating a new index in .*)\n", re.MULTILINE)
OPERATOR = re.compile(r"; | \| | \|\| | 2> ")
CHANGING = re.compile(r"\d+\.\d s\b|float32|bfloat16")
"""Parts of the output that differ between runs or machines."""


def run_in_bash(line: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment(PATH=path, ANONYMIZED_TELEMETRY="False"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=300,
    ).stdout


@contextmanager
def at_home_in(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - set(environment()):
            patch.delenv(name)
        patch.chdir(folder)
        yield


def run_here(line: str, folder: Path) -> str:
    """Run a command line. A command of chunksink runs in this process, where its libraries are already loaded. If the
    line has shell operators, a shell gets its outputs and exit code from files."""
    if not line.startswith("chunksink "):
        return run_in_bash(line, folder)
    command = OPERATOR.split(line)[0]
    out, err = io.StringIO(), io.StringIO()
    with at_home_in(folder), redirect_stdout(out), redirect_stderr(err if command != line else out):
        code = run(shlex.split(command)[1:])
    if command == line:
        assert code == Exit.OK
        return out.getvalue()
    (folder / ".out").write_text(out.getvalue())
    (folder / ".err").write_text(err.getvalue())
    return run_in_bash(f"chunksink() {{ cat .out; cat .err >&2; return {code}; }}; {line}", folder)


def run_block(block: str, folder: Path) -> str:
    """Run the commands of a console block, and return the block with their present output."""
    runner = run_in_bash if HEAVY else run_here
    lines = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {line}\n{PROGRESS.sub('', runner(line, folder))}" for line in lines)


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md", "docs/filters.md"])
def test_console_blocks_show_what_the_commands_print(page: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = CONSOLE.findall(text)
    assert blocks
    for block in blocks:
        printed = run_block(block, tmp_path)
        if REGENERATE and CHANGING.sub("#", printed) != CHANGING.sub("#", block):
            text = text.replace(f"```console\n{block}```", f"```console\n{printed}```")
            (ROOT / page).write_text(text, encoding="utf-8")
        else:
            assert CHANGING.sub("#", printed) == CHANGING.sub("#", block)
    for program in PYTHON.findall(text):
        with at_home_in(tmp_path):
            exec(program, {})
