"""The console blocks of the docs show real output. CHUNKSINK_GOLDEN=1 rewrites it. Python blocks run after them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.journey.support import environment

REGENERATE = bool(os.environ.get("CHUNKSINK_GOLDEN"))
PAGES = ["README.md", "docs/quickstart.md", "docs/filters.md", "examples/README.md"]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PROGRESS = re.compile(r"^[a-z ]+: \d+( of \d+)? \w+\n", re.MULTILINE)  # only a slow machine prints it
CHANGING = re.compile(r"\d+\.\d s\b|float32|bfloat16|[0-9a-f]{64}")
"""Parts of the output that differ between runs or machines."""


def run_block(block: str, folder: Path) -> str:
    """Run the commands of a console block; the result is the block with what they print now."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = ""
    for line in block.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line.removeprefix("$ ")],
                cwd=folder,
                env=environment(PATH=path, ANONYMIZED_TELEMETRY="False"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
                timeout=300,
            )
            result += f"{line}\n{PROGRESS.sub('', done.stdout)}"
    return result


@pytest.mark.parametrize("page", PAGES)
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
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment(), check=True, timeout=300)
