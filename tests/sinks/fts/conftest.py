"""An open keyword build, its file and a reader."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.fts import FtsBuild, FtsReader, FtsSink


@pytest.fixture
def sink(tmp_path: Path) -> FtsSink:
    return FtsSink(tmp_path / "fts")


@pytest.fixture
def build(sink: FtsSink) -> Iterator[FtsBuild]:
    build = sink.create(marker())
    yield build
    build.close()


@pytest.fixture
def path(sink: FtsSink, build: FtsBuild) -> Path:
    [only] = sink.builds()
    return sink._root / only / "fts.db"


@pytest.fixture
def reader(sink: FtsSink, build: FtsBuild) -> Iterator[FtsReader]:
    reader = sink.reader(sink.builds()[0])
    yield reader
    reader.close()
