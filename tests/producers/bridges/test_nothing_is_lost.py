"""Every field of a bridged record is found again in its chunk, where docs/seams.md says, however odd it is."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus.canonical import canonical_text
from chunksink.producers.bridges import BridgeReader
from chunksink.sinks.projection import project_family
from tests.producers.bridges.samples import (
    canonical_chunk,
    framework_chunk,
    markdown_chunk,
    recorder_chunk,
    structural_chunk,
)
from tests.producers.reading import at, leaves, read_records

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
    "canonical": {},
}
SAMPLES = {
    "markdown": markdown_chunk,
    "structural": structural_chunk,
    "recorder": recorder_chunk,
    "framework": framework_chunk,
    "canonical": canonical_chunk,
}
CONTRACT = [*canonical_chunk(), "source", "span", "metadata", "canonicalization", "hashes", "producer", "tokens"]
CONTRACT += ["quality", "embedding_ref", "parent_id", "chunk_count", "original", "index", "ordinal"]

names = st.text(max_size=6) | st.sampled_from(["a.b", "", "pages", "page_start", "source_uri", "source_type", "inputs"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
texts = st.text(min_size=1).map(lambda text: f"x{text}x")


@pytest.mark.parametrize("form", ["markdown", "structural", "recorder", "framework"])
@given(st.dictionaries(names | st.sampled_from(CONTRACT), values, max_size=6), texts)
def test_no_field_is_lost(tmp_path_factory: pytest.TempPathFactory, form: str, more: dict[str, Any], text: str) -> None:
    sample = SAMPLES[form]()
    record = {**{name: value for name, value in more.items() if name != "schema_version"}, **sample}
    name = next(name for name, place in PLACES[form].items() if place == "text")
    record[name] = text
    produced, left = read_records(BridgeReader(), tmp_path_factory.mktemp("b"), [orjson.dumps(record)])
    assert left == []
    (chunk,) = produced[0].records
    for path, value in leaves(record):
        if path[0] == name:
            assert chunk["text"] == canonical_text(value)
        elif path[0] in PLACES[form]:
            assert chunk[PLACES[form][str(path[0])]] == value
        elif path[0] == "provenance" and len(path) > 1:
            assert any(_stands(chunk, way, value) for way in (path, ("original", *path)))
        elif path[0] in ("provenance", "tenant_id") and not value:
            assert chunk.get(path[0]) != value  # nothing was said
        else:
            assert _stands(chunk, path, value) or _stands(chunk, ("original", *path), value), path
    project_family([chunk])


def _stands(chunk: Any, path: tuple[str | int, ...], value: Any) -> bool:
    try:
        found = at(chunk, path)
    except (KeyError, TypeError, IndexError):
        return False
    return type(found) is type(value) and bool(found == value)


@given(st.dictionaries(st.text(max_size=6).filter(lambda name: name not in CONTRACT), values, max_size=5))
def test_a_canonical_chunk_is_the_same_object(tmp_path_factory: pytest.TempPathFactory, more: dict[str, Any]) -> None:
    record = {**more, **canonical_chunk()}
    produced, left = read_records(BridgeReader(), tmp_path_factory.mktemp("b"), [orjson.dumps(record)])
    assert left == []
    assert orjson.dumps(produced[0].records[0]) == orjson.dumps(record)


def test_a_number_that_no_two_languages_read_alike_is_kept_as_its_digits(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    line = orjson.dumps(structural_chunk())[:-1] + b',"binary_hash":18446744073709551615,"safe":9007199254740991}'
    produced, _ = read_records(BridgeReader(), tmp_path_factory.mktemp("b"), [line])
    chunk = produced[0].records[0]
    assert (chunk["binary_hash"], chunk["safe"]) == ("18446744073709551615", 9007199254740991)


@pytest.mark.parametrize("sample", [markdown_chunk, structural_chunk, recorder_chunk, framework_chunk])
def test_vectors_alone_do_not_travel(tmp_path_factory: pytest.TempPathFactory, sample: Any) -> None:
    record = sample(embedding={"model": "m", "vector": [0.5, 0.25]})
    produced, _ = read_records(BridgeReader(), tmp_path_factory.mktemp("b"), [record])
    assert produced[0].records[0]["embedding"] == {"model": "m"}
