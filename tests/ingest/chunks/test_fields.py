"""Every field of a foreign chunk is in its canonical chunk, at the place documented in docs/formats/chunks.md."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_text
from chunksink.ingest.formats.chunks import ChunksFormat
from chunksink.sinks.projection import project_family
from tests.conftest import examples
from tests.ingest.chunks.samples import (
    canonical_chunk,
    framework_chunk,
    markdown_chunk,
    recorder_chunk,
    structural_chunk,
)
from tests.ingest.reading import is_at, json_values, leaves, read_lines

FORMAT = ChunksFormat()
SAMPLES = {
    "markdown": markdown_chunk,
    "structural": structural_chunk,
    "recorder": recorder_chunk,
    "framework": framework_chunk,
}
PLACES: dict[str, dict[str, str]] = {
    "markdown": {
        "chunk_text": "text",
        "ordinal": "chunk_index",
        "chunk_id": "chunk_id",
        "document_id": "document_id",
        "tenant_id": "tenant_id",
    },
    "structural": {"text": "text", "index": "chunk_index"},
    "recorder": {"text": "text", "chunk_id": "chunk_id"},
    "framework": {"page_content": "text"},
}
CONTRACT = [*canonical_chunk(), "source", "span", "metadata", "canonicalization", "hashes", "producer", "tokens"]
CONTRACT += ["quality", "embedding_ref", "parent_id", "chunk_count", "original", "index", "ordinal"]

names = st.text(max_size=6) | st.sampled_from(["a.b", "", "pages", "page_start", "source_uri", "source_type", "inputs"])
values = json_values(names)
texts = st.text(min_size=1).map(lambda text: f"x{text}x")
Folders = pytest.TempPathFactory


@pytest.mark.parametrize("form", list(SAMPLES))
@settings(max_examples=examples(100))
@given(st.dictionaries(names | st.sampled_from(CONTRACT), values, max_size=6), texts)
def test_read_when_fields_are_odd_loses_none(
    tmp_path_factory: Folders, form: str, more: dict[str, Any], text: str
) -> None:
    record = {**{name: value for name, value in more.items() if name != "schema_version"}, **SAMPLES[form]()}
    name = next(name for name, place in PLACES[form].items() if place == "text")
    record[name] = text
    [[chunk]], notices = read_lines(FORMAT, tmp_path_factory.getbasetemp(), [orjson.dumps(record)])
    assert notices == []
    for path, value in leaves(record):
        is_kept = is_at(chunk, path, value) or is_at(chunk, ("original", *path), value)
        if path[0] == name:
            assert chunk["text"] == canonical_text(value)
        elif path[0] in PLACES[form]:
            assert chunk[PLACES[form][str(path[0])]] == value
        elif path in (("provenance",), ("tenant_id",)) and not value:
            assert chunk.get(path[0]) != value, "an empty one is ignored"
        else:
            assert is_kept, path
    project_family([chunk])


@given(st.dictionaries(st.text(max_size=6).filter(lambda name: name not in CONTRACT), values, max_size=5))
def test_canonical_chunk_when_fields_are_odd_has_the_same_bytes(tmp_path_factory: Folders, more: Any) -> None:
    record = {**more, **canonical_chunk()}
    [[chunk]], notices = read_lines(FORMAT, tmp_path_factory.getbasetemp(), [orjson.dumps(record)])
    assert notices == []
    assert orjson.dumps(chunk) == orjson.dumps(record)


@pytest.mark.parametrize("form", list(SAMPLES))
def test_read_when_a_chunk_has_a_vector_drops_only_the_vector(tmp_path_factory: Folders, form: str) -> None:
    record = SAMPLES[form](embedding={"model": "m", "vector": [0.5, 0.25]})
    [[chunk]], _ = read_lines(FORMAT, tmp_path_factory.getbasetemp(), [record])
    assert chunk["embedding"] == {"model": "m"}
