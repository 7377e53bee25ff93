"""What the command line reports about vectors of a real endpoint."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from chunksink.embeddings.references import raw_key
from tests.embeddings.endpoint import serve
from tests.embeddings.helpers import tamper
from tests.journey.support import chunksink, write
from tests.support.bus import source

LONG = source("long.md", "The lighthouse keeper writes every evening into the log. " * 60)
SHORT = source("short.md", "Pump the bilge at dawn.", "Oil the lamp at dusk.")
TWIN = source("twin.md", "Oil the lamp at dusk.")


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("rebuilt")
    write(folder / "chunks", "logs", LONG, SHORT, TWIN)
    with serve() as server:
        settings = {"endpoint": server.url, "model": "hash-model", "max_length": 1000}
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        (folder / "chunksink.toml").write_text("".join(lines))
        assert chunksink(folder, "rebuild").code == Exit.OK
        yield folder


def test_long_and_repeated_texts_are_reported(rebuilt: Path) -> None:
    report = chunksink(rebuilt, "rebuild", "--json").json
    assert (report["embeddings"]["long_chunks"], report["embeddings"]["long_texts"]) == (1, "windows")
    repeated = report["repeated_texts"]
    assert (repeated["texts"], repeated["chunks"]) == (1, 2)
    assert sorted(repeated["examples"][0]) == sorted([SHORT[1]["chunk_id"], TWIN[0]["chunk_id"]])


def test_damaged_vector_is_computed_again_and_reported(rebuilt: Path) -> None:
    text_hash = raw_key(SHORT[0]["hashes"]["text_hash"])
    cache = rebuilt / ".chunksink" / "vectors.db"
    tamper(cache, "UPDATE vector SET vector = zeroblob(64) WHERE text_hash = ?", text_hash)
    ended = chunksink(rebuilt, "rebuild")
    assert (ended.code, "1 computed" in ended.out) == (Exit.OK, True)
    assert "1 damaged vector in the cache computed again" in ended.err


def test_queries_use_the_endpoint_of_the_index_despite_the_configuration(rebuilt: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(rebuilt, tmp_path, symlinks=True, dirs_exist_ok=True))
    (folder / "chunksink.toml").unlink()
    found = chunksink(folder, "search", "Oil the lamp at dusk.", "--json", CHUNKSINK_MODEL="no/such-model")
    assert (found.code, found.json["unavailable"]) == (Exit.OK, {})
    assert found.json["hits"][0]["ranks"] == {"keyword": 1, "semantic": 1}
