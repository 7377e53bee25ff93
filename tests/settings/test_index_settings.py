"""Index settings against a real server: whatever the file says, a second apply finds nothing to do."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from chunksink.settings.engine_settings import DEFAULTS
from chunksink.settings.index_settings import complete, differences, load_index_settings
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.meilisearch.indexes import without_marker
from tests.conftest import ROOT, sampled
from tests.engines.servers import MeilisearchServer

FILE = load_index_settings(ROOT / "meilisearch-settings.json")


def pattern(**features: Any) -> dict[str, Any]:
    return {"attributePatterns": ["tags", "year", "tags"], **features}


ODD: list[dict[str, Any]] = [
    {"filterableAttributes": ["tags", pattern()]},
    {"filterableAttributes": ["year", "tags", "year"]},
    {"filterableAttributes": [pattern(features={}), pattern(features={"facetSearch": True})]},
    {"filterableAttributes": [pattern(features={"filter": {}})]},
    {"filterableAttributes": [pattern(features={"filter": {"comparison": True}})]},
    {"searchableAttributes": ["text", "title", "text"]},
    {"searchableAttributes": ["text", "*", "title"]},
    {"searchableAttributes": []},
    {"displayedAttributes": ["text", "id", "text"]},
    {"displayedAttributes": ["id", "*"]},
    {"sortableAttributes": ["year", "Year", "chunk_index", "year"]},
    {"rankingRules": ["year:desc", "words", "words"]},
    {"rankingRules": []},
    {"stopWords": ["The", "the", "a", "Éa", "the", "", "ﬁ", "한국어"]},
    {"dictionary": ["J. R. R.", "j. r. r.", "J. R. R."]},
    {"separatorTokens": ["|", "&", "|"], "nonSeparatorTokens": ["#", "@", "#"]},
    {"synonyms": {"Boat": ["ship", "Ship", "ship"], "a  b": ["c  d"], "é": [], "": ["x"]}},
    {"synonyms": {"boat": ["ship"], "a b": ["c d"]}},
    {"synonyms": {"BOAT": ["ship"], "é": []}},
    {"synonyms": {"é": []}},
    {"distinctAttribute": ""},
    {"proximityPrecision": "byAttribute"},
    {"typoTolerance": {}},
    {"typoTolerance": {"enabled": False}},
    {"typoTolerance": {"minWordSizeForTypos": {"oneTypo": 3}}},
    {"typoTolerance": {"enabled": None, "minWordSizeForTypos": {"twoTypos": None}, "disableOnWords": None}},
    {"typoTolerance": {"disableOnWords": ["Zz", "zz", "ÆON", "ıx", "カタカナ", "为", "can’t", "ẞ"]}},
    {"typoTolerance": {"disableOnAttributes": ["title", "Title", "title"]}},
    {"faceting": {}},
    {"faceting": {"maxValuesPerFacet": 5, "sortFacetValuesBy": None}},
    {"faceting": {"sortFacetValuesBy": {"tags": "count"}}},
    {"faceting": {"sortFacetValuesBy": {"year": "alpha", "*": "count"}}},
    {"pagination": {"maxTotalHits": None}},
    {"pagination": {"maxTotalHits": 5}},
    {"searchCutoffMs": 0},
    {"searchCutoffMs": 150},
    {"localizedAttributes": [{"locales": ["ja", "eng", "ja"], "attributePatterns": ["*_ja", "b"]}]},
    {"localizedAttributes": []},
    {"facetSearch": False, "prefixSearch": "disabled"},
]


class Live:
    """An index of its own, and the settings file for it."""

    def __init__(self, server: MeilisearchServer) -> None:
        self.server, self.signed, self.index = server, marker(), f"i{uuid.uuid4().hex[:10]}"
        self.sink = self.configured(FILE)

    def configured(self, settings: dict[str, Any]) -> MeilisearchSink:
        return MeilisearchSink(self.server.url, self.server.key, settings=settings, index=self.index)

    def apply(self, wanted: dict[str, Any]) -> list[str]:
        sink = self.configured(wanted)
        due = sink.settings_due(self.signed.build_id)
        assert sink.update_settings(self.signed.build_id) == due
        self.sink = sink
        return due


@pytest.fixture(scope="module")
def live(meilisearch_server: MeilisearchServer) -> Iterator[Live]:
    live = Live(meilisearch_server)
    live.sink.create(live.signed, 8)
    live.sink.flip(None, live.signed.build_id)
    yield live
    live.sink.drop(live.signed.build_id)


@pytest.mark.parametrize("wanted", sampled(ODD), ids=lambda wanted: json.dumps(wanted)[:60])
def test_a_second_apply_finds_nothing_to_do(wanted: dict[str, Any], live: Live) -> None:
    builds = live.sink.builds()
    for file in (wanted, FILE | wanted, FILE):
        live.apply(file)
        assert live.apply(file) == []
    assert live.sink.builds() == builds, "the marker stayed"
    assert live.sink.live_settings()["embedders"]["default"]["dimensions"] == 8


def test_each_after_another_is_applied_and_then_found(live: Live) -> None:
    for wanted in sampled(ODD[1:]):  # the sample above leaves these out
        live.apply(wanted)
        assert live.apply(wanted) == [], wanted


def test_what_is_taken_out_of_the_file_is_the_engines_default_again(live: Live) -> None:
    live.apply(FILE | {"stopWords": ["the"], "dictionary": ["x.y"], "localizedAttributes": [], "searchCutoffMs": 9})
    assert set(live.apply({})) >= {"stopWords", "dictionary", "localizedAttributes", "searchCutoffMs", "typoTolerance"}
    held = live.sink.live_settings()
    assert {name: held[name] for name in DEFAULTS} == DEFAULTS
    assert live.apply({}) == []


def test_the_defaults_are_those_of_the_server(live: Live) -> None:
    control = live.sink._connection.control
    name = f"i{uuid.uuid4().hex[:10]}"
    control.wait_for_task(control.create_index(name).task_uid)
    held = without_marker(live.sink._connection.get(f"/indexes/{name}/settings"))
    control.wait_for_task(control.delete_index(name).task_uid)
    assert held == DEFAULTS | {"embedders": {}}


def test_a_change_that_means_something_is_a_difference(live: Live) -> None:
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"stopWords": ["The"]}, {"stopWords": ["the"]}),
        ({"searchableAttributes": ["text", "title"]}, {"searchableAttributes": ["title", "text"]}),
        ({"filterableAttributes": ["tags"]}, {"filterableAttributes": [pattern()]}),
        ({"typoTolerance": {"disableOnWords": ["zebra"]}}, {"typoTolerance": {"disableOnWords": ["zebras"]}}),
        ({"typoTolerance": {"disableOnWords": ["zebra"]}}, {"typoTolerance": {}}),
        ({"synonyms": {"boat": ["ship"]}}, {"synonyms": {"Boat": ["ship"]}}),
        ({"synonyms": {"boat": []}}, {}),
        ({"faceting": {"sortFacetValuesBy": {"tags": "count"}}}, {"faceting": {}}),
    ]
    for before, after in changes:
        live.apply(before)
        assert live.apply(after) == list(before), (before, after)
        assert live.apply(after) == [], (before, after)


def test_a_file_that_names_something_new_is_compared_as_it_is() -> None:
    held = complete({}) | {"novelty": {"a": 1, "b": 2}}
    assert differences({}, held) == []
    assert differences({"novelty": {"a": 1}}, held) == []
    assert [each.name for each in differences({"novelty": {"a": 2}, "other": 1}, held)] == ["novelty", "other"]
