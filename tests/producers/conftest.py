"""A workbench of its own for each test."""

from pathlib import Path

import pytest

from tests.producers.bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)
