"""Reading values: accepted, skipped, never raising; and vectors that no engine can use."""

import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from chunksink.sinks import values
from chunksink.sinks.conformance.samples import family
from chunksink.sinks.document import Family, Vectors
from chunksink.sinks.payload import with_usable_vectors
from tests.support.chunks import JUNK

READERS = [
    *(values.verbatim, values.string, values.line, values.facet, values.integer, values.count, values.first_count),
    *(values.last_count, values.seconds, values.boolean, values.lines, values.labels, values.names, values.epoch),
    *(values.seconds_from_milliseconds, values.year, values.extension, values.chain, values.offset, values.anchor),
]


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (values.verbatim, " as it is\n", " as it is\n"),
        (values.verbatim, "a\0b", "a\ufffdb"),
        (values.verbatim, 5, None),
        (values.string, "  ", None),
        (values.line, " two\n lines ", "two lines"),
        (values.integer, 3.0, 3),
        (values.integer, 3.5, None),
        (values.integer, True, None),
        (values.integer, 2**53, None),
        (values.count, -1, None),
        (values.first_count, [3, 5], 3),
        (values.last_count, [3, 5], 5),
        (values.first_count, [], None),
        (values.seconds, 1093.1000000000001, 1093.1),
        (values.seconds, 1e13, None),
        (values.seconds, float("nan"), None),
        (values.boolean, 1, None),
        (values.lines, ["One", 2, " Two  words "], ("One", "Two words")),
        (values.lines, [], None),
        (values.labels, "a, b; c\nb", ("a", "b", "c")),
        (values.labels, ["a, b", "a, b", None], ("a, b",)),
        (values.names, "Doe, Jane", ("Doe, Jane",)),
        (values.names, [{"given": "Jane", "family": "Doe"}, {"name": "Bob"}, {"x": 1}, "Bob"], ("Jane Doe", "Bob")),
        (values.epoch, "2024-01-01T01:00:00+01:00", 1704067200),
        (values.epoch, "2024-01-01T00:00:00.999", 1704067200),
        (values.epoch, "2024-01-01", 1704067200),
        (values.epoch, "1969-12-31T23:59:59.5Z", -1),
        (values.epoch, 12.7, 12),
        (values.epoch, 1_704_067_200_123, 1704067200),
        (values.epoch, -1_704_067_200_000, -1704067200),
        (values.line, "a\0b", "a\ufffdb"),
        (values.epoch, "yesterday", None),
        (values.seconds_from_milliseconds, 1999, 1),
        (values.year, "1999-05", 1999),
        (values.year, 2001.0, 2001),
        (values.year, "19999", None),
        (values.extension, ".PDF", "pdf"),
        (values.chain, ["A", "B"], "A > B"),
        (values.offset, {"segment_id": 1, "ordinal": 2, "byte_offset": 3}, "1/2/3"),
        (values.offset, {"segment_id": "s", "ordinal": 2}, "s/2/"),
        (values.offset, 44, "44"),
        (values.anchor, {"xml:id": "p3"}, "p3"),
        (values.anchor, "#p3", "#p3"),
        (values.anchor, {"n": 1}, None),
    ],
)
def test_values_are_read(read: Any, value: Any, expected: Any) -> None:
    assert read(value) == expected


@given(JUNK)
def test_readers_never_raise_or_return_what_json_cannot_carry(value: Any) -> None:
    for read in READERS:
        found = read(value)
        for one in found if isinstance(found, tuple) else (found,):
            if isinstance(one, str):
                one.encode()
            assert one is None or isinstance(one, str | int | float)


@pytest.mark.parametrize("character", ["a", "é", "漢", "한", "😀", "ﷺ", "İ", "e\u0301"])
@pytest.mark.parametrize("before", range(4))
def test_facet_is_cut_to_fit_in_any_script(character: str, before: int) -> None:
    """468 bytes as written and as decomposed by the engine, cut between characters, as long as possible."""
    text = "x" * before + character * 500
    token = values.facet(text)
    assert token is not None
    assert text.startswith(token)
    sizes = [len(token.encode()), len(unicodedata.normalize("NFKD", token).lower().encode())]
    assert max(sizes) <= values.FACET_BYTES
    longer = text[: len(token) + 1]
    assert max(len(longer.encode()), len(unicodedata.normalize("NFKD", longer).lower().encode())) > values.FACET_BYTES


def test_facet_that_fits_is_kept() -> None:
    assert values.facet("é" * 156) == "é" * 156
    assert values.facet("a" * 468) == "a" * 468


# --- vectors ---------------------------------------------------------------------------------------------------


TINY = np.float32(1e-30)


@pytest.mark.parametrize(
    "bad",
    [
        [0.0, 0.0, 0.0],
        [TINY, TINY, 0.0],
        [3.4e38, 0.0, 0.0],
        [1e39, 0.0, 0.0],
        [np.nan, 0.0, 0.0],
        [np.inf, np.nan, 1.0],
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vector_of_zero_length_is_refused_and_its_siblings_are_not(bad: list[float], dtype: type) -> None:
    good = [1e-15, 1e18, -3.0]
    with np.errstate(over="ignore"):
        vectors: Vectors = np.array([good, bad, good], dtype=dtype)
    documents = family("a", ["one", "two", "three"]).documents
    sound, refused = with_usable_vectors(Family(documents, vectors))
    assert [document for document, _ in sound] == [documents[0], documents[2]]
    assert [(one.id, "no direction" in one.reason) for one in refused] == [(documents[1].id, True)]
