"""Exit codes. Each has one meaning, so that a script can act on it; `docs/cli.md` lists them."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    BUG = 1
    USAGE = 2
    INVALID_INPUT = 3
    DRIFT = 4
    ENGINE = 5
    REFUSED = 6
    LOCKED = 7
    BRAKE = 8
    OTHER_PLAN = 9
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


MEANINGS = {
    Exit.OK: "done, and nothing to complain about",
    Exit.BUG: "an error that chunksink does not know: a bug, with its traceback",
    Exit.USAGE: "the command, its options or the configuration cannot be used as given",
    Exit.INVALID_INPUT: "partitions or sources are missing or broken; the rest was taken, by a rebuild nothing",
    Exit.DRIFT: "an engine, the cache of vectors or a file of ours holds something else than was written to it or, for "
    "`verify`, than the chunks say now, or cannot be held against it",
    Exit.ENGINE: "an engine or endpoint cannot be reached, or will not do what it was asked; or a disk is full",
    Exit.REFUSED: "all is done, but some documents or vectors were refused and left out",
    Exit.LOCKED: "another process is writing the same thing",
    Exit.BRAKE: "a large share of the index would be removed; nothing was written",
    Exit.OTHER_PLAN: "a sync would do something else now than the plan that was named; nothing was written: plan again",
    Exit.INTERRUPTED: "stopped by Ctrl-C, the state is clean: run it again; SIGTERM stops it too, shells show 143",
    Exit.OUTPUT_CLOSED: "whoever read the output left before its end, as `| head` does",
}
