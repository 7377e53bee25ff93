"""Filters that no engine can answer are refused before any engine is asked."""

import math
from typing import Any

import pytest

from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.reader import Filter

WRONG: list[dict[str, Any]] = [
    {"field": "text", "any_of": ("x",)},
    {"field": "tags", "at_least": 1},
    {"field": "year"},
    {"field": "year", "any_of": (1,), "at_least": 1},
    {"field": "year", "any_of": (2001.0,)},
    {"field": "tags", "like": ("fruit*",)},
    {"field": "fields.priority", "like": ("1*",)},
    {"field": "fields.labels", "like": ("x*",), "is_list": True},
    {"field": "tags", "any_of": "fruit"},
    {"field": "tags", "any_of": (None,)},
    {"field": "tags", "any_of": (1,)},
    {"field": "year", "any_of": ("2001",)},
    {"field": "year", "any_of": (True,)},
    {"field": "content_truncated", "any_of": (1,)},
    {"field": "year", "at_least": math.nan},
    {"field": "year", "at_most": math.inf},
    {"field": "year", "at_least": True},
    {"field": "year", "at_least": "2001"},
    {"field": "year", "any_of": (2001, 2**53)},
    {"field": "year", "at_least": 10**400},
    {"field": "year", "at_most": -1e300},
    {"field": "tags", "any_of": ("fruit", "\ud800")},
]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_unanswerable_filter_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidFilter):
        Filter(**wrong)
