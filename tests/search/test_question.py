"""Invalid questions are refused."""

import re
from typing import Any

import numpy as np
import pytest

from chunksink.search.access import Access
from chunksink.search.errors import InvalidQuestion
from chunksink.search.question import Question
from chunksink.sinks.reader import Filter


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"text": None}, "None"),
        ({"text": "x" * 10_001}, "10,001"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"offset": -1}, "offset"),
        ({"offset": "1"}, "offset"),
        ({"limit": 10, "offset": 9_991}, "10001"),
        ({"context": "1"}, "context"),
        ({"context": 21}, "context"),
        ({"mode": ["hybrid"]}, "['hybrid']"),
        ({"fusion": None}, "None"),
        ({"filters": (Filter("year", at_least=1),) * 101}, "101"),
        ({"filters": (Filter("year", any_of=(1,) * 5_001),) * 2}, "10,002"),
        ({"collapse": "no"}, "collapse"),
    ],
)
def test_invalid_question_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidQuestion, match=re.escape(named)):
        Question(**{"text": "cat", **wrong})


def test_whole_numbers_of_numpy_are_accepted() -> None:
    question = Question("cat", limit=np.int64(5), offset=np.int32(2))  # type: ignore[arg-type]
    assert (type(question.limit), question.last) == (int, 7)


def test_longest_query_is_accepted() -> None:
    assert Question("x" * 10_000, limit=1, offset=9_999).last == 10_000


@pytest.mark.parametrize("tenant", ["", "  ", 5])
@pytest.mark.parametrize("required", [True, False])
def test_invalid_tenant_is_refused(tenant: Any, required: bool) -> None:
    """With an empty tenant a question could see all documents."""
    with pytest.raises(InvalidQuestion, match="tenant"):
        Access(tenant, required=required)
