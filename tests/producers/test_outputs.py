"""A bus of chunks that lies among the sources is none of them: what it holds was made from them."""

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.producers.memory import Memory
from tests.producers.bench import LATER, Bench

OUTPUT = {"FOLDER_IS_OUTPUT": 1}


@pytest.fixture
def inside(bench: Bench, tmp_path: Path) -> Bench:
    """The bus lies in the folder of the sources, as `chunksink ingest .` has it."""
    bench.root = BusRoot(bench.docs / "chunks")
    bench.memory = Memory(tmp_path / "inside.db", bench.root)
    return bench


def texts(bench: Bench, tenant: str | None = None, key: str = "documents") -> dict[str, str]:
    records = [record for record in bench.records(key) if record.get("tenant_id") == tenant]
    return {record["provenance"]["source_uri"]: record["text"] for record in records}


def files(bench: Bench) -> dict[str, str]:
    return {f"docs/{file.relative_to(bench.docs)}": file.read_text() for file in bench.docs.rglob("*.md")}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("to", ["documents", "by-type"])
def test_what_stands_in_the_bus_is_what_the_files_say(inside: Bench, seed: int, to: str) -> None:
    """After any edits, for whatever tenant; what is gone stays until it is pruned."""
    chance = random.Random(seed)
    key = {"documents": "documents", "by-type": "md"}[to]
    said: dict[str, Any] = {"kind": "auto", "to": to, "base": None}
    expected: dict[str | None, dict[str, str]] = {None: {}, "acme": {}}
    for turn in range(8):
        names = sorted(path.name for path in inside.docs.glob("*.md"))
        for name in [*chance.sample(names, len(names) // 2), f"{turn}.md"]:
            inside.write(name, f"Turn {turn} of {name}.")
        for name in chance.sample(names, len(names) // 3):
            (inside.docs / name).unlink()
        tenant, prune = chance.choice([None, "acme"]), chance.random() < 0.5
        report = inside.ingest(tenant=tenant, prune=prune, now=f"2026-03-0{turn + 1}T12:00:00Z", **said)
        expected[tenant] = ({} if prune else expected[tenant]) | files(inside)
        assert (report.failures, {name: texts(inside, name, key) for name in expected}) == ((), expected)
        again = inside.ingest(tenant=tenant, now=LATER, **said)
        assert (again.written, again.processed, again.left_out) == (False, 0, OUTPUT)
    inside.assert_valid()


def test_an_edit_and_a_new_source_arrive_without_prune_too(inside: Bench) -> None:
    inside.write("a.md", "Old.")
    inside.write("b.md", "Stays.")
    inside.ingest(kind="auto", to="documents", base=None)
    inside.write("a.md", "New.")
    inside.write("c.md", "Added.")
    report = inside.ingest(kind="auto", to="documents", base=None, now=LATER)
    assert (report.processed, report.left_out, report.failures) == (2, OUTPUT, ())
    assert texts(inside) == files(inside)
    row = inside.attempts(source="chunks/")[0]
    assert (row["source_uri"], row["status"], row["error_type"]) == ("docs/chunks/", "processed", "FOLDER_IS_OUTPUT")


def test_a_tenant_gets_no_copies_of_the_others(inside: Bench) -> None:
    inside.write("a.md", "A.")
    inside.ingest(kind="auto", to="documents", base=None)
    (inside.docs / "a.md").unlink()
    inside.write("b.md", "B.")
    inside.ingest(kind="auto", to="documents", base=None, tenant="acme", now=LATER)
    assert (texts(inside), texts(inside, "acme")) == ({"docs/a.md": "A."}, {"docs/b.md": "B."})


def test_another_bus_and_the_home_are_passed_over(bench: Bench) -> None:
    bench.write("p/a.md", "A.")
    bench.ingest(kind="auto", base=None)
    shutil.copytree(bench.root.path, bench.docs / "p" / "chunks")
    bench.write("home/runs/run.jsonl", '{"event": "started"}\n')
    bench.write("p/canonical/b.md", "A folder that is only called so.")
    said: dict[str, Any] = {"kind": "auto", "base": None, "to": "other", "homes": [bench.docs / "home"]}
    report = bench.ingest(now=LATER, **said)
    assert (report.sources, report.left_out, report.failures) == (2, {"FOLDER_IS_OUTPUT": 2}, ())
    assert sorted(texts(bench, key="other")) == ["docs/p/a.md", "docs/p/canonical/b.md"]
    assert bench.manifest("other").errors == {}
    named = bench.ingest([bench.docs, bench.docs / "p" / "chunks"], to="named", base=None, kind="auto", now=LATER)
    assert "FOLDER_IS_OUTPUT" not in named.left_out, "who names it has it read"


def test_a_bus_that_is_the_folder_of_the_sources_reads_all_but_itself(bench: Bench, tmp_path: Path) -> None:
    bench.root = BusRoot(bench.docs)
    bench.memory = Memory(tmp_path / "inside.db", bench.root)
    bench.write("a.md", "Old.")
    bench.ingest(kind="auto", to="documents", base=None)
    bench.write("a.md", "New.")
    report = bench.ingest(kind="auto", to="documents", base=None, now=LATER)
    assert report.left_out == {"FOLDER_IS_OUTPUT": 3}
    assert texts(bench) == {"docs/a.md": "New."}


def test_what_was_read_from_the_bus_before_is_withdrawn_when_pruned(inside: Bench) -> None:
    """As earlier releases did where a tenant was named."""
    inside.write("a.md", "A.")
    path = inside.write("gone.md", "Gone.")
    inside.ingest(kind="auto", to="documents", base=None)
    chunks, docs = inside.root.chunks_file("documents"), inside.docs.parent
    said: dict[str, Any] = {"to": "documents", "tenant": "acme", "now": LATER}
    assert inside.ingest([chunks], kind="chunks", base=docs, **said).documents == 4
    path.unlink()
    assert inside.ingest(kind="auto", base=None, **said).pruned == 0
    assert set(texts(inside, "acme").values()) == {"A.", "Gone."}
    assert inside.ingest(kind="auto", base=None, prune=True, **said).pruned == 1
    assert texts(inside, "acme") == files(inside)
