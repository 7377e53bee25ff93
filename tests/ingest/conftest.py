"""A folder of documents, a bus and a home to ingest with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ingest.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    yield Bench(tmp_path)
