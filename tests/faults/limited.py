"""Runs on copies of a home, each in a process with a limit on file sizes.

    python -m tests.faults.limited HOMES SINKS LIMIT ...

HOMES/LIMIT is the copy for LIMIT. One line of JSON is printed for the result of each run.
"""

import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any

from chunksink.chunkbus.errors import ChunkBusError
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.rebuild.errors import RebuildError
from chunksink.sinks.errors import SinkError
from tests.support.home import Home
from tests.support.local_engines import chroma, eager

KNOWN = (OSError, ChunkBusError, EmbeddingsError, RebuildError, SinkError)
"""Errors that people can act on; any other one counts as a bug."""


def home_in(folder: Path, sinks: str) -> Home:
    made = {"fts": eager, "chroma": chroma}
    return Home(folder / "home", FolderRoot(folder / "chunks"), *(made[name] for name in sinks.split(",")))


def end(folder: Path, sinks: str, run: str) -> dict[str, Any]:
    """The result of a run of this home. It is not written to a file."""
    home = home_in(folder, sinks)
    try:
        outcome = home.sync() if run == "sync" else home.rebuild()
        failed = getattr(getattr(outcome, "done", None), "failed", {})
    except Exception as error:  # the test examines its type
        return {
            "ended": type(error).__name__,
            "known": isinstance(error, KNOWN),
            "message": f"{error}",
            "trace": traceback.format_exc(),
        }
    return {"ended": "failed" if failed else "ok", "known": True, "message": " ".join(map(str, failed.values()))}


def main(homes: str, sinks: str, run: str, *limits: str) -> None:
    for limit in limits:
        child = os.fork()
        if child == 0:
            sys.dont_write_bytecode = True  # the limit would cut off these files, too
            most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), most))  # Python ignores SIGXFSZ
            line = json.dumps({"limit": int(limit), **end(Path(homes) / limit, sinks, run)})
            os.write(sys.stdout.fileno(), line.encode() + b"\n")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"the run with {limit} bytes died: {status}")


if __name__ == "__main__":
    main(*sys.argv[1:])
