"""The vector cache on the command line, with the real model, a real kill and a real endpoint."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.embeddings.precision import choose_precision
from chunksink.embeddings.references import embedding_ref, raw_key
from chunksink.exits import Exit
from chunksink.rebuild.state import State
from tests.conftest import HEAVY
from tests.embeddings.endpoint import KEY, serve
from tests.embeddings.helpers import tamper
from tests.journey.support import chunksink, write
from tests.support.bus import source

LONG = source("long.md", "The lighthouse keeper writes every evening into the log. " * 60)
SHORT = source("short.md", "Pump the bilge at dawn.", "Oil the lamp at dusk.")
TWIN = source("twin.md", "Oil the lamp at dusk.")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An endpoint computes the vectors, because a model takes seconds to load."""
    folder = tmp_path_factory.mktemp("rebuilt")
    write(folder / "chunks", "logs", LONG, SHORT, TWIN)
    with serve() as server:
        settings = {"endpoint": server.url, "model": "hash-model", "max_length": 1000}
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        (folder / "chunksink.toml").write_text("".join(lines))
        ended = chunksink(folder, "rebuild")
        assert ended.code == Exit.OK
        (folder / "output.txt").write_text(ended.out)
        yield folder


@pytest.fixture
def served(rebuilt: Path, tmp_path: Path) -> Path:
    """A copy of `rebuilt`, with a running endpoint."""
    return Path(shutil.copytree(rebuilt, tmp_path, symlinks=True, dirs_exist_ok=True))


def test_long_texts_are_not_cut_silently_and_repeats_are_counted(served: Path) -> None:
    output = (served / "output.txt").read_text()
    assert "1 chunk longer than the model's maximum: embedded whole, in parts; " in output
    assert "1 text in more than one source, as in " in output
    report = chunksink(served, "rebuild", "--json").json
    assert (report["embeddings"]["long_chunks"], report["embeddings"]["long_texts"]) == (1, "windows")
    repeated = report["repeated_texts"]
    assert (repeated["texts"], repeated["chunks"]) == (1, 2)
    assert sorted(repeated["examples"][0]) == sorted([SHORT[1]["chunk_id"], TWIN[0]["chunk_id"]])
    listed = chunksink(served, "cache", "long-texts", "--json").json
    assert [chunk["chunk_id"] for chunk in listed["chunks"]] == [LONG[0]["chunk_id"]]
    assert listed["chunks"][0]["length"] > listed["max_length"] == 1000


def test_damaged_vector_is_computed_again_and_reported(served: Path) -> None:
    text_hash = raw_key(SHORT[0]["hashes"]["text_hash"])
    cache = served / ".chunksink" / "vectors.db"
    tamper(cache, "UPDATE vector SET vector = zeroblob(64) WHERE text_hash = ?", text_hash)
    ended = chunksink(served, "rebuild")
    assert (ended.code, "1 computed" in ended.out) == (Exit.OK, True)
    assert "1 damaged vector in the cache computed again" in ended.err


@pytest.mark.skipif(not HEAVY, reason="the model is loaded four times; CHUNKSINK_SOAK_HEAVY")
def test_automatic_precision_is_fixed_for_the_build(tmp_path: Path) -> None:
    folder = tmp_path
    write(folder / "chunks", "logs", LONG, SHORT, TWIN)
    assert chunksink(folder, "rebuild").code == Exit.OK
    report = chunksink(folder, "rebuild", "--json").json
    taken = choose_precision("auto", "cpu")
    assert report["embeddings"]["precision"] == taken
    assert report["embeddings"]["runtime"] in ("openvino", "sentence-transformers")
    with State.existing(folder / ".chunksink") as state:
        assert state.live().encoder.precision == taken
    ref = embedding_ref(report["embeddings"]["fingerprint"], SHORT[0]["hashes"]["text_hash"])
    assert chunksink(folder, "cache", "show", ref, "--json").json["precision"] == taken
    # A request for float32 does not accept a bfloat16 vector; every request accepts a float32 one.
    again = chunksink(folder, "rebuild", "--precision", "float32", "--json").json["embeddings"]
    assert (again["computed"], again["cached"]) == ((3, 1) if taken == "bfloat16" else (0, 4))
    for precision in ("auto", "bfloat16"):
        after = chunksink(folder, "rebuild", "--precision", precision, "--json").json["embeddings"]
        assert (after["computed"], after["cached"], after["precision"] in (taken, precision)) == (0, 4, True)


def test_queries_use_the_model_of_the_index_despite_the_configuration(served: Path) -> None:
    (served / "chunksink.toml").unlink()
    found = chunksink(served, "search", "Oil the lamp at dusk.", "--json", CHUNKSINK_MODEL="no/such-model")
    assert (found.code, found.json["unavailable"]) == (Exit.OK, {})
    assert found.json["hits"][0]["ranks"] == {"keyword": 1, "semantic": 1}
    wrong = chunksink(served, "rebuild", CHUNKSINK_MODEL="no/such-model")
    assert (wrong.code, "package" in wrong.err) == (Exit.USAGE, True)


def test_endpoint_computes_and_its_key_stays_secret(tmp_path: Path) -> None:
    folder = tmp_path
    write(folder / "chunks", "logs", LONG, SHORT, TWIN)
    with serve() as server:
        settings = {
            "CHUNKSINK_ENDPOINT": server.url,
            "CHUNKSINK_MODEL": "hash-model",
            "CHUNKSINK_ENDPOINT_KEY_VARIABLE": "CANARY",
            "CHUNKSINK_MAX_LENGTH": "1000",
            "CHUNKSINK_LONG_TEXTS": "truncate",
            "CANARY": KEY,
        }
        rebuilt = chunksink(folder, "rebuild", "--json", **settings)
        assert (rebuilt.code, rebuilt.json["embeddings"]["computed"]) == (Exit.OK, 3)
        assert (rebuilt.json["embeddings"]["long_chunks"], rebuilt.json["embeddings"]["long_texts"]) == (1, "truncate")
        assert set(server.keys) == {f"Bearer {KEY}"}
        before = len(server.requests)
        # The index knows its endpoint. Only the key must be configured.
        found = chunksink(folder, "search", "Oil the lamp at dusk.", "--json", CANARY=KEY)
        assert (found.code, found.json["hits"][0]["ranks"]["semantic"]) == (Exit.OK, 1)
        assert len(server.requests) > before
        keyless = chunksink(folder, "search", "Oil the lamp", "--json")
        assert keyless.code == Exit.ENGINE
        assert "variable CANARY " in str(keyless.json["unavailable"])
    assert KEY not in "".join(each.out + each.err for each in (rebuilt, found, keyless))
    for file in folder.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
