"""Writes constraints.txt: the version of every dependency that a clean environment installs today.

    python3 tools/lock.py        (`make lock`)

All dependencies and extras of pyproject.toml are installed into a temporary environment, in the newest versions that
are allowed. Only `name==version` lines are kept: no paths, no addresses, and no local versions such as `+cpu`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
TORCH = "2.13.0"

HEADER = f"""\
# Made by `make lock`: the versions that a clean environment with all extras got, without local suffixes such as +cpu.
# torch is pinned to {TORCH}: if the index offers a CPU build of it, pip takes that, without gigabytes of CUDA packages.
"""

PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!]+)(\+[A-Za-z0-9.]+)?$")


def main() -> int:
    wanted = requirements()
    with tempfile.TemporaryDirectory(prefix="chunksink-lock-") as scratch:
        print("making a clean environment ...", flush=True)
        venv.create(scratch, with_pip=True)
        python = str(Path(scratch) / "bin" / "python")
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        print(f"installing {len(wanted)} requirements and what they need ...", flush=True)
        subprocess.run([*install, *wanted], check=True)
        freeze = [python, "-m", "pip", "freeze", "--disable-pip-version-check"]
        frozen = subprocess.run(freeze, check=True, text=True, stdout=subprocess.PIPE).stdout
    lines = pins(frozen)
    # An interrupted run keeps the old file.
    draft = TARGET.with_suffix(".tmp")
    draft.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    draft.replace(TARGET)
    print(f"{TARGET.name}: {len(lines)} versions")
    return 0


def requirements() -> list[str]:
    """The dependencies and the extras of pyproject.toml, and the pin of torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = re.compile(rf"{project['name']}\s*\[")
    wanted: list[str] = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        # An extra that names others (`chunksink[a,b]`) adds nothing, because all of them are included.
        wanted += [line for line in extra if not own.match(line)]
    return [*dict.fromkeys(wanted), f"torch=={TORCH}"]


def pins(frozen: str) -> list[str]:
    """Sorted `name==version` lines. Everything else is refused."""
    found = []
    for line in frozen.splitlines():
        match = PIN.match(line.strip())
        if match is None:
            raise SystemExit(f"pip freeze printed a line that is not NAME==VERSION: {line!r}")
        found.append(f"{match[1]}=={match[2]}")
    return sorted(found, key=str.lower)


if __name__ == "__main__":
    sys.exit(main())
