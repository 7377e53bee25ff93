"""Large inputs: flat memory, several processes, and files that fail halfway, all with the same findings."""

import io
import random
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, count
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from chunksink.chunkbus import findings, reader, scan, validation
from chunksink.chunkbus.families import STRETCH_COLUMNS, hash_number
from chunksink.chunkbus.findings import Finding
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.inventory import Inventory
from chunksink.chunkbus.reader import LineBlock, read_blocks
from chunksink.chunkbus.record_checks import CONTRACT
from chunksink.chunkbus.scan import FileRange, scan_block, scan_file, scan_range
from tests.chunkbus import samples
from tests.chunkbus.samples import chunk, codes, line_of, lines_of, put, put_chunks


def test_repeated_ids_when_far_apart_are_found() -> None:
    ids = [f"id-{number}" for number in range(70_000)]
    ids[69_999] = ids[5]
    ids[40_000] = ids[39_999] = ids[7]
    lines = [line_of(chunk(0, chunk_id=name)) + b"\n" for name in ids]
    offsets = array("q", [0, *accumulate(map(len, lines))])
    numbers = array("q", map(hash_number, ids))
    numbers[100] = numbers[60_000]  # a collision: the ids differ
    numbers[200] = numbers[300] = 0  # lines without an id
    with Inventory() as inventory:
        inventory.begin("before")
        inventory.add_ids(numbers[:10], offsets[:10])
        inventory.begin("k")
        inventory.add_ids(numbers[:3], offsets[:3])
        inventory.add_ids(numbers[3:], offsets[3:-1])
        found = [
            (one.line, one.earlier_line, one.chunk_id) for one in inventory.repeated_ids(io.BytesIO(b"".join(lines)))
        ]
    assert found == [(40_000, 8, "id-7"), (40_001, 8, "id-7"), (70_000, 6, "id-5")]


def test_inventory_when_the_disk_is_full_raises_an_error_with_a_remedy() -> None:
    with pytest.raises(OSError, match="make room"), Inventory() as inventory:
        inventory.begin("k")
        inventory._db.execute("pragma max_page_count = 4")
        inventory.add_ids(array("q", range(10_000)), array("q", range(10_000)))


def messy_bus(folder: Path) -> FolderRoot:
    """Three partitions of several blocks each, with every kind of finding spread over them."""
    chance = random.Random(8)
    root = FolderRoot(folder)
    for number, key in enumerate(("a", "b", "c")):
        lines = []
        for index in range(1_500):
            record = chunk(index, uri=f"docs/{number}-{index // 5}.md", text="word " * 300, chunk_count=5)
            match chance.randrange(40):
                case 0 if key != "c":
                    lines.append(b"{broken")
                case 1:
                    lines.append(line_of({**record, "chunk_id": f"chunk-{chance.randrange(1_500)}"}))
                case 2:
                    lines.append(line_of({**record, "hashes": {"text_hash": "odd"}}))
                case 3 if key != "c":
                    lines.append(line_of(record).replace(b'"schema', b'"a"  :1, "a": 2, "schema'))
                case 4:
                    lines.append(line_of({**record, "chunk_count": 1_500}))
                case 5:
                    lines.append(line_of({**record, "document_id": f"document-{index}"}))
                case 6:
                    other = {**record["provenance"], "source_checksum": "b" * 64}
                    lines.append(line_of({**record, "provenance": other}))
                case _:
                    lines.append(line_of(record))
        put_chunks(root, key, b"\n".join(lines) + b"\n")
    return root


@pytest.fixture(scope="module")
def workers() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield pool


def test_validation_when_parallel_reports_the_same_findings_in_order(
    workers: ProcessPoolExecutor, tmp_path: Path
) -> None:
    root = messy_bus(tmp_path)
    alone = samples.validate_all(root)
    assert samples.validate_all(root, workers=workers) == alone
    kinds = set(codes(alone[1]))
    assert kinds >= {
        *(findings.JSON_PARSE, findings.DUPLICATE_IDS, findings.TEXT_HASH_MISMATCH, findings.FAMILY_SPLIT),
        findings.SEVERAL_VERSIONS,
    }
    assert len(alone[1]) > 200


class BreaksAfter(io.FileIO):
    """A file on a disk that cannot be read to its end."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.tell() >= 3 * 2**20:
            raise OSError(5, "Input/output error")
        return super().read(size)


@pytest.mark.parametrize("jobs", [1, 2])
def test_validation_when_the_disk_fails_reports_it_after_the_other_findings(
    jobs: int, workers: ProcessPoolExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [line_of(chunk(index, text="x" * 1_000)) for index in range(4_000)]
    good[10] = b"{"
    data = b"\n".join(good) + b"\n"
    assert len(data) > 4 * 2**20
    root = put(FolderRoot(tmp_path), "k", data)
    whole = data[: 3 * 2**20].count(b"\n")
    monkeypatch.setattr(FolderRoot, "open", lambda root, key: (BreaksAfter(root.chunks_file(key)), None))
    found = samples.validate(root, workers=workers if jobs == 2 else None)
    assert [(finding.code, finding.line) for finding in found] == [
        (findings.MANIFEST_MISSING, None),
        (findings.JSON_PARSE, 11),
        (findings.UNREADABLE, whole + 1),
    ]


def test_validation_when_the_receiver_of_findings_fails_raises_its_error(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "k", b"{\n")
    seen: list[Finding] = []

    def take(finding: Finding) -> None:
        seen.append(finding)
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        validation.Validation(root, on_finding=take).run()
    assert codes(seen) == [findings.JSON_PARSE]


@pytest.fixture
def many_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of 200 lines, each broken in its own way, read in some forty blocks and as many spans."""
    monkeypatch.setattr(reader, "BLOCK_BYTES", 256)
    monkeypatch.setattr(scan, "RANGE_BYTES", 1)
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b'{"n":%d}' % number + b" " * 40 + b"\n" for number in range(200)))
    return path


