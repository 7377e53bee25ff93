"""Partitions by date, type and prefix: families go where they belong, and move when that changes."""

import os
from itertools import count
from typing import Any

import pytest

from chunksink.chunkbus.errors import InvalidPartitionKey, PartitionLocked
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Manifest
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.ingest.placement import Placement
from tests.chunkbus.faults import Faults
from tests.ingest.bench import Bench

DAY = 86_400


def dated(bench: Bench, name: str, day: int, text: str | None = None) -> None:
    path = bench.write(name, text or f"# {name}\n")
    os.utime(path, (day * DAY, day * DAY))


@pytest.mark.parametrize(
    ("rule", "facts", "key"),
    [
        ("by-date", ("ab" * 32, "md", DAY * 10**9), "1970-01-02"),
        ("by-date", ("ab" * 32, "md", None), "undated"),
        ("by-date", ("ab" * 32, "md", 10**30), "undated"),
        ("by-type", ("ab" * 32, "md", 0), "md"),
        ("by-type", ("ab" * 32, "Some / Type!", 0), "some-type"),
        ("by-type", ("ab" * 32, "/", 0), "other"),
        ("by-prefix", ("ab" * 32, "md", 0), "ab"),
        ("mine", ("ab" * 32, "md", 0), "mine"),
    ],
)
def test_the_partition_follows_from_the_source(rule: str, facts: tuple[str, str, int | None], key: str) -> None:
    assert Placement(rule).key_of(*facts) == key


@pytest.mark.parametrize("name", ["by-dat", "../up", "", "a b"])
def test_a_misspelt_rule_or_key_is_refused(bench: Bench, name: str) -> None:
    bench.write("a.md", "# A\n")
    with pytest.raises(InvalidPartitionKey):
        bench.ingest(partition=name)


def test_by_date_follows_the_time_of_the_file(bench: Bench) -> None:
    dated(bench, "a.md", 1)
    dated(bench, "b.md", 2)
    assert bench.ingest(partition="by-date").partitions == ("1970-01-02", "1970-01-03")
    assert bench.ingest(partition="by-date").written is False
    dated(bench, "a.md", 3, "# Another\n")
    assert bench.ingest(partition="by-date").partitions == ("1970-01-02", "1970-01-04")
    assert [record["text"] for record in bench.records("1970-01-04")] == ["# Another"]
    assert bench.records("1970-01-02") == []


def test_a_family_that_moves_unchanged_keeps_its_rank(bench: Bench) -> None:
    bench.write("a.md", "# A\n")
    bench.ingest(partition="by-type")
    (before,) = bench.records("md")
    bench.ingest(partition="by-prefix")
    (after,) = bench.records()
    assert bench.records("md") == []
    assert after == before


def test_a_named_partition_and_a_rule_leave_each_other_alone(bench: Bench) -> None:
    bench.write("a.md", "# A\n")
    bench.ingest(partition="mine")
    bench.ingest(partition="yours")
    assert [len(bench.records(key)) for key in ("mine", "yours")] == [1, 1]


@pytest.mark.parametrize("rename", [1, 2, 3])
@pytest.mark.parametrize("commit", [0, 1])
@pytest.mark.promise(2)
def test_killed_between_two_partitions_no_family_is_lost_and_the_next_run_converges(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rename: int, commit: int
) -> None:
    class Killed(BaseException):
        pass

    for number in range(6):
        dated(bench, f"{number}.md", number % 2)
    bench.ingest(partition="by-date")
    for number in range(6):
        dated(bench, f"{number}.md", 1 + number % 2)
    dated(bench, "0.md", 5, "# Edited\n")
    commits = count()

    def kill(_: str) -> None:
        raise Killed

    class Killing(PartitionWriter):
        def commit(self, **facts: Any) -> Manifest:
            with monkeypatch.context() as patched:
                if next(commits) == commit:
                    Faults(patched, rename, names=["replace"], act=kill)
                return super().commit(**facts)

    with monkeypatch.context() as patched:
        patched.setattr("chunksink.ingest.write.PartitionWriter", Killing)
        with pytest.raises(Killed):
            bench.ingest(partition="by-date")
    names = {record["provenance"]["source_uri"] for record in bench.records()}
    assert names == {f"docs/{number}.md" for number in range(6)}
    bench.ingest(partition="by-date")
    oracle = bench.fresh()
    oracle.ingest(partition="by-date")
    held = {key: records for key, records in bench.content().items() if records}
    assert held == oracle.content()
    assert bench.ingest(partition="by-date").written is False


def test_a_partition_that_another_process_writes_meanwhile_is_not_overwritten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", "# A\n")
    bench.ingest()
    other = bench.fresh()
    other.bus, other.docs = bench.bus, bench.folder / "other"
    other.write("b.md", "# B\n")
    real = PartitionWriter

    def late(bus: BusRoot, key: str) -> PartitionWriter:
        monkeypatch.setattr("chunksink.ingest.write.PartitionWriter", real)
        other.ingest()
        return real(bus, key)

    monkeypatch.setattr("chunksink.ingest.write.PartitionWriter", late)
    bench.write("a.md", "# Another\n")
    with pytest.raises(PartitionLocked):
        bench.ingest()
    assert set(bench.texts()) == {"docs/a.md", "other/b.md"}
    bench.ingest()
    assert bench.texts() == {"docs/a.md": ["# Another"], "other/b.md": ["# B"]}
