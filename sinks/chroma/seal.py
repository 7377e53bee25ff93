"""Telling a sound build from one that could take the process down.

Chroma saves its vector file in place. A kill or a fault of the disk in between leaves a file whose loading can
crash the process, which no `except` catches. So a writer that closes in order leaves a seal with the size and time
of every vector file; a build that does not look as it was sealed is first opened in another process (`probe`).
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sinks.errors import BuildBroken, NotConfirmed

FILE = "chunksink-seal.json"
_DATABASE = "chroma.sqlite3"
_PROBE = Path(__file__).with_name("probe.py")
_PATIENCE = 300  # seconds


def put(path: Path) -> None:
    """The writer is done: this is how its files look."""
    if path.is_dir():  # not dropped meanwhile
        _write(path, {"files": _files(path)})


def lift(path: Path) -> None:
    """A writer begins: from now on the files move."""
    _write(path, {"writer": os.getpid()})


def check(path: Path) -> None:
    """Raise `BuildBroken` where loading this build would fail or crash; costs a process only where in doubt."""
    if not (path / _DATABASE).exists():
        return  # new
    files, seal = _files(path), _read(path)
    if seal.get("files") == files or _alive(seal.get("writer")):
        return
    gone = sorted(seal.get("files", {}).keys() - files.keys())
    if gone:
        raise BuildBroken(f"vector files of {path} are gone ({', '.join(gone)}): rebuild it, nothing is lost")
    # -P: the probe's own folder must not hide installed packages.
    command = [sys.executable, "-P", str(_PROBE), str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise NotConfirmed(f"loading the vector index at {path} did not end within {_PATIENCE} s") from error
    if done.returncode == 0:
        return
    how = f"crashes with signal {-done.returncode}" if done.returncode < 0 else done.stdout.strip() or "fails"
    raise BuildBroken(f"the vector index at {path} cannot be loaded ({how}): rebuild it, nothing is lost")


def _files(path: Path) -> dict[str, list[int]]:
    found = {}
    for file in sorted(path.glob("*/*")):
        if file.is_file():
            status = file.stat()
            found[file.relative_to(path).as_posix()] = [status.st_size, status.st_mtime_ns]
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        seal = json.loads((path / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return seal if isinstance(seal, dict) and isinstance(seal.get("files", {}), dict) else {}


def _write(path: Path, seal: dict[str, Any]) -> None:
    waiting = path / f"{FILE}.{os.getpid()}"
    waiting.write_text(json.dumps(seal))
    waiting.replace(path / FILE)


def _alive(pid: Any) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
