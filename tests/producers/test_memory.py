"""What is remembered of files of records: kept by an upgrade, and never believed where another process replaced it."""

from pathlib import Path

import pytest
from sqlite_utils import Database

from chunksink.producers import memory as module
from chunksink.producers.memory import Gave, Memory
from tests.producers.bench import LATER, Bench
from tests.producers.lines import kinds, line

_GAVE = """
insert into gave (bus, source_uri, tenant, families, reading)
select bus, source_uri, tenant, coalesce((select json_group_array(family) from
  (select family from new.given where gave = id order by place)), '[]'), reading from new.gave
"""


def as_before(old: Path, new: Path) -> None:
    """The same memory in the form of earlier releases: what a file gave is one list."""
    db = Database(old)
    module._migrations.apply(db, stop_before="add_given")
    db.attach("new", new)
    for table in ("checksums", "partitions", "families", "places"):
        columns = ", ".join(db.table(table).columns_dict)
        db.execute(f"insert into {table} select {columns} from new.{table}")
    db.execute(_GAVE)
    db.conn.commit()
    db.close()


def test_what_an_earlier_release_remembered_is_kept(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("1.jsonl", line("b", "B") + line("a", "A"))
    bench.write("2.jsonl", line("a", "A2"))
    bench.write("3.jsonl", "")
    bench.ingest(kind="lines", kinds=kinds())
    before, gave = bench.bytes_on_bus(), bench.memory.gave("1.jsonl", None)
    assert gave is not None
    given = sorted(bench.memory.families_given(gave))
    as_before(tmp_path / "old.db", bench.memory.path)
    bench.memory = Memory(tmp_path / "old.db", bench.root)
    gave = bench.memory.gave("1.jsonl", None)
    assert gave is not None
    assert (gave.families, sorted(bench.memory.families_given(gave))) == (2, given)
    monkeypatch.setattr("tests.producers.lines.LineReader.read", lambda *_: pytest.fail("read again"))
    report = bench.ingest(kind="lines", kinds=kinds(), prune=True, now=LATER)
    assert (report.written, report.unchanged, report.empty, bench.bytes_on_bus()) == (False, 2, 1, before)


@pytest.mark.promise(6)
def test_what_another_process_notes_meanwhile_withdraws_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("x.jsonl", line("a", "A") + line("b", "B"))
    bench.ingest(kind="lines", kinds=kinds())
    real = Memory.gave

    def replaced(self: Memory, uri: str, tenant: str | None) -> Gave | None:
        gave = real(self, uri, tenant)
        if gave is not None:
            self.note_gave(tenant, [(uri, gave.reading, [])])
        return gave

    monkeypatch.setattr(Memory, "gave", replaced)
    report = bench.ingest(kind="lines", kinds=kinds(), prune=True, now=LATER)
    assert (report.written, report.unchanged, report.pruned, report.documents) == (False, 1, 0, 2)
