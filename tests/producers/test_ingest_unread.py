"""Files that are not opened again, since size, times and inode stand for their checksum; and when they do not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chunksink.chunkbus.signature import Signature
from chunksink.producers import reading, skip
from tests.producers.bench import LATER, Bench
from tests.producers.lines import kinds, line


@contextmanager
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the sources that are opened meanwhile."""
    names: list[str] = []
    with monkeypatch.context() as patched:
        for module, name in ((reading, "read_source"), (reading, "digest_source"), (skip, "digest_source")):
            real = getattr(module, name)

            def note(path: Path | str, real=real) -> object:  # type: ignore[no-untyped-def]
                names.append(Path(path).name)
                return real(path)

            patched.setattr(module, name, note)
        yield names


def test_unchanged_files_are_not_opened(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.write("a.md", "# A")
    bench.write("empty.md", "\n")
    bench.write("x.jsonl", line("x", "X"))
    bench.grow_old()
    bench.ingest(kind="auto", kinds=kinds())
    with opened(monkeypatch) as names:
        report = bench.ingest(kind="auto", kinds=kinds(), now=LATER)
        assert names == []
        assert (report.written, report.unchanged, report.empty) == (False, 2, 1)
        checked = bench.ingest(kind="auto", kinds=kinds(), every_file=True, now=LATER)
        assert sorted(set(names)) == ["a.md", "empty.md", "x.jsonl"]
        assert not checked.written


def test_what_needs_no_reading_is_settled_before_the_next_source_is_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.md", "b.md", "c.md", "d.md"):
        bench.write(name, f"# {name}")
    bench.grow_old()
    bench.ingest()
    bench.write("c.md", "# changed")
    bench.grow_old()
    with opened(monkeypatch) as names:
        bench.ingest(now=LATER, on_progress=lambda step: names.append(f"{step.source_uri} settled"))
    assert names == ["a.md settled", "b.md settled", "c.md", "c.md settled", "d.md settled"]


def test_a_file_written_just_before_it_was_looked_at_is_opened_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The racily clean problem: another write in the same tick would have left the same size and times."""
    path = bench.write("a.md", "# A")
    bench.ingest(clock=lambda: path.stat().st_mtime_ns + 1_000_000)
    with opened(monkeypatch) as names:
        bench.ingest(now=LATER)
        assert names == ["a.md"]


@pytest.mark.promise(10)
def test_an_edit_that_keeps_size_and_modification_time_is_seen(bench: Bench) -> None:
    path = bench.write("a.md", "# A")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    bench.grow_old()
    bench.ingest()
    path.write_text("# B")
    os.utime(path, ns=times)
    assert bench.ingest(now=LATER).processed == 1, "ctime tells"
    other = bench.write("new.md", "# C")
    os.utime(other, ns=times)
    other.replace(path)
    assert bench.ingest(now=LATER).processed == 1, "so does the inode"
    assert bench.texts("a.md") == ["# C"]


@pytest.mark.parametrize("nanoseconds", [2**63, 2**64 - 1, 2**65, -(2**62)])
def test_times_and_inodes_beyond_a_database_are_kept_all_the_same(bench: Bench, nanoseconds: int) -> None:
    """Of the year 2300, say: what broke the whole run after it had written the chunks."""
    path = bench.write("a.md", "# A")
    bench.write("b.md", "# B")
    os.utime(path, ns=(0, nanoseconds))
    assert bench.ingest(to="by-date").processed == 2
    assert not bench.ingest(to="by-date", now=LATER).written
    far = Signature(1, nanoseconds, nanoseconds, 2**63 + 5)
    bench.memory.note_checksums([("x", far, 2**62, "0" * 64)])


def test_a_touched_file_is_read_and_left_as_it_is(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("a.md", "# A")
    bench.grow_old()
    bench.ingest()
    os.utime(path)
    bench.grow_old()
    with opened(monkeypatch) as names:
        assert not bench.ingest(now=LATER).written
        assert names == ["a.md"]
        assert not bench.ingest(now=LATER).written
        assert names == ["a.md"], "what it read is noted"


def test_a_partition_that_somebody_changed_is_read_again(bench: Bench) -> None:
    bench.write("a.md", "# A")
    bench.grow_old()
    bench.ingest()
    chunks = bench.root.chunks_file("markdown")
    before, times = chunks.read_bytes(), (chunks.stat().st_atime_ns, chunks.stat().st_mtime_ns)
    chunks.write_bytes(before.replace(b"# A", b"# X"))
    os.utime(chunks, ns=times)
    with pytest.raises(Exception, match=r"partition markdown .* is not valid"):
        bench.ingest(now=LATER)


def test_two_buses_share_a_memory_without_mixing(bench: Bench, tmp_path: Path) -> None:
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.producers.ingest import Options, ingest
    from chunksink.producers.memory import Memory

    bench.write("a.md", "# A")
    bench.grow_old()
    bench.ingest()
    other = BusRoot(tmp_path / "other")
    with Memory(tmp_path / "ingest.db", other) as memory:
        report = ingest([bench.docs], other, bench.ledger, memory, Options(to="markdown", base=bench.docs))
    assert report.processed == 1
    assert other.chunks_file("markdown").exists()
    assert not bench.ingest(now=LATER).written
