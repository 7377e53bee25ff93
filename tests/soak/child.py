"""A run that somebody kills: says when it begins.

python -m tests.soak.child HOME CHUNKS sync|rebuild
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from chunkbus.layout import BusRoot
from rebuild import execute
from tests.crash.homes import home_in

READY = b"ready\n"


def main(folder: str, chunks: str, command: str) -> None:
    execute.EMBEDDED_AT_ONCE = execute.WRITTEN_AT_ONCE = 4
    home = home_in(Path(folder), BusRoot(Path(chunks)))
    os.write(sys.stdout.fileno(), READY)
    home.rebuild() if command == "rebuild" else home.sync()


if __name__ == "__main__":
    main(*sys.argv[1:])
