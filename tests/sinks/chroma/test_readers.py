"""Readers of an embedded build, beside a writer in another process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sinks.chroma import ChromaBuild, ChromaSink
from sinks.conformance.samples import DIMENSIONS, family, vector
from sinks.errors import Transient
from sinks.reader import Filter
from sinks.sink import Marker
from tests.conftest import ROOT

WRITER = """
import sys
from pathlib import Path
from sinks.chroma import ChromaSink
from sinks.conformance.samples import family

build = ChromaSink.embedded(Path(sys.argv[1])).open(sys.argv[2])
for line in sys.stdin:
    version, *texts = line.split()
    build.replace([family("a", texts, version=version)])
    build.flush()
    print("done", flush=True)
build.close()
"""


def test_a_reader_goes_on_while_another_process_replaces(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    """Its vectors are those of when it opened: answers that show it make it open again, and no family is absent."""
    families = [family("a", ["first", "second"]), *(family(f"f{number}", ["x"]) for number in range(20))]
    build.replace(families)
    build.close()
    reader = sink.reader(signed.build_id)
    command = [sys.executable, "-c", WRITER, str(sink._place._root), signed.build_id]  # type: ignore[union-attr]
    ours = [Filter("parent_id", any_of=(families[0].parent_id,))]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin and writer.stdout
        for version, texts in (("2", ["third"]), ("3", ["fourth", "fifth"])):
            writer.stdin.write(" ".join([version, *texts]) + "\n")
            writer.stdin.flush()
            assert writer.stdout.readline() == "done\n"
            now = {document.id for document in family("a", texts, version=version).documents}
            assert {hit.id for hit in reader.query(vector("first"), 5, ours)} == now
            assert now <= {hit.id for hit in reader.query(vector(texts[0]), 30)}
            assert {document.id for document in reader.get(sorted(now))} == now
        writer.stdin.close()
        assert writer.wait(30) == 0
    reader.close()


def test_a_reader_refreshes_under_the_guard_and_keeps_its_view_if_it_cannot(tmp_path: Path, signed: Marker) -> None:
    held_: list[str] = []

    @contextmanager
    def guard() -> Iterator[None]:
        if held_ == ["locked"]:
            raise Transient("somebody writes")
        held_.append("taken")
        yield

    sink = ChromaSink.embedded(tmp_path / "chroma", guard=guard)
    build = sink.create(signed, DIMENSIONS)
    build.replace([family("a", ["x"])])
    reader = sink.reader(signed.build_id)
    reader.refresh()
    assert held_ == ["taken", "taken"]
    held_[:] = ["locked"]
    with pytest.raises(Transient, match="somebody writes"):
        reader.refresh()
    assert len(reader.query(vector("x"), 1)) == 1
    reader.close()
    build.close()


def test_many_refreshes_leave_nothing_open(sink: ChromaSink, build: ChromaBuild, signed: Marker) -> None:
    from sinks.chroma import clients

    build.replace([family("a", ["x"])])
    readers = [sink.reader(signed.build_id) for _ in range(3)]
    for _ in range(5):
        for reader in readers:
            reader.refresh()
            assert reader.query(vector("x"), 1)
    for reader in readers:
        reader.close()
    build.close()
    assert not any(clients._spellings.get(folder_) for folder_ in clients._spellings)
    assert not clients._writers
