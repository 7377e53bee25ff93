"""Filters, facets and sort orders as people and programs write them. Wrong ones are refused."""

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.search.errors import InvalidQuestion
from chunksink.search.filters import as_filters, parse_facets, parse_filters, parse_sort
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.reader import Filter, Sort, require_facets
from chunksink.sinks.values import facet

FIELDS = FieldSet.of(
    {
        "project": FieldOptions(facet=True, sort=True),
        "priority": FieldOptions(type="number", facet=True, sort=True),
        "due": FieldOptions(type="datetime", sort=True),
        "labels": FieldOptions(type="strings", facet=True),
        "open": FieldOptions(type="boolean"),
        "notes": FieldOptions(filter=False, search=True),
    }
)
DAY = 86_400
MAY_31 = 1780185600
"""2026-05-31 at midnight."""


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
        ("extension=.rst", Filter("extension", any_of=("rst",))),
    ],
)
def test_condition_becomes_a_filter(written: str, expected: Filter) -> None:
    assert parse_filters([written]) == (expected,)


def test_accented_values_are_compared_in_both_unicode_forms() -> None:
    composed, decomposed = "n/\u00dcber", "n/U\u0308ber"
    for typed, other in ((composed, decomposed), (decomposed, composed)):
        assert parse_filters([f"path={typed}"]) == (Filter("path", any_of=(typed, other)),)
        assert parse_filters([f"path={typed}*"]) == (Filter("path", like=(f"{typed}*", f"{other}*")),)


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
    for length in (52, 53, 80, 157, 300):  # a syllable has three bytes, and up to nine in an engine
        assert as_filters({"tags": "한" * length}) == (Filter("tags", any_of=(facet("한" * length),)),)


@pytest.mark.parametrize("field", ["title", "path", "filename"])
def test_long_value_of_a_field_that_is_stored_whole_is_not_shortened(field: str) -> None:
    assert parse_filters([f"{field}={'t' * 500}"]) == (Filter(field, any_of=("t" * 500,)),)


def test_as_filters_accepts_mappings_and_filters() -> None:
    recent = Filter("year", at_least=2000)
    assert as_filters(None) == ()
    assert as_filters({"year": 2020, "language": ["de", "en"]}) == (
        Filter("year", any_of=(2020,)),
        Filter("language", any_of=("de", "en")),
    )
    assert as_filters({"title": "=A1"}) == (Filter("title", any_of=("=A1",)),)
    assert as_filters([recent, "language=de"]) == (recent, Filter("language", any_of=("de",)))


