"""Legs over real engines with the families of a test module."""

from collections.abc import Iterator

import pytest

from chunksink.search.legs import Legs
from tests.search.support import legs_over


@pytest.fixture(scope="module")
def legs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Legs over the `FAMILIES` of the module."""
    with legs_over(tmp_path_factory.mktemp("index"), request.module.FAMILIES) as legs:
        yield legs
