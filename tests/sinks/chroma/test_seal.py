"""A build that was proved sound is not proved again at every look: that takes a process each time."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sinks.chroma import ChromaSink, seal
from sinks.sink import Marker
from tests.search.support import DIMENSIONS, family, meaning


@pytest.fixture
def sink(tmp_path: Path) -> ChromaSink:
    """Fewer documents than Chroma saves by itself."""
    sink = ChromaSink.embedded(tmp_path)
    build = sink.create(Marker("home", "b", 1), DIMENSIONS)
    build.replace([family(f"{number}.md", f"a cat {number}") for number in range(20)])
    build.flush()
    build.close()
    return sink


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    calls: list[object] = []
    real = seal.subprocess.run

    def run(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        return real(*arguments, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(seal.subprocess, "run", run)
    return calls


def look(sink: ChromaSink) -> None:
    reader = sink.reader("b")
    assert len(reader.query(meaning("cat"), 5)) == 5
    reader.close()


def test_a_readers_own_call_breaks_no_seal(sink: ChromaSink, probed: list[object], tmp_path: Path) -> None:
    before = seal._files(tmp_path / "b")
    for _ in range(3):
        look(sink)
    assert probed == []
    assert seal._files(tmp_path / "b") != before, "Chroma has not written: nothing was tested here"


def test_what_was_proved_is_sealed(sink: ChromaSink, probed: list[object], tmp_path: Path) -> None:
    look(sink)
    (tmp_path / "b" / seal.FILE).unlink()
    for _ in range(3):
        look(sink)
    assert len(probed) == 1


def test_somebody_elses_change_is_proved_also_after_many_looks(
    sink: ChromaSink, probed: list[object], tmp_path: Path
) -> None:
    """A call of ours must not seal what another has done to the files before it."""
    look(sink)
    reader = sink.reader("b")
    file = next((tmp_path / "b").glob("*/data_level0.bin"))
    shutil.copy(file, tmp_path / "aside")
    file.write_bytes(file.read_bytes())  # another time
    assert len(reader.query(meaning("cat"), 5)) == 5
    reader.close()
    assert probed == []
    look(sink)
    assert len(probed) == 1
