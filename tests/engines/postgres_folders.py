"""The folders that a PostgreSQL of the tests needs: its programs and its database.

PostgreSQL refuses to run as root. If the tests run as root, it runs as the user `nobody`, who may be unable to reach
these folders by their paths. Then the programs are copied. The database is the server's current folder, which a process
can always use.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.engines.keeper import identity
from tools import engines

SUPERUSER = "chunksink"
USER = "nobody" if os.geteuid() == 0 else ""
"""The user who runs the server; empty for the present user."""


def name(database: Path) -> str:
    """The name of the server's current folder, as a program run by `USER` can open it."""
    return "/proc/self/cwd" if USER else str(database)


def programs(pg_ctl: Path, scratch: Path) -> Path:
    """The folder with `initdb` and `postgres`: the one of `pg_ctl`, or a copy in `scratch` that `USER` can reach."""
    folder = pg_ctl.resolve().parent
    if not USER or all(each.stat().st_mode & 0o1 for each in (folder / "postgres", *folder.parents)):
        return folder
    # The package's programs find their libraries beside the package.
    installation = folder.parents[2] if pg_ctl.match(str(engines.PROGRAMS["postgres"])) else folder.parent
    copy = scratch / "installation"
    shutil.copytree(installation, copy, symlinks=True)
    _give(copy)
    scratch.chmod(0o711)
    return copy / folder.relative_to(installation)


def database(programs: Path, folder: Path, key: str) -> None:
    """Create a database in this folder if it has none."""
    if not (folder / "PG_VERSION").exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        _give(folder)
        _create(programs, folder, key)


def _create(programs: Path, folder: Path, key: str) -> None:
    with tempfile.TemporaryFile("w+") as password:
        password.write(key)
        password.seek(0)
        if USER:
            os.fchown(password.fileno(), identity(USER)["user"], -1)
        done = subprocess.run(
            [
                *(str(programs / "initdb"), "-D", name(folder), f"--username={SUPERUSER}", "--pwfile=/dev/stdin"),
                *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            cwd=folder,
            stdin=password,
            text=True,
            capture_output=True,
            check=False,
            **identity(USER),
        )
    if done.returncode:
        raise OSError(f"initdb failed: {done.stderr}")


def _give(folder: Path) -> None:
    """Make the user who runs PostgreSQL the owner of this folder."""
    if USER:
        owner = identity(USER)
        for path in (folder, *folder.rglob("*")):
            os.lchown(path, owner["user"], owner["group"])
