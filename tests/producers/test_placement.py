"""Partitions by date, by type, by prefix: where families go, how they move, and what a kill between commits leaves."""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from chunksink.chunkbus.errors import InvalidPartitionKey, PartitionLocked
from chunksink.chunkbus.ledger import Ledger
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import COMMIT_STEPS, PartitionWriter
from chunksink.producers.errors import IngestRefused
from chunksink.producers.families import key_of_source
from chunksink.producers.memory import Memory
from tests.conftest import HEAVY
from tests.producers.bench import LATER, NOW, Bench
from tests.producers.bridges.samples import canonical_chunk
from tests.producers.lines import kinds, line
from tests.producers.reading import write_lines

JANUARY, MARCH = 1_767_225_599, 1_772_323_200  # the last second of 2025, the first of March 2026, in UTC


def write(bench: Bench, name: str, text: str, at: int) -> Path:
    path = bench.write(name, text)
    os.utime(path, (at, at))
    return path


def layout(bench: Bench) -> dict[str, list[str]]:
    """What each partition holds: names and texts."""
    return {
        key: [f"{record['provenance']['source_uri']}: {record['text']}" for record in bench.records(key)]
        for key in bench.root.partition_keys()
    }


def test_by_date_takes_the_time_of_the_source_in_utc(bench: Bench) -> None:
    write(bench, "a.md", "A", JANUARY)
    write(bench, "b.md", "B", JANUARY + 1)
    bench.write("x.jsonl", line("own time", "C", at="2020-02-29T23:59:59-01:00") + line("d", "D"))
    os.utime(bench.docs / "x.jsonl", (MARCH, MARCH))
    report = bench.ingest(to="by-date", kind="auto", kinds=kinds())
    bench.assert_valid()
    assert layout(bench) == {
        "2020-03-01": ["own time: C"],
        "2025-12-31": ["a.md: A"],
        "2026-01-01": ["b.md: B"],
        "2026-03-01": ["d: D"],
    }
    assert report.partitions == tuple(layout(bench))
    assert (report.documents, report.partition_key) == (4, "by-date")
    assert not bench.ingest(to="by-date", kind="auto", kinds=kinds(), now=LATER).written


