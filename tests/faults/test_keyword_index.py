"""`verify` finds and names damage to the keyword index and `--repair` repairs it, although all documents exist."""

import json
import random

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.conftest import models, quick_shell, shell
from tests.chunksink.shell import Shell
from tests.support.bus import source
from tests.support.damaged_files import overwrite
from tests.support.fts import DAMAGES, run

__all__ = ["models", "quick_shell", "shell"]

SOURCES = [source(f"docs/{number}.md", f"the okapi {number}", f"動物園の歴史 {number}", "x") for number in range(12)]
QUERIES = ("okapi", "動物園", "歴史")


@pytest.fixture
def indexed(quick_shell: Shell) -> Shell:
    quick_shell.commit("p1", *SOURCES)
    assert quick_shell("rebuild").code == Exit.OK
    return quick_shell


def harm(shell: Shell, statement: str) -> None:
    run(shell.home / "fts" / shell.live().builds["fts"] / "fts.db", statement)


def found(shell: Shell) -> list[list[str]]:
    results = []
    for query in QUERIES:
        ended = shell("search", query, "--limit", "50", "--json")
        assert ended.code == Exit.OK, ended.err
        results.append(sorted(hit["chunk_id"] for hit in json.loads(ended.out)["hits"]))
    return results


def test_verify_reports_a_damaged_keyword_index_and_repair_repairs_it(indexed: Shell) -> None:
    """The sink's own tests find all kinds of damage."""
    before = found(indexed)
    assert all(before)
    digest = indexed("verify").out
    harm(indexed, DAMAGES["emptied"])
    for deep in ((), ("--deep",)):
        ended = indexed("verify", *deep)
        assert ended.code == Exit.DRIFT
        assert "fts: 36 chunks of 12 sources, differs from the chunks" in ended.out
        assert "word index" in ended.err
        assert f"`chunksink verify {''.join(f'{one} ' for one in deep)}--repair` fixes it" in ended.err
    report = json.loads(indexed("verify", "--json").out)
    assert (report["ok"], report["sinks"]["fts"]["ok"]) == (False, False)
    assert "word index" in report["sinks"]["fts"]["error"]
    proved = indexed("prove", "proof.json")
    assert (proved.code, (indexed.folder / "proof.json").exists()) == (Exit.DRIFT, False)
    repaired = indexed("verify", "--repair")
    assert repaired.code == Exit.OK, repaired.err
    assert "matches the chunks\n" in repaired.out
    assert found(indexed) == before
    assert indexed("verify").out == digest
    assert indexed("prove", "proof.json").code == Exit.OK


@pytest.mark.parametrize("index", ["idx_documents_id", "idx_documents_parent_id_document_hash"])
def test_repair_replaces_a_build_with_a_damaged_b_tree_index(index: str, indexed: Shell) -> None:
    before = found(indexed)
    overwrite(indexed.home / "fts" / indexed.live().builds["fts"] / "fts.db", index, random.Random(7).randbytes)
    assert indexed("verify").code == Exit.DRIFT
    assert indexed("verify", "--repair").code == Exit.OK
    assert found(indexed) == before
    indexed.commit("p2", source("docs/new.md", "a lemur"))
    assert indexed("sync").code == Exit.OK


def test_damage_found_by_verify_is_repaired_by_the_next_writing_sync(indexed: Shell) -> None:
    harm(indexed, DAMAGES["emptied"])
    assert indexed("verify").code == Exit.DRIFT
    indexed.commit("p2", source("docs/new.md", "an okapi more"))
    assert indexed("sync").code == Exit.OK
    assert indexed("verify").code == Exit.OK
    assert [len(hits) for hits in found(indexed)] == [13, 12, 12]
