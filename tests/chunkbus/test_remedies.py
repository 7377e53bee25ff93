"""What a finding advises fits every line that gets its code."""

from __future__ import annotations

from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.examine import examine_line
from chunksink.chunkbus.findings import MEANINGS
from tests.chunkbus.samples import chunk, line_of


def test_the_remedy_for_json_names_more_than_a_lost_end() -> None:
    remedy = MEANINGS[findings.JSON_PARSE][1]
    assert remedy.startswith("mend what the reason names (one record stands on one line, each key once, no NaN)")
    assert "where the syntax ends too early" in remedy


def test_the_remedy_for_an_encoding_fits_an_escaped_nul() -> None:
    assert "no text holds U+0000" in MEANINGS[findings.ENCODING][1]


@pytest.mark.parametrize(
    "fields", [{"chunk_index": 0.0}, {"chunk_count": 1.5}, {"span": {"pages": {"page_start": 3.0}}}], ids=str
)
def test_a_whole_number_with_a_fraction_is_explained(fields: dict[str, Any]) -> None:
    refused, (problem,) = examine_line(line_of(chunk(0, **fields)))
    assert refused is None
    assert problem.code == findings.WRONG_TYPE
    assert problem.detail.endswith("a whole number is written without a fraction")


def test_another_type_is_not_explained_so() -> None:
    _, (problem,) = examine_line(line_of(chunk(0, chunk_index="0")))
    assert "fraction" not in problem.detail
