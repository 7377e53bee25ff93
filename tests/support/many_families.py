"""Families for a large build, and a check that a new build can store them."""

from functools import cache

from chunksink.sinks.conformance.samples import DIMENSIONS, family, hashes_in, hashes_of, marker
from chunksink.sinks.contract import Sink
from chunksink.sinks.document import Family


@cache
def many_families() -> list[Family]:
    """A function, because making them takes as long as collecting a hundred tests."""
    return [family(f"f{number}", [f"{number} {place}" for place in range(12)]) for number in range(100)]


def whole(sink: Sink) -> None:
    """Write all families to a new build, and check that it has them and nothing else."""
    signed, families = marker(), many_families()
    build = sink.create(signed, DIMENSIONS)
    build.replace(families)
    assert build.flush() == []
    assert (hashes_in(build, content=True), build.count(), build.marker()) == (
        hashes_of(families),
        1200,
        signed,
    )
    build.close()
