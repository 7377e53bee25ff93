"""Several processes read what one would: the same bytes, in the same order; stopped, they leave nothing behind."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import pytest

from chunksink.producers.errors import IngestRefused
from chunksink.producers.kinds import Kind
from chunksink.producers.produced import Making
from chunksink.producers.report import Progress
from chunksink.workers import worker_processes
from tests.conftest import ROOT
from tests.producers.bench import NOW, Bench
from tests.producers.lines import LineReader, kinds, line
from tests.producers.test_converters import docx


def two_processes(_bytes: int) -> AbstractContextManager[Executor]:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def fill(bench: Bench) -> None:
    for number in range(150):
        bench.write(f"{number:03}.md", f"# {number}\n\n[next]({number + 1}.md) " + "Some words stand here. " * 40)
    bench.write("090.jsonl", line("z", "Z") + line("005.md/a", "A") + "{broken\n" + line("b", ""))
    bench.write("bad.md", b"\xff")
    bench.write("empty.md", "")


def test_two_processes_write_what_one_writes(bench: Bench, tmp_path: Path) -> None:
    fill(bench)
    one: list[Progress] = []
    two: list[Progress] = []
    first = bench.ingest(kind="auto", kinds=kinds(), on_progress=one.append)
    (tmp_path / "again").mkdir()
    again = Bench(tmp_path / "again")
    second = again.ingest(
        [bench.docs], base=bench.docs, kind="auto", kinds=kinds(), workers=two_processes, on_progress=two.append
    )
    assert again.bytes_on_bus() == bench.bytes_on_bus()
    assert first == second
    assert one == two
    columns = ("source_uri", "source_checksum", "status", "error_type", "left_out")
    assert [[row[c] for c in columns] for row in bench.attempts()] == [
        [row[c] for c in columns] for row in again.attempts()
    ]


def test_an_error_in_the_middle_ends_the_processes_and_writes_nothing(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(bench)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def stop(step: Progress) -> None:
        if step.done == 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.ingest(kind="auto", kinds=kinds(), workers=two_processes, on_progress=stop)
    assert not bench.root.path.exists()
    assert not list(tmp_path.glob("chunksink-ingest-*"))
    assert bench.ingest(kind="auto", kinds=kinds(), now=NOW).processed == 151


class EndingReader(LineReader):
    """Ends the process that it runs in, as a machine that lacks memory does."""

    def read(self, path: Path, uri: str, making: Making) -> NoReturn:
        os._exit(9)


def test_a_process_that_was_ended_is_told_and_the_next_run_does_all(bench: Bench) -> None:
    fill(bench)
    ending = {**kinds(), "lines": Kind("lines", (".jsonl",), records=EndingReader)}
    with pytest.raises(IngestRefused, match=r"lack of memory; nothing was written.*--jobs 1"):
        bench.ingest(kind="auto", kinds=ending, workers=lambda size: worker_processes(size, 2))
    assert not bench.root.path.exists()
    assert bench.ingest(kind="auto", kinds=kinds()).processed == 151


def test_a_process_frees_what_parsers_leave_in_cycles(bench: Bench) -> None:
    pytest.importorskip("mammoth")
    for number in range(20):
        bench.write(f"{number}.docx", docx("<w:p><w:r><w:t>Text.</w:t></w:r></w:p>" * 20))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=gc.disable) as pool:
        bench.ingest(kind="docx", workers=lambda _bytes: nullcontext(pool))
        left = pool.submit(gc.collect).result()
    assert left < 1000, "objects that only the collector of cycles frees"


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_ctrl_c_and_sigterm_end_all_processes_in_order(tmp_path: Path, sign: int, code: int) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(400):
        (docs / f"{number}.md").write_text("# T\n\n" + "Some words stand here. " * 2000)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "chunksink", "ingest", "docs", "--jobs", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("chunksink-ingest-*/0")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, sign)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert errors.decode().splitlines()[-1].startswith("Interrupted. Nothing is half done")
    assert b"Traceback" not in errors
    assert not list(tmp_path.glob("chunksink-ingest-*"))
    assert not list((tmp_path / "chunks").rglob("*.jsonl"))
