"""Runs one engine and ends it with the test run.

    python keeper.py FOLDER PROGRAM ARGUMENT...

The test run holds the other end of this process's standard input. When that end closes, for whatever reason
(the fixture is done, a test failed, Ctrl-C, even `kill -9` of pytest), the engine is ended by its process id
and its folder is removed. A fixture's own clean-up could not promise that: a killed process cleans nothing.

The engine's process id is printed first. An engine that ends by itself leaves its log until the input closes.

Variables: CHUNKSINK_TEST_GRACE, CHUNKSINK_TEST_SIGNAL (what asks the engine to end), CHUNKSINK_TEST_FOLDER (the
engine's current folder) and CHUNKSINK_TEST_USER (the user to run it as; PostgreSQL refuses to run as root).
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
            # In its own folder: engines leave things in the current one (Meilisearch makes `dumps/`).
            cwd = folder / os.environ.get("CHUNKSINK_TEST_FOLDER", "")
            who = identity(os.environ.get("CHUNKSINK_TEST_USER"))
            engine = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **who)
        print(engine.pid, flush=True)
        while True:
            readable, _, _ = select.select([sys.stdin], [], [], 0.2)
            if readable and not os.read(sys.stdin.fileno(), 1024):
                return 0
            engine.poll()  # reap it: a dead engine must not look alive to the test run as a zombie
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
