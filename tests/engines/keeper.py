"""Runs one engine and ends it with the test run.

    python keeper.py FOLDER PROGRAM ARGUMENT...

The test run holds the other end of this process's standard input. When that end closes (the fixture is done, a test
failed, Ctrl-C, or even `kill -9` of pytest), the engine is ended by its process id and its folder is removed. A fixture
alone could not promise that, because a killed process cleans up nothing.

The engine's process id is printed first. If the engine ends by itself, its log is kept until the input closes.

Variables: CHUNKSINK_TEST_GRACE (seconds until the engine is killed), CHUNKSINK_TEST_SIGNAL (the signal that ends the
engine), CHUNKSINK_TEST_FOLDER (its current folder) and CHUNKSINK_TEST_USER (its user; PostgreSQL refuses to run as
root).
"""

import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

GRACE = float(os.environ.get("CHUNKSINK_TEST_GRACE", "10"))  # seconds between asking an engine to end and ending it
ASK = signal.Signals[os.environ.get("CHUNKSINK_TEST_SIGNAL", "SIGTERM")]


class Identity(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def main(folder: Path, command: list[str]) -> int:
    engine = None
    try:
        with (folder / "engine.log").open("wb") as log:
            # In its own folder: engines write into the current one (Meilisearch makes `dumps/`).
            cwd = folder / os.environ.get("CHUNKSINK_TEST_FOLDER", "")
            who = identity(os.environ.get("CHUNKSINK_TEST_USER"))
            engine = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **who)
        print(engine.pid, flush=True)
        while True:
            readable, _, _ = select.select([sys.stdin], [], [], 0.2)
            if readable and not os.read(sys.stdin.fileno(), 1024):
                return 0
            engine.poll()  # reap it: as a zombie, a dead engine would look alive to the test run
    finally:
        if engine is not None:
            end(engine)
        shutil.rmtree(folder, ignore_errors=True)


def identity(user: str | None) -> Identity:
    """The arguments of Popen that run a program as this user; none for the present user."""
    if not user:
        return {}
    found = pwd.getpwnam(user)
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


def end(engine: subprocess.Popen[bytes]) -> None:
    engine.send_signal(ASK)
    try:
        engine.wait(GRACE)
    except subprocess.TimeoutExpired:
        engine.kill()
        engine.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