def test_a_moment_that_no_calendar_has_is_no_date(bench: Bench) -> None:
    microseconds = 1_700_000_000_000_000
    chunks = [
        canonical_chunk(0, parent_id=name, chunk_id=name, metadata={"occurred_at_end_ms": moment})
        for name, moment in (("wrong unit", microseconds), ("huge", 10**18), ("right", microseconds // 1000))
    ]
    write_lines(bench.docs / "x.jsonl", chunks)
    bench.ingest(to="by-date", kind="chunks")
    assert {key: len(held) for key, held in layout(bench).items()} == {"2023-11-14": 1, "undated": 2}


def test_by_type_and_by_prefix(bench: Bench, tmp_path: Path) -> None:
    bench.write("a.md", "A")
    bench.write("x.jsonl", line("n", "N", type="Mail Archive/2") + line("m", "M"))
    bench.ingest(to="by-type", kind="auto", kinds=kinds())
    assert layout(bench) == {"line": ["m: M"], "mail-archive-2": ["n: N"], "md": ["a.md: A"]}
    (tmp_path / "other").mkdir()
    other = Bench(tmp_path / "other")
    other.ingest([bench.docs], base=bench.docs, to="by-prefix", kind="auto", kinds=kinds())
    other.assert_valid()
    names = {"a.md": "A", "m": "M", "n": "N"}
    assert layout(other) == {key_of_source(name, None)[:2]: [f"{name}: {text}"] for name, text in names.items()}


def test_a_name_that_is_neither_a_rule_nor_a_key_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidPartitionKey):
        bench.ingest(to="by/date")
    with pytest.raises(InvalidPartitionKey, match="'by-day' is no rule: there are by-date, by-type, by-prefix"):
        bench.ingest(to="by-day")


def test_a_partition_that_is_called_like_a_rule_is_in_nobodys_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version wrote them."""
    bench.write("a.md", "# A")
    with monkeypatch.context() as patch:
        patch.setattr("chunksink.producers.placement.Placement.refuse_misspelt", lambda *_: None)
        bench.ingest(to="by-team")
    assert bench.ingest(to="other").documents == 1
    assert bench.ingest(to="by-team").unchanged == 1
    assert bench.ingest(to="other", prune=True).documents == 1


def test_a_family_moves_with_its_date_and_leaves_nothing_behind(bench: Bench) -> None:
    write(bench, "a.md", "A", JANUARY)
    write(bench, "b.md", "B", JANUARY)
    bench.ingest(to="by-date")
    write(bench, "a.md", "A2", MARCH)
    report = bench.ingest(to="by-date", now=LATER)
    bench.assert_valid()
    assert layout(bench) == {"2025-12-31": ["b.md: B"], "2026-03-01": ["a.md: A2"]}
    assert (report.processed, report.unchanged, report.partitions) == (1, 1, ("2025-12-31", "2026-03-01"))
    os.utime(bench.docs / "a.md", (JANUARY, JANUARY))
    moved = bench.ingest(to="by-date", now=LATER)
    bench.assert_valid()
    assert layout(bench) == {"2025-12-31": ["a.md: A2", "b.md: B"], "2026-03-01": []}
    assert moved.unchanged == 2
    assert not bench.ingest(to="by-date", now=LATER).written


def test_others_partitions_are_left_alone(bench: Bench) -> None:
    write(bench, "a.md", "A", JANUARY)
    bench.ingest(to="mine")
    with PartitionWriter(bench.root, "theirs") as writer:
        for record in bench.records("mine"):
            writer.add(record)
        writer.commit(documents=1, producer=ManifestProducer("other", "1"), created_at=NOW)
    bench.ingest(to="by-date", now=LATER)
    bench.assert_valid()
    assert layout(bench) == {"2025-12-31": ["a.md: A"], "mine": [], "theirs": ["a.md: A"]}


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_partition_that_is_not_ours_is_named_before_anything_is_written(bench: Bench, is_committed: bool) -> None:
    write(bench, "a.md", "A", JANUARY)
    write(bench, "b.md", "B", MARCH)
    if is_committed:
        with PartitionWriter(bench.root, "2026-03-01") as writer:
            writer.commit(documents=0, producer=ManifestProducer("other", "1"), created_at=NOW)
    else:
        bench.root.canonical.mkdir(parents=True)
        bench.root.chunks_file("2026-03-01").write_text("theirs\n")
    before = bench.bytes_on_bus()
    with pytest.raises(IngestRefused, match=r"partition 2026-03-01 of .*; nothing was written.*--partition"):
        bench.ingest(to="by-date")
    assert bench.bytes_on_bus() == before


def test_two_families_that_change_places_are_never_both_gone(bench: Bench) -> None:
    write(bench, "a.md", "A", JANUARY)
    write(bench, "b.md", "B", MARCH)
    bench.ingest(to="by-date")
    write(bench, "a.md", "A2", MARCH)
    write(bench, "b.md", "B2", JANUARY)
    bench.ingest(to="by-date", now=LATER)
    bench.assert_valid()
    assert layout(bench) == {"2025-12-31": ["b.md: B2"], "2026-03-01": ["a.md: A2"]}


def test_failures_are_told_by_the_partition_that_the_source_belongs_to(bench: Bench) -> None:
    write(bench, "a.md", "A", JANUARY)
    bench.ingest(to="by-date")
    (bench.docs / "a.md").write_bytes(b"\xff")
    bad = bench.write("new.md", b"\xff")
    os.utime(bad, (MARCH, MARCH))
    report = bench.ingest(to="by-date", now=LATER)
    assert report.failed == 2
    assert layout(bench) == {"2025-12-31": ["a.md: A"], "2026-03-01": []}
    for key in layout(bench):
        assert bench.manifest(key).errors == {"CHUNKING_FAILED": 1}


def test_a_partition_that_was_written_meanwhile_is_not_overwritten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "A")
    bench.ingest()
    bench.write("a.md", "A2")

    def write_meanwhile(*arguments: object, **options: object) -> PartitionWriter:
        with PartitionWriter(bench.root, "markdown") as other:
            other.commit(documents=0, producer=ManifestProducer("other", "1"), created_at=NOW)
        return PartitionWriter(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("chunksink.producers.commits.PartitionWriter", write_meanwhile)
    with pytest.raises(PartitionLocked, match="partition markdown was written by another process meanwhile"):
        bench.ingest(now=LATER)
    assert bench.manifest().producer.name == "other"


def change_places(bench: Bench) -> None:
    """Three partitions lose and gain something."""
    for name, text, at in (("a.md", "A2", MARCH), ("b.md", "B2", JANUARY), ("c.md", "C2", MARCH + 99_999)):
        write(bench, name, text, at)


def dying(step_number: int) -> Callable[..., PartitionWriter]:
    steps = count(1)

    def die(_step: str) -> None:
        if next(steps) == step_number:
            os._exit(9)

    return partial(PartitionWriter, on_step=die)


def killed_at(bench: Bench, home: Path, step_number: int) -> bool:
    """False where there was no such step. A process of its own is killed as the system kills one."""
    child = os.fork()
    if child == 0:
        try:
            import chunksink.producers.commits as commits

            tempfile.tempdir = str(home)  # who is killed removes nothing
            commits.PartitionWriter = dying(step_number)  # type: ignore[assignment, misc]
            bench.ledger, bench.memory = Ledger(home / "ledger.db"), Memory(home / "ingest.db", bench.root)
            bench.ingest(to="by-date", now=LATER)
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, 9)
    return ended == 9


@pytest.mark.promise(2)
def test_killed_at_any_step_of_any_commit_the_bus_is_valid_and_the_next_run_converges(tmp_path: Path) -> None:
    expected = {"2025-12-31": ["b.md: B2"], "2026-03-01": ["a.md: A2"], "2026-03-02": ["c.md: C2"]}
    killed, every = 0, 1 if HEAVY else 2
    for step_number in count(1 + random.randrange(every), every):
        home = tmp_path / str(step_number)
        home.mkdir()
        bench = Bench(home)
        for name, text, at in (("a.md", "A", JANUARY), ("b.md", "B", MARCH), ("c.md", "C", MARCH)):
            write(bench, name, text, at)
        bench.ingest(to="by-date")
        change_places(bench)
        if not killed_at(bench, home, step_number):
            break
        killed += 1
        bench.assert_valid()
        held = {text.split(":")[0] for texts in layout(bench).values() for text in texts}
        assert held == {"a.md", "b.md", "c.md"}, "at no moment is a family nowhere"
        bench.ingest(to="by-date", now=LATER)
        bench.assert_valid()
        assert layout(bench) == expected
        assert not list(bench.root.canonical.glob(".*.jsonl")), "all chunks have their own name"
        assert not bench.ingest(to="by-date", now=LATER).written
    assert (killed + 1) * every > 4 * len(COMMIT_STEPS), "two partitions exchange families: one is written twice"


@pytest.mark.parametrize("rule", ["by-type", "by-prefix"])
def test_what_failed_and_is_gone_is_told_no_more(bench: Bench, rule: str) -> None:
    bench.write("a/e.md", "")
    bad, page = bench.write("a/bad.txt", b"\xff" * 9), bench.write("a/x.html", "<p>x</p>")
    other = bench.write("b/bad.md", b"\xff" * 9)
    bench.ingest([bench.docs], kind="auto", to=rule)
    bad.unlink()
    page.unlink()

    def told() -> dict[str, int]:
        found: Counter[str] = Counter()
        for key in bench.root.partition_keys():
            found.update(bench.manifest(key).errors)
        return dict(found)

    assert told() == {"CHUNKING_FAILED": 2, "SOURCE_EMPTY": 1}
    for paths, kind in (([bench.docs / "b"], "auto"), ([bench.docs], "markdown")):
        bench.ingest(paths, kind=kind, to=rule, now=LATER)
        assert told()["CHUNKING_FAILED"] == 2, "who reads a part of it knows nothing of the rest"
    assert bench.ingest([bench.docs], kind="auto", to=rule, now=LATER).written
    assert told() == {"CHUNKING_FAILED": 1, "SOURCE_EMPTY": 1}
    assert not bench.ingest([bench.docs], kind="auto", to=rule, now=LATER).written
    other.unlink()
    bench.ingest([bench.docs], kind="auto", to=rule, now=LATER)
    assert told() == {"SOURCE_EMPTY": 1}
