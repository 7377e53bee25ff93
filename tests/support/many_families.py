"""Families for a large build, and a check that a new build can store them."""

from functools import cache

from chunksink.sinks.conformance.samples import DIMENSIONS, family, held, marker, wanted
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Family


@cache
def many_families() -> list[Family]:
    """Not a constant: making them takes as long as a hundred tests are collected."""
    return [family(f"f{number}", [f"{number} {place}" for place in range(12)]) for number in range(100)]


def whole(sink: Sink) -> None:
    """All families into a new build: it holds them and nothing else."""
    signed, families = marker(), many_families()
    build = sink.create(signed, DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    assert (held(build, content=True), build.count(), build.marker()) == (wanted(families), 1200, signed)
    build.close()
