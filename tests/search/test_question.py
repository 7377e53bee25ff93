"""Questions and filters, from the command line and from Python. Invalid ones are refused."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.access import Access
from chunksink.search.errors import InvalidQuestion
from chunksink.search.filters import as_filters, parse_filters
from chunksink.search.question import Question
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.reader import Filter
from chunksink.sinks.values import facet


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("source_type = a = b ", Filter("source_type", any_of=("a = b",))),
        ("year=2020", Filter("year", any_of=(2020,))),
        ("year>=2020", Filter("year", at_least=2020)),
        ("year>2020", Filter("year", at_least=2021)),
        ("year<=2020", Filter("year", at_most=2020)),
        ("year<2020", Filter("year", at_most=2019)),
        ("size_bytes>=-1", Filter("size_bytes", at_least=-1)),
        ("content_truncated=TRUE", Filter("content_truncated", any_of=(True,))),
    ],
)
def test_condition_becomes_a_filter(written: str, expected: Filter) -> None:
    assert parse_filters([written]) == (expected,)


def test_values_of_one_field_are_alternatives_and_all_fields_must_match() -> None:
    assert parse_filters(["language=de", "year>=2000", "language=en", "year<=2010"]) == (
        Filter("language", any_of=("de", "en")),
        Filter("year", at_least=2000, at_most=2010),
    )


def test_narrowest_of_many_bounds_applies() -> None:
    written = [
        f"{field}{sign}{number}" for number in range(500) for field, sign in (("year", ">="), ("chunk_index", "<"))
    ]
    assert parse_filters(written) == (
        Filter("year", at_least=499),
        Filter("chunk_index", at_most=-1),
    )


def test_long_value_is_shortened_like_the_stored_one() -> None:
    assert parse_filters([f"tags={'t' * 469}"]) == (Filter("tags", any_of=("t" * 468,)),)
    assert parse_filters([f"tags={'t' * 468}"]) == (Filter("tags", any_of=("t" * 468,)),)
    assert as_filters({"tags": "한" * 300}) == (Filter("tags", any_of=(facet("한" * 300),)),)


def test_as_filters_accepts_mappings_and_filters() -> None:
    recent = Filter("year", at_least=2000)
    assert as_filters(None) == ()
    assert as_filters({"year": 2020, "language": ["de", "en"]}) == (
        Filter("year", any_of=(2020,)),
        Filter("language", any_of=("de", "en")),
    )
    assert as_filters([recent, "language=de"]) == (recent, Filter("language", any_of=("de",)))


def test_strings_in_mappings_are_parsed() -> None:
    mapping = {"year": "2019", "content_truncated": "true", "tags": ("a", "b"), "language": {"de"}}
    assert as_filters(mapping) == (  # type: ignore[arg-type]
        Filter("year", any_of=(2019,)),
        Filter("content_truncated", any_of=(True,)),
        Filter("tags", any_of=("a", "b")),
        Filter("language", any_of=("de",)),
    )
    assert as_filters({"year": [2019, "2020"], "content_truncated": False, "tags": []}) == (
        Filter("year", any_of=(2019, 2020)),
        Filter("content_truncated", any_of=(False,)),
        Filter("tags", any_of=()),
    )


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        (["md"], InvalidQuestion, "md"),
        (["source_type!=md"], InvalidQuestion, "source_type!=md"),
        (["source_type="], InvalidQuestion, "source_type="),
        (["year>=2020.5"], InvalidQuestion, "2020.5"),
        (["source_type>=md"], InvalidFilter, "source_type"),
        (["content_truncated=maybe"], InvalidQuestion, "content_truncated"),
        (["colour=red"], InvalidFilter, "colour"),
        ("language=de", InvalidQuestion, "language=de"),
        (5, InvalidQuestion, "5"),
        ([("year", 2019)], InvalidQuestion, "('year', 2019)"),
        ({"year": {"$gte": 2020}}, InvalidFilter, "{'$gte': 2020}"),
        ({"year": True}, InvalidFilter, "True"),
        ({"year": "soon"}, InvalidQuestion, "soon"),
        ({"language": ["en", None]}, InvalidFilter, "None"),
        ({"content_truncated": 1}, InvalidFilter, "content_truncated"),
        ({"colour": "red"}, InvalidFilter, "colour"),
    ],
)
def test_wrong_filter_is_refused(wrong: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        as_filters(wrong)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        filters = parse_filters([text, f"source_type={text}", f"year>={text}"])
    except (InvalidQuestion, InvalidFilter) as error:
        str(error).encode("utf-8", "replace")
    else:
        assert filters


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
        ({"filters": ("year=2020",)}, "year=2020"),
        ({"filters": (Filter("year", at_least=1),) * 101}, "101"),
        ({"filters": (Filter("year", any_of=(1,) * 5_001),) * 2}, "10,002"),
        ({"facets": "language"}, "language"),
        ({"collapse": "no"}, "collapse"),
        ({"facets": (1,)}, "facets"),
    ],
)
def test_invalid_question_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidQuestion, match=re.escape(named)):
        Question(**{"text": "cat", **wrong})


def test_longest_query_is_accepted() -> None:
    assert Question("x" * 10_000, limit=1, offset=9_999).last == 10_000


@pytest.mark.parametrize("tenant", ["", "  ", 5])
@pytest.mark.parametrize("required", [True, False])
def test_invalid_tenant_is_refused(tenant: Any, required: bool) -> None:
    """With an empty tenant a question could see all documents."""
    with pytest.raises(InvalidQuestion, match="tenant"):
        Access(tenant, required=required)