def test_strings_in_mappings_are_parsed() -> None:
    mapping = {"year": "2019", "content_truncated": "true", "tags": ("a", "b"), "language": {"de"}}
    assert as_filters(mapping) == (
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


def test_numbers_of_numpy_and_any_iterable_are_accepted() -> None:
    years = (Filter("year", any_of=(2019, 2020)),)
    for values in (range(2019, 2021), (year for year in (2019, 2020)), np.array([2019, 2020])):
        assert as_filters({"year": values}, FIELDS) == years
    assert as_filters({"priority": np.float64(4)}, FIELDS) == (Filter("fields.priority", any_of=(4.0,)),)


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        ({5: "x"}, InvalidFilter, "5 is not the name of a field"),
        (["md"], InvalidQuestion, "md"),
        (["source_type!=md"], InvalidQuestion, "source_type!=md"),
        (["source_type==md"], InvalidQuestion, "source_type==md"),
        (["source_type="], InvalidQuestion, "source_type="),
        (["year>=2020.5"], InvalidQuestion, "2020.5"),
        (["source_type>=md"], InvalidFilter, "source_type"),
        (["content_truncated=maybe"], InvalidQuestion, "content_truncated"),
        (["colour=red"], InvalidFilter, "[fields.colour]"),
        ("language=de", InvalidQuestion, "language=de"),
        (5, InvalidQuestion, "5"),
        ([("year", 2019)], InvalidQuestion, "('year', 2019)"),
        ({"year": {"$gte": 2020}}, InvalidFilter, "{'$gte': 2020}"),
        ({"year": True}, InvalidFilter, "True"),
        ({"year": "soon"}, InvalidQuestion, "soon"),
        ({"language": ["en", None]}, InvalidFilter, "None"),
        ({"content_truncated": 2}, InvalidFilter, "content_truncated"),
        ({"colour": "red"}, InvalidFilter, "[fields.colour]"),
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


# --- custom fields


def due(first: int, last: int) -> Filter:
    return Filter("fields.due", at_least=first, at_most=last)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("project=apollo", Filter("fields.project", any_of=("apollo",))),
        ("project=*", Filter("fields.project", any_of=("*",))),
        ("labels=a,b", Filter("fields.labels", any_of=("a,b",), is_list=True)),
        ("open=False", Filter("fields.open", any_of=(False,))),
        ("priority=3.0", Filter("fields.priority", any_of=(3,))),
        ("priority=1e-3", Filter("fields.priority", any_of=(0.001,))),
        ("priority>=2", Filter("fields.priority", at_least=2)),
        ("priority<=-2.5", Filter("fields.priority", at_most=-2.5)),
        ("priority>2", Filter("fields.priority", at_least=math.nextafter(2, math.inf))),
        ("priority<2", Filter("fields.priority", at_most=math.nextafter(2, -math.inf))),
        ("priority>0", Filter("fields.priority", at_least=math.ulp(0))),
        ("due=1780185600", Filter("fields.due", any_of=(MAY_31,))),
        ("due=-202", Filter("fields.due", any_of=(-202,))),
        ("due=2026-05-31T02:00:00+02:00", Filter("fields.due", any_of=(MAY_31,))),
        ("due=2026-05-31T00:00", Filter("fields.due", any_of=(MAY_31,))),
        ("due=2026-05-31", due(MAY_31, MAY_31 + DAY - 1)),
        ("due=20260531", due(MAY_31, MAY_31 + DAY - 1)),
        ("due=2026-05", due(MAY_31 - 30 * DAY, MAY_31 + DAY - 1)),
        ("due=2026-12", due(1796083200, 1798761599)),
        ("due=2024-02", due(1706745600, 1706745600 + 29 * DAY - 1)),
        ("due=2026", due(1767225600, 1798761599)),
        ("due=9999", due(253370764800, 253402300799)),
        ("due=0001-01", due(-62135596800, -62132918401)),
        ("due>=2026-05-31", Filter("fields.due", at_least=MAY_31)),
        ("due>2026-05-31", Filter("fields.due", at_least=MAY_31 + DAY)),
        ("due<2026-05-31", Filter("fields.due", at_most=MAY_31 - 1)),
        ("due<=2026-05-31", Filter("fields.due", at_most=MAY_31 + DAY - 1)),
        ("due>2026-05-31T00:00:00Z", Filter("fields.due", at_least=MAY_31 + 1)),
        ("modified_at_epoch>=2026-05-31", Filter("modified_at_epoch", at_least=MAY_31)),
        ("path=docs/*", Filter("path", like=("docs/*",))),
        ("filename=a?.md", Filter("filename", like=("a?.md",))),
        ("source_folder=docs", Filter("source_folder", any_of=("docs",))),
        ("title=What?", Filter("title", any_of=("What?",))),
    ],
)
def test_condition_on_a_typed_field_becomes_a_filter(written: str, expected: Filter) -> None:
    assert parse_filters([written], FIELDS) == (expected,)


def test_period_and_bounds_hold_together() -> None:
    assert parse_filters(["due=2026", "due>=2026-05-31", "due<2027"], FIELDS) == (due(MAY_31, 1798761599),)
    assert parse_filters(["priority=2", "priority>1"], FIELDS) == (
        Filter("fields.priority", any_of=(2,)),
        Filter("fields.priority", at_least=math.nextafter(1, math.inf)),
    )


def test_patterns_and_values_of_one_field_are_alternatives() -> None:
    assert parse_filters(["path=docs/*", "path=README.md", "path=*.txt"]) == (
        Filter("path", like=("docs/*", "*.txt", "README.md")),
    )


