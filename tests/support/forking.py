"""Processes of tests, forked from one that has imported what they need: that takes longer than most of them run."""

import multiprocessing

FORKING = multiprocessing.get_context("forkserver")
# All tests of a process share one server, which imports only what the last of such lists names.
FORKING.set_forkserver_preload(
    [
        "numpy.random",
        "chromadb",
        "chunksink.sinks.chroma",
        "chunksink.sinks.fts.sink",
        "chunksink.sinks.jsonl",
        "tests.crash.dying",
    ]
)
