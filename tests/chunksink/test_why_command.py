"""`chunksink why`: where a chunk is, whether it is current, and its copy in every engine."""

import json
import re
from contextlib import closing
from typing import Any

import pytest

import chunksink
from chunksink.chunkbus.identity import family_key
from chunksink.chunkbus.manifest import Tombstone
from chunksink.command_line.exits import Exit
from chunksink.rebuild.errors import UnknownChunk
from chunksink.rebuild.state import State
from chunksink.sinks import registry
from chunksink.sinks.fields import sink_id
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from tests.chunksink.shell import Shell, write
from tests.support.bus import FEBRUARY, JANUARY, MARCH, commit, parent_of, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.local_engines import fts, memory

A = source("a.md", "a cat", "a mat")
CAT, MAT = (str(record["chunk_id"]) for record in A)
NEW_CAT = str(source("a.md", "a tomcat", version="2")[0]["chunk_id"])


@pytest.fixture
def home(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two sources in one partition. For the sink without a reader, the whole build is read."""
    in_memory = memory()
    makers = [fts, in_memory, lambda home: JsonlSink(home / "jsonl")]
    home = Home(shell.home, shell.root, *makers)
    engines: dict[str, Any] = {maker(home.folder).name: maker for maker in makers}
    monkeypatch.setattr(registry, "open_sink", lambda name, home, _options: engines[name](home))
    commit(home.root, "p1", [*source("b.md", "a boat"), *A])
    home.rebuild()
    return home


def why(shell: Shell, chunk_id: str, code: Exit = Exit.OK) -> dict[str, Any]:
    ended, printed = shell("why", chunk_id, "--json"), shell("why", chunk_id)
    assert ended.code == printed.code == code
    return ended.json | {"printed": printed.out}


def copies(found: dict[str, Any]) -> dict[str, str]:
    return {name: sink["copy"] for name, sink in found["sinks"].items()}


def everywhere(copy: str) -> dict[str, str]:
    return dict.fromkeys(("fts", "memory", "jsonl"), copy)


def test_why_of_a_current_chunk(home: Home, shell: Shell) -> None:
    found = why(shell, MAT)
    [occurrence] = found["occurrences"]
    assert (occurrence["partition"], occurrence["line"], occurrence["verdict"]) == ("p1", 3, "current")
    lines = home.root.chunks_file("p1").read_text().splitlines()
    assert json.loads(lines[occurrence["line"] - 1])["chunk_id"] == MAT
    assert (found["family"], found["source"], found["held"]) == (parent_of("a.md"), "a.md", None)
    assert found["cached_vector"]["dimension"] == 8
    assert copies(found) == everywhere("present")
    for sink in found["sinks"].values():
        assert (sink["receipt"], sink["open_intent"], sink["refused"]) == ("matches", False, None)
    assert "partition p1, line 3, source a.md, document a.md@1" in found["printed"]
    assert "fts         present in the engine; receipt matches\n" in found["printed"]


def test_why_of_an_older_version_is_superseded(home: Home, shell: Shell) -> None:
    commit(home.root, "p2", source("a.md", "a tomcat", version="2", at=FEBRUARY), at=FEBRUARY)
    home.sync()
    found = why(shell, CAT)
    assert found["occurrences"][0]["verdict"] == "superseded"
    reason = found["occurrences"][0]["reason"]
    assert re.findall(r"partition p2|2026-\d\d", reason) == ["partition p2", FEBRUARY[:7], JANUARY[:7]]
    assert copies(found) == everywhere("absent")
    assert why(shell, NEW_CAT)["occurrences"][0]["verdict"] == "current"


def test_why_of_a_superseded_chunk_that_an_engine_still_has(home: Home, shell: Shell) -> None:
    commit(home.root, "p2", source("a.md", "a tomcat", version="2", at=FEBRUARY), at=FEBRUARY)
    with home.session() as session:
        session.refresh()
    found = why(shell, CAT)
    assert copies(found) == everywhere("present")
    assert {sink["receipt"] for sink in found["sinks"].values()} == {"another version"}
    assert "`chunksink sync` removes it" in found["printed"]


def test_why_of_a_chunk_with_a_tombstone_is_retired(home: Home, shell: Shell) -> None:
    tombstones = [Tombstone(parent_id=parent_of("a.md"), reason="withdrawn", at=MARCH)]
    commit(home.root, "p2", source("c.md", "a cow"), at=MARCH, tombstones=tombstones)
    home.sync()
    found = why(shell, CAT)
    assert found["occurrences"][0]["verdict"] == "retired"
    assert "the tombstone of 2026-03-01" in found["occurrences"][0]["reason"]
    assert copies(found) == everywhere("absent")


def test_why_of_a_chunk_that_is_newer_than_a_tombstone_names_it(home: Home, shell: Shell) -> None:
    commit(home.root, "p2", source("c.md", "a cow"), at=JANUARY, tombstones=[Tombstone(parent_id=parent_of("a.md"))])
    commit(home.root, "p1", [*source("b.md", "a boat"), *source("a.md", "a cat", "a mat", at=MARCH)], at=MARCH)
    home.sync()
    [occurrence] = why(shell, CAT)["occurrences"]
    assert occurrence["verdict"] == "current"
    assert "newer than the tombstone of 2026-01-01" in occurrence["reason"]
    [other] = why(shell, "c.md")["occurrences"]
    assert "tombstone" not in other["reason"]


def test_why_of_an_id_in_two_sources_names_both(home: Home, shell: Shell) -> None:
    [other] = source("other.md", "another text")
    commit(home.root, "p2", [{**other, "chunk_id": CAT}])
    home.sync()
    found = why(shell, CAT)
    assert [(each["partition"], each["line"], each["source"]) for each in found["occurrences"]] == [
        ("p1", 2, "a.md"),
        ("p2", 1, "other.md"),
    ]
    assert "partition p2, line 1, source other.md" in found["printed"]
    assert "`chunksink why CHUNK_ID`" in found["held"]


def test_why_of_a_split_source_is_undecided(home: Home, shell: Shell) -> None:
    parts = [source("a.md", text, ids=text) for text in ("one part", "another part")]
    for key, (record,) in zip(("p2", "p3"), parts, strict=True):
        del record["chunk_count"]
        commit(home.root, key, [record])
    commit(home.root, "p1", source("b.md", "a dog"))
    home.sync()
    found = why(shell, parts[0][0]["chunk_id"])
    assert found["held"].startswith("family split: ")
    assert (found["source"], [each["verdict"] for each in found["occurrences"]]) == ("a.md", ["undecided"])
    assert "split between partitions" in found["printed"]


def test_why_of_a_chunk_in_a_missing_partition_is_held(home: Home, shell: Shell) -> None:
    home.root.manifest_file("p1").unlink()
    home.root.chunks_file("p1").unlink()
    home.sync()
    found = why(shell, CAT)
    assert found["held"] == "missing: partition p1 is missing"
    assert (found["occurrences"][0]["line"], found["occurrences"][0]["partition_state"]) == (None, "missing")
    assert copies(found) == everywhere("present")
    assert "repair" not in found["printed"]


def test_why_after_the_file_changed_has_no_line(home: Home, shell: Shell) -> None:
    commit(home.root, "p1", source("c.md", "a much longer text than there was before, so that all has moved"))
    found = why(shell, CAT)
    assert found["occurrences"][0]["line"] is None
    assert found["occurrences"][0]["verdict"] == "current"
    assert "`chunksink sync`" in found["occurrences"][0]["reason"]
    assert "changed or disappeared" in found["printed"]


def test_why_shows_different_and_absent_copies(home: Home, shell: Shell) -> None:
    with closing(FtsSink(home.folder / "fts").open(home.live().builds["fts"])) as build:
        build._connection.execute("update documents set title = 'other' where id = ?", [sink_id(CAT)])
        build._connection.execute("delete from documents where id = ?", [sink_id(MAT)])
    found = why(shell, CAT)
    assert copies(found) == {"fts": "different", "memory": "present", "jsonl": "present"}
    assert found["sinks"]["fts"]["differs_in"] == ["title"]
    assert "different in the engine (in title); receipt matches; `chunksink verify --repair`" in found["printed"]
    assert copies(why(shell, MAT))["fts"] == "absent"


def test_why_of_a_refused_document_shows_the_refusal(home: Home, shell: Shell) -> None:
    home.encoder = PoisonedEncoder(dimension=8)
    poison = source("c.md", "a poison")
    commit(home.root, "p2", poison)
    home.sync()
    found = why(shell, str(poison[0]["chunk_id"]))
    assert copies(found) == {"fts": "present", "memory": "absent", "jsonl": "present"}
    assert found["sinks"]["memory"]["refused"]
    assert found["cached_vector"] is None
    assert "refused: " in found["printed"]


def test_why_shows_an_open_intent(home: Home, shell: Shell) -> None:
    with State(home.folder) as state:
        state.db.execute("insert into intent values (?, ?)", [home.live().builds["fts"], parent_of("a.md")])
        state.db.conn.commit()
    found = why(shell, CAT)
    assert {name for name, sink in found["sinks"].items() if sink["open_intent"]} == {"fts"}


def test_why_when_an_engine_fails_has_the_engine_exit_code(home: Home, shell: Shell) -> None:
    FtsSink(home.folder / "fts").drop(home.live().builds["fts"])
    found = why(shell, CAT, Exit.ENGINE)
    assert copies(found) == {"fts": "unknown", "memory": "present", "jsonl": "present"}


def test_why_accepts_the_id_in_engines(home: Home, shell: Shell) -> None:
    odd = source("c.md", "a cow")
    odd[0]["chunk_id"] = "not/for engines"
    commit(home.root, "p2", odd)
    home.sync()
    for name in ("not/for engines", sink_id("not/for engines")):
        found = why(shell, name)
        assert (found["chunk_id"], found["document"]) == ("not/for engines", sink_id("not/for engines"))
        assert copies(found) == everywhere("present")


@pytest.mark.parametrize("name", ["docs/e.md", "docs/e.md#l=1", "e.md", "docs/e.md@1", parent_of("docs/e.md")])
def test_a_source_by_its_names_is_explained_by_its_first_chunk(name: str, home: Home, shell: Shell) -> None:
    chunks = source("docs/e.md", "an emu", "an eel")
    commit(home.root, "p2", chunks)
    home.sync()
    found = why(shell, name)
    first, other = (record["chunk_id"] for record in chunks)
    assert (found["chunk_id"], found["other_chunks"], found["source"]) == (first, [other], "docs/e.md")


def test_a_source_is_found_by_its_name_in_either_unicode_form(home: Home, shell: Shell) -> None:
    decomposed = "docs/U\u0308ber.md"
    commit(home.root, "p2", source(decomposed, "an emu"))
    home.sync()
    for typed in (decomposed, "docs/\u00dcber.md"):
        assert why(shell, typed)["source"] == decomposed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h-" + "0" * 64, "has it been synced?"),
        ("nowhere.md", "has it been synced?"),
        ("", "ids that begin with it are "),
        ("thing", "ids that begin with it are thing-0x, thing-1x"),
        ("twice.md", "names 2 sources"),
    ],
)
def test_why_of_an_unknown_or_ambiguous_id_is_a_usage_error(name: str, expected: str, home: Home, shell: Shell) -> None:
    things = [record | {"chunk_id": f"thing-{n}x"} for n, record in enumerate(source("c.md", "1", "2"))]
    of_tenants = [source("twice.md", name, ids=name, tenant_id=name) for name in ("acme", "other")]
    commit(home.root, "p2", [*things, *of_tenants[0], *of_tenants[1]])
    home.sync()
    assert why(shell, "thing-1")["chunk_id"] == "thing-1x", "what its id alone begins with"
    ended = shell("why", name)
    assert (ended.code, expected in ended.err) == (Exit.USAGE, True)


@pytest.mark.parametrize("name", ["docs/e.md", "docs/e.md#l=1", parent_of("docs/e.md")])
def test_why_of_a_removed_source_says_that_it_was_there(name: str, home: Home, shell: Shell) -> None:
    commit(home.root, "p2", source("docs/e.md", "an emu"))
    home.sync()
    commit(home.root, "p2", [])
    for _ in range(2):  # before and after the index has lost it
        ended = shell("why", name)
        home.sync()
    assert (ended.code, "no partition has it now" in ended.err) == (Exit.USAGE, True)


def test_why_of_a_file_of_several_tenants_lists_them_and_each_family_key_means_one(home: Home, shell: Shell) -> None:
    owners = (None, "acme", "other")
    chunks = {owner: source("twice.md", str(owner), ids=str(owner), tenant_id=owner) for owner in owners}
    commit(home.root, "p2", [record for records in chunks.values() for record in records])
    home.sync()
    ended = shell("why", "twice.md")
    assert ended.code == Exit.USAGE
    families = {owner: family_key(parent_of("twice.md"), owner) for owner in owners}
    for owner, family in families.items():
        of_tenant = f" of tenant {owner!r}" if owner else ""
        assert f"  family {family} 'twice.md'{of_tenant}\n" in ended.err
        assert why(shell, family)["chunk_id"] == chunks[owner][0]["chunk_id"]


@pytest.mark.parametrize(
    ("name", "code"),
    [("docs/empty.md", "SOURCE_EMPTY"), ("empty.md", "SOURCE_EMPTY"), ("docs/broken.pptx", "CHUNKING_FAILED")],
)
def test_file_without_chunks_names_the_result_of_its_reading(name: str, code: str, quick_shell: Shell) -> None:
    write(quick_shell, "docs/a.md", "# A\n\nA text.\n")
    write(quick_shell, "docs/empty.md", "")
    write(quick_shell, "docs/broken.pptx", "not a presentation")
    ingested = quick_shell("ingest", "docs", "--sync", "--json")
    assert ingested.code == Exit.INVALID_INPUT
    ended = quick_shell("why", name)
    assert (ended.code, code in ended.err) == (Exit.USAGE, True)
    (failure,) = ingested.json["ingest"]["failures"]
    assert (failure["reason"] in ended.err) == (failure["code"] == code)
    for unknown in ("nowhere.md", "mpty.md", ""):
        assert code not in quick_shell("why", unknown).err
    with chunksink.open() as index, pytest.raises(UnknownChunk, match=code):
        index.why(name)
