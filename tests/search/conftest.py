"""The families of a test module in real engines, and a model that loads at once."""

from collections.abc import Iterator

import pytest

from chunksink.embeddings import load
from chunksink.search.legs import Legs
from tests.embeddings.helpers import HashEncoder
from tests.search.support import legs_over


@pytest.fixture(scope="module")
def legs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    """Over what the module calls FAMILIES."""
    with legs_over(tmp_path_factory.mktemp("index"), request.module.FAMILIES) as legs:
        yield legs


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> HashEncoder:
    """The model that made the index, in place of one that takes seconds to load."""
    encoder = HashEncoder(dimension=8)
    monkeypatch.setattr(load, "load_encoder", lambda _name, **_settings: encoder)
    return encoder
