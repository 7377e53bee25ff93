"""The bus in a real bucket."""

from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot


@pytest.fixture
def root(bucket: str, tmp_path: Path) -> BusRoot:
    return BusRoot.at(bucket, tmp_path / "home")
