"""The families of a test module in real engines."""

from collections.abc import Iterator

import pytest

from chunksink.search.legs import Legs
from tests.search.support import legs_over


@pytest.fixture(scope="module")
def legs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Over what the module calls FAMILIES."""
    with legs_over(tmp_path_factory.mktemp("index"), request.module.FAMILIES) as legs:
        yield legs
