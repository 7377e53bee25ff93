"""Custom fields on the command line: configured, indexed, searched, changed and removed."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.findings import FIELD_VALUE
from chunksink.command_line.cli import run
from chunksink.command_line.exits import Exit
from chunksink.rebuild import executor
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.state import State
from chunksink.sinks import custom_fields, projection
from chunksink.sinks.fts.sink import FILE
from tests.chunksink.shell import Models, Shell, write
from tests.crash.dying import act_at
from tests.support.bus import FEBRUARY, source
from tests.support.forking import FORKING

SINKS = ("fts", "chroma")
APOLLO = {
    "project": "apollo",
    "priority": 2,
    "due": "2026-05-31",
    "labels": ["a", "b"],
    "note": "kept",
    "deep": {"a": 1},
}
GEMINI = {"project": "gemini", "priority": 10, "due": "2026-01-31T12:00:00+01:00", "labels": "b", "open": True}
TICKETS = (
    source("a.md", "a red boat", "another boat", metadata=APOLLO),
    source("b.md", "a blue boat", metadata=GEMINI),
    source("c.md", "a boat of nobody"),
)
FIELDS = """
[fields.project]
facet = true
search = true
[fields.priority]
type = "number"
sort = true
[fields.due]
type = "datetime"
facet = true
sort = true
[fields.labels]
type = "strings"
facet = true
"""


def configure(shell: Shell, fields: str) -> None:
    write(shell, "chunksink.toml", fields)


@pytest.fixture
def tickets(shell: Shell) -> Shell:
    """An index with custom fields."""
    configure(shell, FIELDS)
    return shell.begin("tickets", "sync", p1=TICKETS)


@pytest.fixture
def plain(shell: Shell, models: Models) -> Shell:
    """An index without custom fields. They are configured afterwards."""
    shell.begin("plain tickets", "sync", p1=TICKETS)
    configure(shell, FIELDS)
    models.take_texts()
    return shell


def answer(shell: Shell, *arguments: str) -> dict[str, Any]:
    ended = shell("search", "--json", *arguments)
    assert ended.code == Exit.OK, ended
    return ended.json


def found(shell: Shell, *arguments: str) -> list[str]:
    return [hit["source_uri"] for hit in answer(shell, *arguments)["hits"]]


def test_answer_has_fields_metadata_facets_and_an_order(tickets: Shell) -> None:
    result = answer(tickets, "boat", "--sort", "-priority", "--facet", "project", "--facet", "due", "--facet", "labels")
    assert [hit["source_uri"] for hit in result["hits"]] == ["b.md", "a.md", "c.md"]
    assert [(hit["fields"], hit["metadata"]) for hit in result["hits"]] == [
        ({"project": "gemini", "priority": 10, "due": "2026-01-31T11:00:00Z", "labels": ["b"]}, {"open": True}),
        ({"project": "apollo", "priority": 2, "due": "2026-05-31T00:00:00Z", "labels": ["a", "b"]}, {"note": "kept"}),
        ({}, {}),
    ]
    assert result["facets"] == {
        "project": [{"value": "apollo", "families": 1}, {"value": "gemini", "families": 1}],
        "due": [{"value": "2026-01-31T11:00:00Z", "families": 1}, {"value": "2026-05-31T00:00:00Z", "families": 1}],
        "labels": [{"value": "b", "families": 2}, {"value": "a", "families": 1}],
    }
    assert found(tickets, "--sort", "due") == ["b.md", "a.md", "c.md"], "without words, everything"
    assert found(tickets, "gemini", "--mode", "keyword") == ["b.md"], "the field is searched"
    assert "project gemini" in tickets("search", "boat", "--filter", "project=gemini").out


def test_new_fields_are_refused_until_a_sync_has_written_them_without_embedding(plain: Shell, models: Models) -> None:
    assert sorted(found(plain, "boat")) == ["a.md", "b.md", "c.md"]
    for arguments in (("--filter", "project=apollo"), ("--sort", "priority")):
        assert plain("search", "boat", *arguments).code == Exit.USAGE
    result = answer(plain, "boat", "--facet", "project", "--facet", "source_type")
    assert (list(result["facets"]), len(result["hits"])) == (["source_type"], 3)
    status = plain("status", "--json").json
    assert {status["sinks"][name]["to_write"] for name in SINKS} != {0}

    plan = plain("plan", "--json").json
    assert {name: number for name, number in plan["families"].items() if number} == {"changed": 2, "unchanged": 1}
    assert plan["chunks"] == {"written": 3, "deleted": 0}
    assert (plan["embeddings"]["missing"], plan["embeddings"]["tokens"]) == (0, 0)
    assert plan["examples"]["changed"] == ["a.md", "b.md"]

    models.take_texts()
    synced = plain("sync", "--json").json
    assert synced["chunks"] == {"written": 3, "deleted": 0}
    assert synced["embeddings"]["computed"] == 0
    assert models.take_texts() == []
    assert found(plain, "boat", "--filter", "project=apollo", "--mode", "keyword") == ["a.md"]
    assert {status["to_write"] for status in plain("status", "--json").json["sinks"].values()} == {0}
    changed = plain.digests()
    assert plain("sync", "--json").json["chunks"] == {"written": 0, "deleted": 0}
    assert plain("rebuild").code == Exit.OK
    assert plain.digests() == changed, "as if it had been built with these fields"


def test_only_a_changed_field_is_refused_before_the_sync(tickets: Shell) -> None:
    changed = FIELDS.replace("[fields.project]\n", '[fields.project]\ntype = "strings"\n')
    configure(tickets, changed.replace("[fields.labels]", '[fields.marks]\npath = "metadata.labels"\n[fields.labels]'))
    for refused in ("project=apollo", "marks=a"):
        assert tickets("search", "boat", "--filter", refused).code == Exit.USAGE
    assert found(tickets, "boat", "--filter", "priority=10", "--filter", "labels=b", "--mode", "keyword") == ["b.md"]
    result = answer(tickets, "boat", "--facet", "project", "--facet", "due", "--sort", "-priority")
    assert (list(result["facets"]), result["hits"][0]["fields"]["priority"]) == (["due"], 10)
    assert tickets("sync").code == Exit.OK
    assert found(tickets, "boat", "--filter", "project=apollo", "--mode", "keyword") == ["a.md"]


def test_removed_field_is_metadata_again(tickets: Shell, models: Models) -> None:
    configure(tickets, FIELDS.replace("[fields.project]\nfacet = true\nsearch = true\n", ""))
    models.take_texts()
    synced = tickets("sync", "--json").json
    assert (synced["chunks"]["written"], synced["embeddings"]["computed"], models.take_texts()) == (3, 0, [])
    (hit,) = answer(tickets, "red", "--mode", "keyword")["hits"]
    assert hit["metadata"] == {"note": "kept", "project": "apollo"}
    assert "project" not in hit["fields"]
    assert tickets("search", "boat", "--filter", "project=apollo").code == Exit.USAGE
    configure(tickets, "")
    assert tickets("sync").code == Exit.OK
    for sink in SINKS:
        assert not any(stored.document.fields for stored in tickets.stored(sink) if stored.document)
    changed = tickets.digests()
    assert tickets("rebuild").code == Exit.OK
    assert tickets.digests() == changed


def test_what_only_a_search_needs_changes_no_document(tickets: Shell) -> None:
    """`facet` and `sort` concern searches only."""
    configure(tickets, FIELDS.replace('type = "number"\n', 'type = "number"\nfacet = true\n'))
    assert tickets("plan", "--json").json["chunks"] == {"written": 0, "deleted": 0}
    assert tickets("sync").code == Exit.OK
    assert list(answer(tickets, "boat", "--facet", "priority")["facets"]) == ["priority"]


def test_changed_type_does_not_stop_searches_before_the_sync(tickets: Shell) -> None:
    configure(tickets, '[fields.project]\ntype = "datetime"\nfacet = true\n[fields.labels]\ntype = "number"\n')
    result = answer(tickets, "boat", "--facet", "project")
    assert len(result["hits"]) == 3
    assert tickets("sync").code == Exit.OK
    result = answer(tickets, "boat", "--facet", "project")
    assert (len(result["hits"]), result["facets"]) == (3, {"project": []})


def test_index_of_the_version_before_is_updated_without_embedding(
    public_index: Any, shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its documents lack custom fields and other metadata, and its keyword index has another layout."""
    del public_index
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch,fts,chroma,jsonl")
    with monkeypatch.context() as before:
        before.setattr(projection, "PROJECTION_VERSION", 5)
        before.setattr(custom_fields, "_other_metadata", lambda *_: None)
        shell.synced(p1=TICKETS)
    (index,) = shell.home.glob(f"*/*/{FILE}")
    with closing(sqlite3.connect(index, isolation_level=None)) as other:
        other.execute("PRAGMA user_version = 4")
    configure(shell, FIELDS)
    models.take_texts()
    synced = shell("sync", "--json")
    assert (synced.code, synced.json["embeddings"]["computed"], models.take_texts()) == (Exit.OK, 0, [])
    assert {name: sink["written"] for name, sink in synced.json["sinks"].items()} == {
        "meilisearch": 3,
        "fts": 4,
        "chroma": 3,
        "jsonl": 3,
    }
    updated = shell.digests("--deep")
    assert found(shell, "boat", "--filter", "project=apollo", "--sort", "priority") == ["a.md"]
    assert shell("rebuild").code == Exit.OK
    assert shell.digests() == updated


