"""Questions and their filters, as people and programs write them; what cannot be asked is refused with a sentence."""

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
    ("written", "meant"),
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
def test_one_condition(written: str, meant: Filter) -> None:
    assert parse_filters([written]) == (meant,)


def test_values_of_one_field_are_alternatives_and_fields_all_hold() -> None:
    assert parse_filters(["language=de", "year>=2000", "language=en", "year<=2010"]) == (
        Filter("language", any_of=("de", "en")),
        Filter("year", at_least=2000, at_most=2010),
    )


def test_of_many_bounds_the_narrowest_count() -> None:
    written = [
        f"{field}{sign}{number}" for number in range(500) for field, sign in (("year", ">="), ("chunk_index", "<"))
    ]
    assert parse_filters(written) == (
        Filter("year", at_least=499),
        Filter("chunk_index", at_most=-1),
    )


def test_a_value_that_is_stored_in_part_is_looked_for_as_it_is_stored() -> None:
    assert parse_filters([f"tags={'t' * 469}"]) == (Filter("tags", any_of=("t" * 468,)),)
    assert parse_filters([f"tags={'t' * 468}"]) == (Filter("tags", any_of=("t" * 468,)),)
    assert as_filters({"tags": "한" * 300}) == (Filter("tags", any_of=(facet("한" * 300),)),)


def test_programs_give_mappings_or_filters() -> None:
    own = Filter("year", at_least=2000)
    assert as_filters(None) == ()
    assert as_filters({"year": 2020, "language": ["de", "en"]}) == (
        Filter("year", any_of=(2020,)),
        Filter("language", any_of=("de", "en")),
    )
    assert as_filters([own, "language=de"]) == (own, Filter("language", any_of=("de",)))


def test_values_of_mappings_are_read_as_they_are_written() -> None:
    given = {"year": "2019", "content_truncated": "true", "tags": ("a", "b"), "language": {"de"}}
    assert as_filters(given) == (  # type: ignore[arg-type]
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
    ("wrong", "said"),
    [
        (["md"], "is not a filter: write them as field=value"),
        (["source_type!=md"], "is not a filter"),
        (["source_type="], "has no value"),
        (["year>=2020.5"], "year is compared with whole numbers, not with '2020.5'"),
        (["source_type>=md"], "whole numbers"),
        (["content_truncated=maybe"], "content_truncated is true or false"),
        (["colour=red"], r"'colour' cannot be filtered. Fields to filter by: authors, .*year"),
        ("language=de", "filters must be a list"),
        (5, "filters must be a list, not 5"),
        ([("year", 2019)], r"\('year', 2019\) is not a filter: write them as field=value"),
        ({"year": {"$gte": 2020}}, r"year is compared with whole numbers, not with \{'\$gte': 2020\}"),
        ({"year": True}, "year is compared with whole numbers, not with True"),
        ({"year": "soon"}, "year is compared with whole numbers, not with 'soon'"),
        ({"language": ["en", None]}, "language is compared with text, not with None"),
        ({"content_truncated": 1}, "content_truncated is true or false, not 1"),
        ({"colour": "red"}, "'colour' cannot be filtered. Fields to filter by: authors"),
    ],
)
def test_a_wrong_filter_is_refused_and_never_dropped(wrong: Any, said: str) -> None:
    with pytest.raises((InvalidQuestion, InvalidFilter), match=said):
        as_filters(wrong)


@given(st.text(max_size=40))
def test_nothing_that_is_typed_is_a_crash(text: str) -> None:
    try:
        filters = parse_filters([text, f"source_type={text}", f"year>={text}"])
    except (InvalidQuestion, InvalidFilter) as error:
        str(error).encode("utf-8", "replace")
    else:
        assert filters


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"text": None}, "the query must be a string, not None"),
        ({"text": "x" * 10_001}, "the query has 10,001 characters; at most 10,000 are possible"),
        ({"limit": 0}, "limit is 0: it must be at least 1"),
        ({"limit": True}, "limit must be a whole number, not True"),
        ({"offset": -1}, "offset is -1: it must be at least 0"),
        ({"offset": "1"}, "offset must be a whole number"),
        ({"limit": 10, "offset": 9_991}, "hits 9992 to 10001 were requested; only the first 10000"),
        ({"context": "1"}, "context must be a whole number"),
        ({"context": 21}, "context is 21: it must be between 0 and 20"),
        ({"mode": ["hybrid"]}, "there is no mode"),
        ({"fusion": None}, "there is no fusion None"),
        ({"filters": ("year=2020",)}, "'year=2020' is not a Filter"),
        ({"filters": (Filter("year", at_least=1),) * 101}, "101 filters with 0 values; at most 100 filters"),
        ({"filters": (Filter("year", any_of=(1,) * 5_001),) * 2}, "2 filters with 10,002 values; .* 10,000 values"),
        ({"facets": "language"}, "facets must be a list of fields, not 'language'"),
        ({"collapse": "no"}, "collapse must be True or False, not 'no'"),
        ({"facets": (1,)}, "facets must be names of fields, not 1"),
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
    with pytest.raises(InvalidQuestion, match="the tenant"):
        Access(tenant, required=required)
