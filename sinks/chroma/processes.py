"""How a module of this package is run in a process of its own: with what is found here, whatever the folder."""

import os
import sys
from pathlib import Path


def command(module: str, *arguments: str) -> list[str]:
    # -P: what lies in the current folder must not hide installed packages.
    return [sys.executable, "-P", "-m", module, *arguments]


def environment() -> dict[str, str]:
    found = os.pathsep.join(str(Path(path).resolve()) for path in sys.path)
    return {**os.environ, "PYTHONPATH": found}