def _sync_killed(folder: Path, call: int, sinks: str) -> None:
    os.chdir(folder)
    os.environ["CHUNKSINK_SINKS"] = sinks  # the server of forked processes may be older than this test's settings
    executor.EMBEDDED_AT_ONCE = executor.WRITTEN_AT_ONCE = 1
    act_at("chunksink.rebuild.receipts", "Receipts", "confirm", call, "before")
    run(["sync"])


@pytest.mark.promise(2)
@pytest.mark.parametrize("call", [1, 3])
def test_change_of_fields_when_killed_converges_and_is_refused_until_then(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    sinks = "fts,jsonl"
    monkeypatch.setenv("CHUNKSINK_SINKS", sinks)
    quick_shell.begin("to be killed", "sync", p1=TICKETS)
    configure(quick_shell, FIELDS)
    process = FORKING.Process(target=_sync_killed, args=(quick_shell.folder, call, sinks))
    process.start()
    process.join(120)
    assert process.exitcode == -9
    assert quick_shell("search", "boat", "--filter", "project=apollo").code == Exit.USAGE
    assert len(found(quick_shell, "boat")) == 3
    assert quick_shell("sync").code == Exit.OK
    assert found(quick_shell, "boat", "--filter", "project=apollo") == ["a.md"]
    converged = quick_shell.digests()
    assert quick_shell("rebuild").code == Exit.OK
    assert quick_shell.digests() == converged


def test_held_source_gets_its_fields_when_its_partition_is_back(quick_shell: Shell) -> None:
    quick_shell.begin("held tickets", "sync", p1=TICKETS[:1], p2=TICKETS[1:])
    quick_shell.cut_off("p2")
    configure(quick_shell, FIELDS)
    assert quick_shell("sync").code == Exit.INVALID_INPUT
    assert found(quick_shell, "boat", "--sort", "priority") == ["a.md", "b.md", "c.md"]
    quick_shell.commit("p2", *TICKETS[1:], at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    assert found(quick_shell, "boat", "--filter", "project=gemini") == ["b.md"]


def recorded(shell: Shell) -> list[str]:
    """The codes of the findings that the last sync recorded."""
    with State.existing(shell.home) as state:
        return [finding.code for finding in Catalog(state).findings()]


def test_wrong_values_are_warnings_that_name_the_field(quick_shell: Shell) -> None:
    configure(quick_shell, FIELDS)
    wrong = {"project": {"name": "x"}, "priority": "high", "due": "31.05.2026", "labels": [1, {}]}
    quick_shell.commit("p1", source("a.md", "a boat", metadata=wrong), source("b.md", "a new boat", metadata=GEMINI))
    validated = quick_shell("validate", "--json")
    assert validated.code == Exit.INVALID_INPUT
    findings = validated.json["findings"]
    assert {(one["code"], one["severity"], one["line"]) for one in findings} == {(FIELD_VALUE, "warning", 1)}
    assert {one["detail"].split(":")[0] for one in findings} == {
        "[fields.project]",
        "[fields.priority]",
        "[fields.due]",
    }
    synced = quick_shell("sync", "--json")
    assert (synced.code, synced.json["chunks"]["written"], synced.json["findings"]) == (Exit.OK, 2, [])
    assert recorded(quick_shell) == [FIELD_VALUE] * 3, "a warning holds nothing back"
    assert quick_shell("sync").err == "", "cron would mail it after every run"
    assert found(quick_shell, "boat", "--sort", "due") == ["b.md", "a.md"]
    hit = next(hit for hit in answer(quick_shell, "boat")["hits"] if hit["source_uri"] == "a.md")
    assert hit["fields"] == {"labels": ["1"]}
    configure(quick_shell, "[fields.priority]\n")
    assert quick_shell("validate").code == Exit.OK, "as text it is right"
    assert quick_shell("sync").code == Exit.OK
    assert recorded(quick_shell) == []


def test_proposed_tables_are_a_configuration_that_reads_every_value(quick_shell: Shell) -> None:
    odd = {'größe "x"': 5, "title": "ours", "release date": "2026-01-31", "release-date": "1", "text": "t", "007": "1"}
    quick_shell.commit(
        "p1", *TICKETS, source("d.md", "odd", metadata={**odd, "open": False, "": 1, "日本": 1, "a.b": 1})
    )
    result = quick_shell("validate", "--fields", "--json").json
    tables = "\n\n".join("\n".join(table) for table in result["proposals"])
    configure(quick_shell, tables)
    again = quick_shell("validate", "--fields", "--json")
    assert (again.code, again.json["findings"], again.json["proposals"]) == (Exit.OK, [], []), tables
    assert quick_shell("sync").code == Exit.OK
    assert found(quick_shell, "boat", "--filter", "priority>=3", "--filter", "due<2026-05") == ["b.md"]
    for field, order in (("due", ["b.md", "a.md"]), ("priority", ["a.md", "b.md"])):
        assert found(quick_shell, "boat", "--sort", field, "--filter", "priority>0") == order


def test_wrong_values_count_only_in_partitions_that_were_read(quick_shell: Shell) -> None:
    configure(quick_shell, FIELDS)
    for key, priority in (("p1", "high"), ("p2", "low")):
        quick_shell.commit(key, *(source(f"{key}{n}.md", "a boat", metadata={"priority": priority}) for n in "ab"))
    quick_shell.cut_off("p2")
    ended = quick_shell("sync", "--json")
    assert (ended.code, ended.json["wrong_field_values"]) == (Exit.INVALID_INPUT, 2)
