"""The sink of plain files, and an empty build in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.sinks.contract import Marker
from chunksink.sinks.jsonl import JsonlBuild, JsonlSink


@pytest.fixture
def sink(tmp_path: Path) -> JsonlSink:
    return JsonlSink(tmp_path / "jsonl")


@pytest.fixture
def build(sink: JsonlSink) -> Iterator[JsonlBuild]:
    build = sink.create(Marker("home", "b1", 1))
    yield build
    build.close()


@pytest.fixture
def folder(tmp_path: Path, build: JsonlBuild) -> Path:
    return tmp_path / "jsonl" / "b1"