@pytest.mark.parametrize(
    ("pattern", "path", "passes"),
    [
        ("docs/*", "docs/a/b.md", True),
        ("docs/*", "Docs/a.md", False),
        ("*.md", "docs/a.md", True),
        ("docs/[ab].md", "docs/a.md", False),
        ("docs/[ab].md*", "docs/[ab].md", True),
        ("a?.md", "a\n.md", True),
        ("a?.md", "a.md", False),
        ("*", "", True),
    ],
)
def test_pattern_knows_two_wildcards(pattern: str, path: str, passes: bool) -> None:
    assert Filter("path", like=(pattern,)).accepts(path) is passes


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"due": date(2026, 5, 31)}, due(MAY_31, MAY_31 + DAY - 1)),
        ({"due": datetime(2026, 5, 31)}, Filter("fields.due", any_of=(MAY_31,))),
        (
            {"due": datetime(2026, 5, 31, 2, tzinfo=timezone(timedelta(hours=2)))},
            Filter("fields.due", any_of=(MAY_31,)),
        ),
        ({"due": [datetime(2026, 5, 31, tzinfo=UTC), 5]}, Filter("fields.due", any_of=(MAY_31, 5))),
        ({"due": "2026"}, due(1767225600, 1798761599)),
        ({"due": 20260531}, due(MAY_31, MAY_31 + DAY - 1)),
        ({"due": MAY_31}, Filter("fields.due", any_of=(MAY_31,))),
        ({"modified_at_epoch": date(2026, 5, 31)}, Filter("modified_at_epoch", at_least=MAY_31, at_most=1780271999)),
        ({"priority": 1 / 3}, Filter("fields.priority", any_of=(0.333333333333333,))),
        ({"priority": ["1.5", 2]}, Filter("fields.priority", any_of=(1.5, 2))),
        ({"priority": [Decimal("1.50"), Decimal(2)]}, Filter("fields.priority", any_of=(1.5, 2))),
        ({"project": Decimal("1.50")}, Filter("fields.project", any_of=("1.50",))),
        ({"open": True}, Filter("fields.open", any_of=(True,))),
        ({"open": [1, 0]}, Filter("fields.open", any_of=(True, False))),
        ({"labels": {"a"}}, Filter("fields.labels", any_of=("a",), is_list=True)),
        ({"project": []}, Filter("fields.project", any_of=())),
    ],
)
def test_mapping_has_typed_values(mapping: Any, expected: Filter) -> None:
    assert as_filters(mapping, FIELDS) == (expected,)


@pytest.mark.parametrize(
    ("wrong", "error", "named"),
    [
        (["projekt=apollo"], InvalidFilter, "did you mean project?"),
        (["Due=2026"], InvalidFilter, "did you mean due?"),
        (["notes=x"], InvalidFilter, "[fields.notes] has filter = false"),
        (["fields.project=x"], InvalidFilter, "did you mean project?"),
        (["project>=apollo"], InvalidFilter, "project"),
        (["open>true"], InvalidFilter, "open"),
        (["open=maybe"], InvalidQuestion, "'maybe'"),
        (["priority=high"], InvalidQuestion, "'high'"),
        (["priority=nan"], InvalidQuestion, "'nan'"),
        (["priority<1e400"], InvalidQuestion, "'1e400'"),
        (["priority=9007199254740993"], InvalidQuestion, "'9007199254740993'"),
        (["year=2020.5"], InvalidQuestion, "'2020.5'"),
        (["due=soon"], InvalidQuestion, "'soon'"),
        (["due=2026-02-30"], InvalidQuestion, "'2026-02-30'"),
        (["due=2026-13"], InvalidQuestion, "'2026-13'"),
        (["due=0000"], InvalidQuestion, "'0000'"),
        (["due=31.05.2026"], InvalidQuestion, "'31.05.2026'"),
        (["due=2026", "due=2027"], InvalidQuestion, "due cannot be in two periods"),
        (["due=2026", "due=1780185600"], InvalidQuestion, "due cannot be in two periods"),
        (["due=1780185600", "due=2026"], InvalidQuestion, "due cannot be in two periods"),
        ({"due": [date(2026, 5, 31), date(2026, 6, 1)]}, InvalidQuestion, "due cannot be in two periods"),
        ({"due": [date(2026, 5, 31), 5]}, InvalidQuestion, "two periods"),
        ({"due": True}, InvalidFilter, "True"),
        ({"priority": math.nan}, InvalidFilter, "priority"),
        ({"priority": True}, InvalidFilter, "True"),
        ({"open": 2}, InvalidFilter, "open"),
        ({"notes": "x"}, InvalidFilter, "[fields.notes] has filter = false"),
    ],
)
def test_wrong_filter_on_a_typed_field_is_refused(wrong: Any, error: type[Exception], named: str) -> None:
    with pytest.raises(error, match=re.escape(named)):
        as_filters(wrong, FIELDS)


