"""Capabilities that a test needs."""

from typing import TypeVar

from chunksink.sinks.capabilities import capability

C = TypeVar("C")


def required(owner: object, kind: type[C]) -> C:
    """`owner` typed as `kind`. Fails if it lacks that capability."""
    capable = capability(owner, kind)
    assert capable is not None, f"{owner!r} does not implement {kind.__name__}"
    return capable
