"""Records may name their own tenant: who read their file withdraws them with it, and nobody else's."""

from pathlib import Path

import orjson
import pytest

from tests.producers.bench import LATER, Bench

LATEST = "2026-03-03T12:00:00.000000Z"


def row(name: str, tenant: str | None = None) -> bytes:
    told = {"id": name, "text": f"Words of {name}."} | ({"tenant_id": tenant} if tenant else {})
    return orjson.dumps(told, option=orjson.OPT_APPEND_NEWLINE)


def standing(bench: Bench) -> list[tuple[str, str]]:
    return sorted((record["text"], record.get("tenant_id", "")) for record in bench.records())


@pytest.fixture
def rows(bench: Bench) -> Path:
    bench.write("k.md", "# K")
    file = bench.write("r.jsonl", row("a") + row("b", "acme") + row("c", "default"))
    assert bench.ingest(kind="auto").documents == 4
    return file


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_what_named_its_tenant_goes_with_its_file(bench: Bench, rows: Path, runs: int) -> None:
    rows.unlink()
    for _ in range(runs):
        report = bench.ingest(kind="auto", now=LATER)
        assert (report.missing, report.written) == (3, False)
    report = bench.ingest(kind="auto", prune=True, now=LATEST)
    assert (report.pruned, standing(bench)) == (3, [("# K", "")])
    assert len(bench.manifest().tombstones) == 3
    assert bench.ingest(kind="auto", prune=True, now=LATEST).missing == 0


@pytest.mark.parametrize("runs", [0, 1, 2])
def test_what_named_its_tenant_goes_when_its_file_does_not_hold_it(bench: Bench, rows: Path, runs: int) -> None:
    rows.write_bytes(row("a"))
    for _ in range(runs):
        assert bench.ingest(kind="auto", now=LATER).missing == 2
    report = bench.ingest(kind="auto", prune=True, now=LATEST)
    assert (report.pruned, standing(bench)) == (2, [("# K", ""), ("Words of a.", "")])
    assert not bench.ingest(kind="auto", prune=True, now=LATEST).written


def test_what_was_read_for_another_tenant_stays(bench: Bench, rows: Path) -> None:
    bench.ingest(kind="auto", tenant="acme", now=LATER)
    before = [found for found in standing(bench) if found[1] == "acme"]
    assert before == [("# K", "acme"), ("Words of a.", "acme"), ("Words of b.", "acme")]
    rows.unlink()
    report = bench.ingest(kind="auto", prune=True, now=LATEST)
    kept = [("# K", ""), *before]
    assert (report.pruned, standing(bench)) == (2, kept), "b was read for acme, too"
    report = bench.ingest(kind="auto", tenant="acme", prune=True, now=LATEST)
    assert (report.pruned, standing(bench)) == (2, kept[:2])


def test_a_file_of_the_same_name_that_was_read_for_the_tenant_keeps_its_records(bench: Bench) -> None:
    work, home = bench.write("work/docs/r.jsonl", row("b", "acme")), bench.write("home/docs/r.jsonl", row("b"))
    bench.write("work/docs/k.md", "# K")
    bench.ingest([work.parent], kind="auto", base=None)
    bench.ingest([home.parent], kind="auto", base=None, tenant="acme", now=LATER)
    work.unlink()
    for _ in range(2):
        bench.ingest([work.parent], kind="auto", base=None, prune=True, now=LATEST)
        assert ("Words of b.", "acme") in standing(bench)
