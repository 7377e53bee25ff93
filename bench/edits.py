"""Times syncs after a few chunks were edited, in one process whose model stays loaded.

    python -m bench.edits BUSES HOME SINKS

BUSES is a folder with versions of one bus. The first is stored with generated vectors, and the second loads the model;
neither is timed. The output is one line of JSON: the seconds for all other versions, and the number of vectors that
were computed for them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import orjson

from bench import corpora
from chunksink.index import Index
from chunksink.settings.config import Config


def main() -> None:
    buses, home, sinks = Path(sys.argv[1]), Path(sys.argv[2]), tuple(sys.argv[3].split(","))
    first, *others = sorted(buses.iterdir())
    corpora.fill_cache(first, home)
    chunks = home.with_suffix(".chunks")
    seconds, computed = 0.0, 0
    with Index(Config(chunks=str(chunks), home=str(home), sinks=sinks)) as index:
        for number, bus in enumerate((first, *others)):
            chunks.unlink(missing_ok=True)
            chunks.symlink_to(bus)
            started = time.perf_counter()
            report = index.sync()
            assert report.status == "ok", report
            if number > 1:
                seconds += time.perf_counter() - started
                computed += report.embeddings["computed"]
    print(orjson.dumps({"seconds": seconds, "computed": computed}).decode())


if __name__ == "__main__":
    main()