def test_number_for_a_string_field_is_its_text() -> None:
    """Chunks may have a number there, too."""
    written = parse_filters(["project=42", "labels=7", "labels=b"], FIELDS)
    assert as_filters({"project": 42, "labels": [7, "b"]}, FIELDS) == written


@given(st.text(max_size=30))
def test_any_text_for_a_typed_field_is_parsed_or_refused(text: str) -> None:
    for name in ("project", "priority", "due", "labels", "open", "path"):
        for sign in ("=", ">", "<="):
            try:
                filters = parse_filters([f"{name}{sign}{text}"], FIELDS)
            except (InvalidQuestion, InvalidFilter):
                continue
            assert len(filters) == 1


def test_facets_and_sort_orders_are_named_like_filters() -> None:
    assert parse_facets(None) == ()
    assert parse_facets("language") == ("language",)
    assert parse_facets(["language", "project", "labels"], FIELDS) == ("language", "fields.project", "fields.labels")
    assert parse_sort("priority", FIELDS) == Sort("fields.priority")
    assert parse_sort("-year", FIELDS) == Sort("year", descending=True)
    assert parse_sort(None, FIELDS) is None


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("projekt", "did you mean project?"),
        ("due", "set facet = true in [fields.due]"),
        ("text", "text"),
        ("fields.project", "fields.project"),
        ("fields.x') label, documents --", "fields.x"),
        ("", "''"),
    ],
)
def test_wrong_facet_is_refused(name: str, named: str) -> None:
    with pytest.raises(InvalidFilter, match=re.escape(named)):
        parse_facets([name], FIELDS)


@pytest.mark.parametrize("name", ["open", "labels", "fields.priority", "--priority", "", "-", "text", "year desc"])
def test_wrong_sort_order_is_refused(name: str) -> None:
    with pytest.raises(InvalidFilter):
        parse_sort(name, FIELDS)


def test_path_of_a_field_suggests_its_name() -> None:
    with pytest.raises(InvalidFilter, match=re.escape("(did you mean project?)")):
        parse_filters(["metadata.project=apollo"], FIELDS)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("source", "path or filename"),
        ("source_uri", "path or filename"),
        ("metadata.source", "path or filename"),
        ("file_path", "path"),
        ("file_name", "filename"),
    ],
)
def test_name_of_a_source_suggests_the_fields_that_can_be_filtered(name: str, field: str) -> None:
    with pytest.raises(InvalidFilter, match=re.escape(f"(did you mean {field}?)")):
        as_filters({name: "a.md"})


def test_option_of_a_field_that_can_be_filtered_needs_no_sync() -> None:
    for name, sync in (("open", ""), ("notes", ", and sync")):
        with pytest.raises(InvalidFilter, match=re.escape(f"sort = true in [fields.{name}]{sync}") + "$"):
            parse_sort(name, FIELDS)


def test_sorting_by_a_list_names_no_setting_that_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="no order"):
        parse_sort("labels", FIELDS)


@pytest.mark.parametrize("name", ["fields.", "fields.a.b", "fields.x') --", "fields.1", "fields.x\n", "fields.ü"])
def test_name_that_no_custom_field_has_reaches_no_engine(name: str) -> None:
    """Engines write names into their queries."""
    with pytest.raises(InvalidFilter):
        Filter(name, any_of=("x",))
    with pytest.raises(InvalidFilter):
        Sort(name)
    with pytest.raises(InvalidFilter):
        require_facets([name])
