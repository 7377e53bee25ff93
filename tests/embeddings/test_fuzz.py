"""With any bytes of the file changed, every call returns or raises one of our errors, and no vector is wrong.

CHUNKSINK_FUZZED_FILES sets the number of files. A quick run takes 300.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.embeddings.maintenance import drop, unneeded_rows, verify
from chunksink.embeddings.references import embedding_ref
from chunksink.embeddings.stats import lengths, model_limits, show, stats
from tests.conftest import sampled
from tests.embeddings.helpers import HashEncoder, filled, numbered, text_hash

FILES = int(os.environ.get("CHUNKSINK_FUZZED_FILES", "300"))
PARTS = 4
ROWS = 60
PAGE = 8192
TEXTS = numbered(ROWS)
KEYS = [bytes.fromhex(text_hash(text)[7:]) for text in TEXTS]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("fuzz") / "vectors.db"
    filled(path, HashEncoder(dimension=384, max_length=4), ROWS)
    return path.read_bytes()


@pytest.mark.parametrize("part", sampled(range(PARTS)))
def test_changed_bytes_cause_no_traceback_and_no_wrong_vector(original: bytes, tmp_path: Path, part: int) -> None:
    served = 0
    for seed in range(part, FILES, PARTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        (folder / "vectors.db").write_bytes(changed(original, random.Random(seed)))
        served += exercise(folder, replace_damaged=seed % 3 > 0)
    assert served > ROWS * FILES / PARTS / 2, "most rows of most files are sound"


def changed(content: bytes, randomly: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(randomly.randint(1, 5)):
        place = randomly.randrange(len(content))
        if randomly.random() < 0.3:  # vectors are most of the file; everything else matters more
            place = place // PAGE * PAGE + randomly.randrange(40)
        elif randomly.random() < 0.3:
            place = randomly.choice([page for page in range(PAGE * 8) if content[page]])
        damaged[place] = randomly.randrange(256)
    return bytes(damaged)


def exercise(folder: Path, *, replace_damaged: bool) -> int:
    encoder, served = HashEncoder(dimension=384), 0
    try:
        cache = VectorCache.open(folder / "vectors.db", replace_damaged=replace_damaged)
    except EmbeddingsError:
        return served

    def look_up() -> None:
        nonlocal served
        found = cache.lookup(encoder.fingerprint, KEYS, dimension=384)
        served = len(found.positions)
        for position, vector in zip(found.positions, found.vectors, strict=True):
            assert (vector == encoder.vector(TEXTS[position])).all()

    def tell_lengths() -> None:
        assert set(lengths(cache, encoder.fingerprint, KEYS).values()) <= {0}

    def show_all() -> None:
        for text in TEXTS:
            shown = show(cache, embedding_ref(encoder.fingerprint, text_hash(text)))
            assert shown is None or (shown.vector == encoder.vector(text)).all()

    calls: list[Callable[[], object]] = [
        look_up,
        lambda: stats(cache),
        lambda: model_limits(cache, encoder.fingerprint),
        tell_lengths,
        show_all,
        lambda: verify(cache),
        lambda: drop(cache, unneeded_rows(cache, keys=[key.hex() for key in KEYS[:40]], fingerprints=None)),
        lambda: verify(cache, repair=True),
        look_up,
        lambda: cache.put(encoder.info, KEYS, encoder.encode(TEXTS), replaced=KEYS),
        look_up,
    ]
    with cache:
        for call in calls:
            try:
                call()
            except EmbeddingsError:
                continue
        assert verify(cache).is_sound, "it was repaired"
        assert served == ROWS
    return served
