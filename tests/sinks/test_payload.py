"""Vectors that an engine could not compute with are found before they are sent."""

import numpy as np
import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.document import Family, Vectors
from chunksink.sinks.payload import sound_rows

TINY = np.float32(1e-30)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ([0.0, 0.0, 0.0], "is zero"),
        ([-0.0, 0.0, 0.0], "is zero"),
        ([TINY, TINY, 0.0], "so short"),
        ([3.4e38, 3.4e38, 0.0], "overflows float32"),
        ([3.4e38, 0.0, 0.0], "overflows float32"),
        ([0.0, -1e20, 0.0], "overflows float32"),
        ([1e39, 0.0, 0.0], "NaN or infinity"),
        ([np.nan, 0.0, 0.0], "NaN or infinity"),
        ([np.inf, np.nan, 1.0], "NaN or infinity"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_vector_without_a_length_is_refused_and_its_siblings_are_not(
    bad: list[float], told: str, dtype: type
) -> None:
    good = [1e-15, 1e18, -3.0]
    with np.errstate(over="ignore"):
        vectors: Vectors = np.array([good, bad, good], dtype=dtype)
    documents = family("a", ["one", "two", "three"]).documents
    rows, refused = sound_rows(Family(documents, vectors), 3)
    assert rows == [0, 2]
    assert [(one.id, told in one.reason) for one in refused] == [(documents[1].id, True)], refused
