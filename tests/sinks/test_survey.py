"""Counts of what an index takes from chunks and what it ignores, with the first place of each."""

from typing import Any

import pytest

from chunksink.sinks.survey import FIELDS, MAX_CHOICES, Survey, Unread
from chunksink.sinks.values import MAX_MEMBERS
from tests.support.chunks import chunk, project


def survey(*chunks: dict[str, Any]) -> Survey:
    found = Survey()
    for line, fields in enumerate(chunks, start=1):
        found.take(chunk(**fields), "k", line)
    return found


def test_unreadable_values_are_counted_with_their_first_place() -> None:
    found = survey({"metadata": {"date": "1999-12-31"}}, *[{"metadata": {"date": "31.12.1999"}}] * 2)
    assert (found.chunks, found.filled["year"], found.unread["year"]) == (3, 1, 2)
    assert found.first_unread == {"year": Unread("metadata.date", "31.12.1999", "k", 2)}


@pytest.mark.parametrize(
    ("field", "metadata"),
    [
        ("year", {"year": 2023.7}),
        ("tags", {"tags": [1, 2]}),
        ("modified_at_epoch", {"modified_at": "yesterday"}),
        ("title", {"title": 7}),
    ],
)
def test_value_that_no_field_can_read_is_counted(field: str, metadata: dict[str, Any]) -> None:
    found = survey({"metadata": metadata})
    assert dict(found.unread) == {field: 1}
    assert found.filled[field] == 0
    assert not found.unmapped


def test_value_at_another_path_compensates() -> None:
    found = survey({"metadata": {"year": "soon", "date": "2024-05-01"}})
    assert (found.filled["year"], found.unread["year"]) == (1, 0)


def test_derived_value_does_not_compensate() -> None:
    found = survey({"metadata": {"file_type": 7}})
    assert (found.filled["file_type"], found.unread["file_type"]) == (1, 1)  # from the ending of the file name


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_empty_value_is_no_fault(nothing: object) -> None:
    found = survey({"metadata": {"title": nothing, "tags": nothing, "product": nothing}})
    assert not found.unread
    assert not found.unmapped


def test_members_read_by_no_field_are_counted_by_path() -> None:
    found = survey({"metadata": {"product": "x", "tenant_id": "t"}, "shelf": 3}, {"metadata": {"product": "y"}})
    assert dict(found.unmapped) == {"metadata.product": 2, "shelf": 1}


def test_token_counts_by_model_are_members_read_by_no_field() -> None:
    found = survey({"tokens": {"cl100k": 5}})
    assert not found.unread
    assert dict(found.unmapped) == {"tokens.cl100k": 1}


@pytest.mark.parametrize("fields", [{}, {"metadata": {"title": "T", "year": 2001, "tags": "a, b"}, "chunk_index": 0}])
def test_filled_fields_are_those_of_the_document(fields: dict[str, Any]) -> None:
    document = project(**fields).as_dict()
    found = survey(fields)
    worked_out = {"chunk_index", "chunk_count"}  # from the family
    assert {name for name in FIELDS if found.filled[name]} - worked_out == set(document) & set(FIELDS) - worked_out


def test_list_read_only_at_its_beginning_is_counted() -> None:
    tags = [f"tag {number}" for number in range(MAX_MEMBERS + 1)]
    found = survey({"tags": tags[:-1]}, {"tags": tags})
    assert (found.filled["tags"], found.unread["tags"], found.first_unread["tags"].line) == (2, 1, 2)


def test_type_is_proposed_if_nearly_all_values_have_it() -> None:
    dates = [{"metadata": {"due": "2026-01-31", "price": str(number)}} for number in range(30)]
    found = survey(*dates, {"metadata": {"due": "unknown", "price": "on request"}})
    (due, price) = found.proposals()
    assert (due[0], due[2:]) == ("[fields.due]", ['type = "datetime"', "sort = true"])
    assert '"unknown"' in due[1]
    assert 'type = "number"' in price
    [mixed] = survey(*dates[:9], *[{"metadata": {"due": "unknown"}}] * 2).proposals()[:1]
    assert "sort = true" not in mixed


def test_member_of_an_object_in_the_metadata_is_proposed() -> None:
    found = survey(*[{"metadata": {"owner": {"team": {"name": "red"}, "": {}}}}] * 4)
    assert dict(found.unmapped) == {"metadata.owner.team.name": 4}
    assert found.proposals() == [["[fields.owner_team_name]", 'path = "metadata.owner.team.name"', "facet = true"]]


@pytest.mark.parametrize("per_chunk", [1, MAX_CHOICES + 1])
def test_object_whose_keys_are_ids_is_one_path(per_chunk: int) -> None:
    users = [[f"user{number}-{each}" for each in range(per_chunk)] for number in range(2 * MAX_CHOICES)]
    votes = [{"votes": {name: {"up": 1} for name in names}, "team": "red"} for names in users]
    found = survey({"metadata": {"votes": "none"}}, *({"metadata": metadata} for metadata in votes))
    assert dict(found.unmapped) == {"metadata.votes": 2 * MAX_CHOICES + 1, "metadata.team": 2 * MAX_CHOICES}
    assert found.proposals() == [["[fields.team]", "facet = true"]]


def test_members_of_wide_objects_with_the_same_keys_are_proposed() -> None:
    found = survey(*[{"metadata": {"votes": {f"field{number}": "x" for number in range(60)}}}] * 4)
    assert len(found.proposals()) == 60
