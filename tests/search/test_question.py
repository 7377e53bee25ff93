"""What cannot be asked is refused with a sentence, before anybody is asked."""

from __future__ import annotations

from typing import Any

import pytest

from chunksink.search.access import Access
from chunksink.search.errors import InvalidQuestion
from chunksink.search.question import Question
from chunksink.sinks.reader import Filter


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"text": None}, "the query is a text, not None"),
        ({"text": "x" * 10_001}, "the query has 10,001 characters, at most 10,000 can be asked"),
        ({"limit": 0}, "limit is 0: it begins at 1"),
        ({"limit": True}, "limit is a whole number, not True"),
        ({"offset": -1}, "offset is -1: it begins at 0"),
        ({"offset": "1"}, "offset is a whole number"),
        ({"limit": 10, "offset": 9_991}, "hits 9992 to 10001 were asked for: they end at 10000; narrow"),
        ({"context": "1"}, "context is a whole number"),
        ({"context": 21}, "21 chunks of context: 0 to 20"),
        ({"mode": ["hybrid"]}, "there is no mode"),
        ({"fusion": None}, "there is no fusion None"),
        ({"filters": ("year=2020",)}, "'year=2020' is no Filter"),
        ({"filters": (Filter("year", at_least=1),) * 101}, "101 filters with 0 values: at most 100 filters"),
        ({"filters": (Filter("year", any_of=(1,) * 5_001),) * 2}, "2 filters with 10,002 values: .* 10,000 values"),
        ({"facets": "language"}, "the facets 'language' are no list"),
        ({"collapse": "no"}, "collapse is True or False, not 'no'"),
        ({"facets": (1,)}, "1 is no field to count"),
    ],
)
def test_a_wrong_question(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidQuestion, match=said):
        Question(**{"text": "cat", **wrong})


def test_the_longest_query() -> None:
    assert Question("x" * 10_000, limit=1, offset=9_999).last == 10_000


@pytest.mark.parametrize("tenant", ["", "  ", 5])
@pytest.mark.parametrize("required", [True, False])
def test_a_tenant_is_a_name(tenant: Any, required: bool) -> None:
    """An empty one would see the documents of all, where no tenant is required."""
    with pytest.raises(InvalidQuestion, match=r"the tenant|an empty tenant"):
        Access(tenant, required=required)
