"""Index settings against a real server: a second apply changes nothing, and required settings are always set."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.settings.errors import UnusableSettings
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.meilisearch.index_settings import (
    DEFAULTS,
    complete,
    differences,
    load_index_settings,
    resets,
    unknown,
    with_required,
)
from chunksink.sinks.meilisearch.indexes import without_marker
from tests.conftest import ROOT, sampled
from tests.engines.servers import MeilisearchServer
from tests.support.meilisearch import Server, served

FILE = load_index_settings(ROOT / "meilisearch-settings.json")


def pattern(**features: Any) -> dict[str, Any]:
    return {"attributePatterns": ["tags", "year", "tags"], **features}


ODD: list[dict[str, Any]] = [
    {"filterableAttributes": ["tags", pattern()]},
    {"filterableAttributes": ["year", "tags", "year"]},
    {"filterableAttributes": [pattern(features={}), pattern(features={"facetSearch": True})]},
    {"filterableAttributes": [pattern(features={"filter": {"comparison": True}})]},
    {"searchableAttributes": ["text", "title", "text"]},
    {"searchableAttributes": []},
    {"displayedAttributes": ["id", "*", "text", "id"]},
    {"sortableAttributes": ["year", "Year", "chunk_index", "year"]},
    {"rankingRules": ["year:desc", "words", "words"]},
    {"stopWords": ["The", "the", "a", "Éa", "the", "", "ﬁ", "한국어"]},
    {"dictionary": ["J. R. R.", "j. r. r.", "J. R. R."]},
    {"separatorTokens": ["|", "&", "|"], "nonSeparatorTokens": ["#", "@", "#"]},
    {"synonyms": {"Boat": ["ship", "Ship", "ship"], "a  b": ["c  d"], "é": [], "": ["x"]}},
    {"synonyms": {"BOAT": ["ship"], "é": []}},
    {"distinctAttribute": ""},
    {"proximityPrecision": "byAttribute"},
    {"typoTolerance": {"minWordSizeForTypos": {"oneTypo": 3}}},
    {"typoTolerance": {"enabled": None, "minWordSizeForTypos": {"twoTypos": None}, "disableOnWords": None}},
    {"typoTolerance": {"disableOnWords": ["Zz", "zz", "ÆON", "ıx", "カタカナ", "为", "can’t", "ẞ"]}},
    {"typoTolerance": {"disableOnAttributes": ["title", "Title", "title"]}},
    {"faceting": {"sortFacetValuesBy": {"year": "alpha", "*": "count"}}},
    {"searchCutoffMs": 150},
    {"localizedAttributes": [{"locales": ["ja", "eng", "ja"], "attributePatterns": ["*_ja", "b"]}]},
    {"localizedAttributes": [], "facetSearch": False, "prefixSearch": "disabled"},
]


class Live:
    """An index of its own, and the settings file for it."""

    def __init__(self, server: Server) -> None:
        self.server, self.signed = server, marker()
        self.sink = server.sink(settings=FILE)

    def apply(self, wanted: dict[str, Any]) -> list[str]:
        sink = self.server.sink(settings=wanted)
        due = sink.settings_due(self.signed.build_id)
        assert list(sink.update_settings(self.signed.build_id).names) == due
        self.sink = sink
        return due


@pytest.fixture(scope="module")
def live(meilisearch_server: MeilisearchServer) -> Iterator[Live]:
    for server in served(meilisearch_server):
        live = Live(server)
        live.sink.create(live.signed, 8)
        live.sink.flip(None, live.signed.build_id)
        yield live


@pytest.mark.parametrize("wanted", sampled(ODD, 5), ids=lambda wanted: json.dumps(wanted)[:60])
def test_apply_when_repeated_changes_nothing(wanted: dict[str, Any], live: Live) -> None:
    builds = live.sink.builds()
    for file in (wanted, FILE | wanted, FILE):
        live.apply(file)
        assert live.apply(file) == []
    assert live.sink.builds() == builds, "the marker stayed"
    assert live.sink.live_settings()["embedders"]["default"]["dimensions"] == 8


def test_apply_when_settings_follow_each_other_changes_each_once(live: Live) -> None:
    for wanted in sampled(ODD[1:], 5):  # the sample above leaves these out
        live.apply(wanted)
        assert live.apply(wanted) == [], wanted


def test_setting_when_removed_from_the_file_becomes_the_engines_default(live: Live) -> None:
    live.apply(FILE | {"stopWords": ["the"], "dictionary": ["x.y"], "localizedAttributes": [], "searchCutoffMs": 9})
    typos = {"typoTolerance": {"enabled": True}, "stopWords": ["a"]}
    found = resets(typos, live.sink.live_settings())
    assert {"dictionary", "localizedAttributes", "searchCutoffMs", "typoTolerance.disableOnNumbers"} <= {*found}
    assert not {"stopWords", "typoTolerance", "typoTolerance.enabled"} & {*found}
    assert set(live.apply({})) >= {"stopWords", "dictionary", "localizedAttributes", "searchCutoffMs", "typoTolerance"}
    held = live.sink.live_settings()
    assert {name: held[name] for name in DEFAULTS} == DEFAULTS
    assert live.apply({}) == []
    assert resets({}, live.sink.live_settings()) == []


def test_unknown_settings_suggest_the_nearest(live: Live) -> None:
    wanted = {"stopWord": [], "typoTolerance": {"enabeld": True}, "faceting": {}, "zzz": 1}
    expected = ["stopWord (did you mean stopWords?)", "zzz", "typoTolerance.enabeld (did you mean enabled?)"]
    assert unknown(wanted, live.sink.live_settings()) == expected


def test_defaults_are_those_of_the_server(live: Live) -> None:
    control = live.sink._connection.control
    name = f"i{uuid.uuid4().hex[:10]}"
    control.wait_for_task(control.create_index(name).task_uid)
    held = without_marker(live.sink._connection.get(f"/indexes/{name}/settings"))
    control.wait_for_task(control.delete_index(name).task_uid)
    assert held == DEFAULTS | {"embedders": {}}


def test_apply_when_a_value_changes_its_meaning_changes_the_index(live: Live) -> None:
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"stopWords": ["The"]}, {"stopWords": ["the"]}),
        ({"searchableAttributes": ["text", "title"]}, {"searchableAttributes": ["title", "text"]}),
        ({"filterableAttributes": ["tags"]}, {"filterableAttributes": [pattern()]}),
        ({"typoTolerance": {"disableOnWords": ["zebra"]}}, {"typoTolerance": {}}),
        ({"synonyms": {"boat": ["ship"]}}, {"synonyms": {"Boat": ["ship"]}}),
        ({"faceting": {"sortFacetValuesBy": {"tags": "count"}}}, {"faceting": {}}),
    ]
    for before, after in changes:
        live.apply(before)
        assert live.apply(after) == list(before), (before, after)
        assert live.apply(after) == [], (before, after)


def test_differences_when_a_setting_is_new_compares_it() -> None:
    held = complete({}) | {"novelty": {"a": 1, "b": 2}}
    assert differences({}, held) == []
    assert differences({"novelty": {"a": 1}}, held) == []
    assert [each.name for each in differences({"novelty": {"a": 2}, "other": 1}, held)] == ["novelty", "other"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "--output"),
        ("{", ""),
        ("[]", ""),
        ('{"embedders": {}}', "embedders"),
        ('{"synonyms": null, "stopWords": []}', "synonyms to null"),
        ('{"synonyms": 5}', "synonyms to 5"),
        ('{"synonyms": {"boat": "ship"}}', "'boat' to \"ship\""),
        ('{"stopWords": "the"}', 'stopWords to "the"'),
        ('{"distinctAttribute": "id"}', "distinctAttribute to 'id'.*'parent_id'"),
    ],
)
def test_file_when_unusable_is_refused(content: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(UnusableSettings, match=rf"s\.json.*{what}"):
        load_index_settings(tmp_path / "s.json")


# -- required settings -------------------------------------------------------------------------------------------------

OURS = json.loads((ROOT / "meilisearch-settings.json").read_text(encoding="utf-8"))
NEEDED = {
    name.replace("*", "x"): rule["features"]["filter"]["comparison"]
    for rule in OURS["filterableAttributes"]
    for name in rule["attributePatterns"]
}


def rule(*patterns: str, equality: Any = True, comparison: Any = False) -> dict[str, Any]:
    allowed = {"equality": equality, "comparison": comparison}
    return {"attributePatterns": list(patterns), "features": {"facetSearch": False, "filter": allowed}}


RULES: dict[str, list[Any]] = {
    "names": ["parent_id", "year"],
    "a star is no pattern as a name": ["*", "year*"],
    "all": [rule("*", comparison=True)],
    "patterns": [rule("*_id", "fam*", "*ana*", "*year", comparison=True)],
    "a star inside is none": [rule("par*id", "y*ar", comparison=True)],
    "some defaults": [
        {"attributePatterns": ["t*"], "features": {}},
        {"attributePatterns": ["*"], "features": {"filter": {}}},
    ],
    "the first one counts": [rule("*", equality=False), "parent_id", "year"],
    "no equality": [rule("*", equality=False, comparison=True)],
    "without fields": [rule(), "year"],
}


@pytest.fixture(scope="module")
def server(meilisearch_server: MeilisearchServer) -> Iterator[Server]:
    """Its index contains a document with a value for every required field."""
    for server in served(meilisearch_server):
        document = [{"id": "1", **dict.fromkeys(NEEDED, 1)}]
        do(server, "POST", "documents", params={"primaryKey": "id"}, json=document)
        yield server


def do(server: Server, method: str, path: str, **more: Any) -> None:
    task = server.do(method, f"/indexes/{server.index}/{path}", **more)
    assert task["status"] == "succeeded", task


def accepts(server: Server, **query: str) -> bool:
    return server.http.post(f"/indexes/{server.index}/search", json=query).status_code == 200


def filters(server: Server) -> set[str]:
    """The fields that the server can filter by as we do."""
    ranges = {name for name in NEEDED if not NEEDED[name] or accepts(server, filter=f"{name} > 0")}
    return {name for name in ranges if accepts(server, filter=f"{name} = 1")}


@pytest.mark.parametrize("name", sampled(RULES))
def test_our_fields_are_filterable_with_any_rules_in_the_file(name: str, server: Server) -> None:
    do(server, "PATCH", "settings", json={"filterableAttributes": RULES[name]})
    assert filters(server) < set(NEEDED) or name == "all"
    do(server, "PATCH", "settings", json=with_required({"filterableAttributes": RULES[name]}, OURS))
    assert filters(server) == set(NEEDED)
    assert accepts(server, distinct="id")


@pytest.mark.parametrize("rules", [[1], [{}], [{"attributePatterns": "tags"}], [rule("*", equality=1)]])
def test_filterable_rules_when_malformed_are_left_for_the_server_to_refuse(rules: Any, server: Server) -> None:
    wanted = with_required({"filterableAttributes": rules}, OURS)
    assert server.http.patch(f"/indexes/{server.index}/settings", json=wanted).status_code == 400


def test_required_settings_when_missing_are_added() -> None:
    assert with_required(OURS, OURS) == OURS == load_index_settings(ROOT / "meilisearch-settings.json")
    needed = {name: OURS[name] for name in ("distinctAttribute", "filterableAttributes")}
    assert with_required({"stopWords": ["the"]}, OURS) == {"stopWords": ["the"], **needed}


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (["text"], ["text", "id", "parent_id"]),
        (["parent_id", "text"], ["parent_id", "text", "id"]),
        (["text", "*"], ["text", "*"]),
        ([], ["id", "parent_id"]),
    ],
)
def test_displayed_attributes_always_contain_the_source(own: list[str], wanted: list[str]) -> None:
    assert with_required({"displayedAttributes": own}, OURS)["displayedAttributes"] == wanted