def reports(path: Path, workers: Executor | None, before: Callable[[], object] = lambda: None) -> list[object]:
    with path.open("rb") as file:
        before()
        found = scan_file(file, read_blocks(file), CONTRACT, workers)
        return [
            (number, line, problem)
            for number, scanned in enumerate(found)
            for line, problems in scanned.problems
            for problem in problems
        ]


def test_scan_when_done_by_workers_reports_the_same_in_order(many_spans: Path, workers: ProcessPoolExecutor) -> None:
    alone = reports(many_spans, None)
    assert len({number for number, _, _ in alone}) > 30  # type: ignore[misc]
    assert reports(many_spans, workers) == alone


def test_scan_keeps_sixteen_workers_busy_at_once(many_spans: Path) -> None:
    together, numbers = Barrier(16, timeout=30), count()

    class Meeting(ThreadPoolExecutor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            def meet() -> Any:
                if next(numbers) < together.parties:
                    together.wait()
                return function(*args, **named)

            return super().submit(meet)

    with Meeting(together.parties) as workers:
        assert reports(many_spans, workers) == reports(many_spans, None)


def test_scan_when_the_file_is_renamed_reads_the_open_file(many_spans: Path, workers: ProcessPoolExecutor) -> None:
    alone = reports(many_spans, None)

    def take_the_name() -> None:
        many_spans.unlink()
        many_spans.write_bytes(b"{}\n" * 10_000)

    assert reports(many_spans, workers, take_the_name) == alone


def test_scan_range_when_the_file_was_replaced_returns_none(many_spans: Path) -> None:
    found = many_spans.stat()
    span = FileRange(str(many_spans), found.st_dev, found.st_ino, 0, 10)
    assert scan_range(span, False) is not None
    assert scan_range(replace(span, inode=found.st_ino + 1), False) is None
    assert scan_range(replace(span, path=f"{many_spans}.gone"), False) is None
    assert scan_range(replace(span, length=10**6), False) is None


def test_scan_when_a_worker_fails_raises_its_error(many_spans: Path) -> None:
    class Failing(Executor):
        def submit(self, *_: object, **__: object) -> Future[Any]:  # type: ignore[override]
            future: Future[Any] = Future()
            future.set_exception(TypeError("a bug"))
            return future

    with pytest.raises(TypeError, match="a bug"):
        reports(many_spans, Failing())


def test_scan_block_counts_lines_from_its_beginning() -> None:
    data = lines_of([chunk(0), chunk(1), chunk(2, uri="docs/b.md")]).rstrip(b"\n")
    scanned = scan_block(LineBlock(1_000, b"\n" + data), CONTRACT)
    assert scanned.lines == 4
    assert scanned.has_refused
    assert [line for line, _ in scanned.problems] == [0]
    assert scanned.ids.tolist() == [0, *(hash_number(f"chunk-{number}") for number in range(3))]
    first = 1_001 + len(lines_of([chunk(0)]))
    assert scanned.offsets.tolist() == [1_000, 1_001, first, first + len(lines_of([chunk(1)]))]
    stretches = [dict(zip(STRETCH_COLUMNS, row, strict=True)) for row in scanned.stretches]
    assert [(stretch["first"], stretch["lines"]) for stretch in stretches] == [(1, 2), (3, 1)]


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path), "a", lines_of([chunk(index) for index in range(9_000)]))
    put(root, "b", b"{\n")
    done: list[int] = []
    samples.validate(root, on_progress=done.append)
    assert sum(done) == sum(root.size_of(key) for key in ("a", "b"))
    assert len(done) > 2


def test_validation_when_a_partition_disappears_reports_it(tmp_path: Path) -> None:
    """When the documents of a split are read again, their partition is rewritten or missing."""
    root = put(FolderRoot(tmp_path), "a", lines_of([chunk(0)]))
    put(root, "b", lines_of([chunk(1)]))
    put(root, "c", b"{\n")

    for change in (
        root.chunks_file("a").unlink,
        lambda: put(root, "a", lines_of([chunk(5, uri="docs/z.md", document_id="z")] * 2)),
    ):
        found: list[Finding] = []

        def take(finding: Finding, change=change, found=found) -> None:  # type: ignore[no-untyped-def]
            if finding.partition == "c":
                change()
            found.append(finding)

        validation.Validation(root, on_finding=take).run()
        assert [(finding.code, finding.partition) for finding in found] == [
            (findings.JSON_PARSE, "c"),
            (findings.FAMILY_SPLIT, "b"),  # as it was read
        ]
        put(root, "a", lines_of([chunk(0)]))
