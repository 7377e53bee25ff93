"""The embedded Chroma sink, an empty build in it, and a copy of a large one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.sinks.chroma import ChromaBuild, ChromaSink, EmbeddedChromaSink
from chunksink.sinks.conformance.samples import DIMENSIONS, marker
from chunksink.sinks.contract import Marker
from tests.support.chroma import folder
from tests.support.many_families import many_families


@pytest.fixture
def sink(tmp_path: Path) -> EmbeddedChromaSink:
    return EmbeddedChromaSink(tmp_path / "chroma")


@pytest.fixture
def signed() -> Marker:
    return marker()


@pytest.fixture
def build(sink: ChromaSink, signed: Marker) -> Iterator[ChromaBuild]:
    build = sink.create(signed, DIMENSIONS)
    assert isinstance(build, ChromaBuild)
    yield build
    build.close()


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Marker]:
    """A build large enough that Chroma has saved its vectors to a file. It was closed properly."""
    root, signed = tmp_path_factory.mktemp("large"), marker()
    build = EmbeddedChromaSink(root).create(signed, DIMENSIONS)
    build.replace(many_families())
    build.close()
    return root, signed


@pytest.fixture
def signed_large(large: tuple[Path, Marker]) -> Marker:
    return large[1]


@pytest.fixture
def saved(large: tuple[Path, Marker], tmp_path: Path) -> Path:
    """The vector file in a copy of the large build, below the sink's root."""
    shutil.copytree(large[0], tmp_path / "chroma")
    [data] = folder(tmp_path, large[1]).glob("*/data_level0.bin")
    return data
