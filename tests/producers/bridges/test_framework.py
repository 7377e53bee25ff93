"""Chunks as LangChain, LlamaIndex, Haystack and Unstructured save them."""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.producers import errors
from chunksink.producers.bridges import BridgeReader, Form, detect
from chunksink.producers.errors import RecordRefused
from chunksink.producers.produced import Making
from chunksink.sinks.projection import project_family
from tests.producers.bridges.samples import framework_chunk
from tests.producers.reading import MAKING, read_all, read_records, refusals, write_lines

ELEMENT = {
    "type": "NarrativeText",
    "element_id": "5ef1d1117721f0472c1ad825991d7d37",
    "text": "The gauge is emptied at noon.",
    "metadata": {
        "filename": "gauge.pdf",
        "file_directory": "manuals/",
        "page_number": 3,
        "parent_id": "0f",
        "languages": ["eng"],
    },
}
HAYSTACK = {
    "id": "ab" * 32,
    "content": "The gauge is emptied at noon.",
    "meta": {"file_path": "manuals/gauge.txt", "split_id": 2},
    "score": None,
    "embedding": [0.5],
    "sparse_embedding": {"indices": [1], "values": [0.5]},
}


def read(tmp_path: Path, *records: Record | bytes, making: Making = MAKING) -> list[list[Record]]:
    produced, left = read_records(BridgeReader(), tmp_path, records, making)
    assert left == []
    return [list(family.records) for family in produced]


def seen(records: list[Record]) -> dict[str, Any]:
    return project_family(records)[0].fields()


def test_a_document_of_langchain(tmp_path: Path) -> None:
    documents = pytest.importorskip("langchain_core.documents")
    about = {"source": "docs/cat.md", "title": "Cats", "page_label": "12", "Header 2": "At night", "Header 1": "Cats"}
    line = documents.Document(page_content="The cat sleeps.", metadata=about).model_dump_json().encode()
    [[chunk]] = read(tmp_path, line)
    fields = seen([chunk])
    expected = {
        "text": "The cat sleeps.",
        "source_uri": "docs/cat.md",
        "title": "Cats",
        "headings": ("Cats", "At night"),
        "page_start": 12,
    }
    assert {name: fields.get(name) for name in expected} == expected
    assert chunk["metadata"] == about


def test_what_langchain_dumps_is_the_same(tmp_path: Path) -> None:
    documents, load = pytest.importorskip("langchain_core.documents"), pytest.importorskip("langchain_core.load")
    document = documents.Document(page_content="The cat sleeps.", metadata={"source": "docs/cat.md"}, id="7")
    [plain] = read(tmp_path, document.model_dump_json().encode())
    assert read(tmp_path, load.dumps(document).encode()) == [plain]
    (tmp_path / "all.json").write_text(load.dumps([document], pretty=True))
    [family], left = read_all(BridgeReader(), tmp_path / "all.json")
    assert (list(family.records), left) == (plain, [])


def test_a_node_of_llama_index_is_of_the_document_that_it_comes_from(tmp_path: Path) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [schema.TextNode(text=f"Part {number}.", metadata={"author": "Ann"}) for number in range(2)]
    for node in nodes:
        related = schema.RelatedNodeInfo(node_id="doc-1")
        node.relationships[schema.NodeRelationship.SOURCE] = related
    nodes.append(schema.TextNode(text="Of a file.", metadata={"file_path": "a/b.txt"}))
    nodes.append(schema.TextNode(id_="alone", text="Of nothing."))
    families = read(tmp_path, *(node.to_json().encode() for node in nodes))
    assert [[chunk["text"] for chunk in family] for family in families] == [
        ["Part 0.", "Part 1."],
        ["Of a file."],
        ["Of nothing."],
    ]
    names = [family[0]["provenance"].get("source_uri") for family in families]
    assert names == ["doc-1", "a/b.txt", None]
    assert families[2][0]["provenance"]["source_ref"] == "alone"
    assert seen(families[0])["authors"] == ("Ann",)


def test_a_document_of_haystack(tmp_path: Path) -> None:
    [[chunk]] = read(tmp_path, HAYSTACK)
    assert (chunk["text"], chunk["metadata"], chunk["id"]) == (HAYSTACK["content"], HAYSTACK["meta"], HAYSTACK["id"])
    assert seen([chunk])["source_uri"] == "manuals/gauge.txt"
    assert not {"meta", "embedding", "sparse_embedding"} & chunk.keys()
    [[both]] = read(tmp_path, {**HAYSTACK, "metadata": {"owner": "us"}})
    assert (both["metadata"], both["meta"]) == ({"owner": "us"}, HAYSTACK["meta"])


def test_elements_of_unstructured_come_as_an_array(tmp_path: Path) -> None:
    path = tmp_path / "elements.json"
    path.write_text(json.dumps([ELEMENT, {**ELEMENT, "element_id": "2", "text": "Then it is wiped."}], indent=4))
    [family], left = read_all(BridgeReader(), path)
    assert left == []
    fields = [document.fields() for document in project_family(family.records)]
    assert [(one["text"], one["source_uri"], one["page_start"]) for one in fields] == [
        (ELEMENT["text"], "manuals/gauge.pdf", 3),
        ("Then it is wiped.", "manuals/gauge.pdf", 3),
    ]


def test_ids_hold_while_a_framework_makes_new_ones_only_for_what_has_none(tmp_path: Path) -> None:
    """An id of its own tells equal texts apart; without one the same text at the same place is the same chunk."""
    once, again = (read(tmp_path, framework_chunk(0), framework_chunk(1)) for _ in range(2))
    assert once == again
    [[_, moved]] = read(tmp_path, framework_chunk(5), framework_chunk(1))
    assert moved["chunk_id"] == once[0][1]["chunk_id"]
    produced, left = read_records(BridgeReader(), tmp_path, [framework_chunk(0), framework_chunk(0)])
    assert refusals(left) == [(1, errors.RECORD_SUPERSEDED, False)]
    assert len(produced[0].records) == 1
    [twice] = read(tmp_path, framework_chunk(0, id="a"), framework_chunk(0, id="b"))
    assert len({chunk["chunk_id"] for chunk in twice}) == 2


def test_an_id_that_all_of_a_document_share_loses_none(tmp_path: Path) -> None:
    [chunks] = read(tmp_path, *(framework_chunk(number, id="doc1") for number in range(4)))
    assert len({chunk["chunk_id"] for chunk in chunks}) == 4


def test_numbers_are_ids_too_and_a_page_may_be_called_anything(tmp_path: Path) -> None:
    records = [framework_chunk(number, id=number, metadata={"page_label": label}) for number, label in enumerate("0x")]
    families = read(tmp_path, *records)
    assert [family[0]["provenance"]["source_ref"] for family in families] == ["0", "1"]
    assert [seen(family).get("page_start") for family in families] == [0, None]


@pytest.mark.parametrize("besides", [None, {}, {"a": 1}])
def test_a_tenant_is_seen_in_whatever_the_table_is_called(tmp_path: Path, besides: Any) -> None:
    record = {"content": "Cats sleep.", "metadata": besides, "meta": {"file_path": "cat.md", "tenant_id": "acme"}}
    [[chunk]] = read(tmp_path, record)
    assert chunk["tenant_id"] == "acme"


def test_what_is_null_is_not_there(tmp_path: Path) -> None:
    about = {"source": "cat.md", "Header 1": "Cats", "page_label": "3"}
    [family] = read(tmp_path, framework_chunk(0, metadata=about, headings_path=None, span=None))
    assert (seen(family)["headings"], seen(family)["page_start"]) == (("Cats",), 3)


def test_tenants_share_no_ids(tmp_path: Path) -> None:
    making = Making(MAKING.created_at, MAKING.producer, tenant="acme")
    told = framework_chunk(0, metadata={"source": "docs/cat.md", "tenant_id": "other"})
    found = [read(tmp_path, record, making=making)[0][0] for record in (framework_chunk(0), told)]
    found += read(tmp_path, framework_chunk(0))[0]
    assert [chunk.get("tenant_id") for chunk in found] == ["acme", "other", None]
    assert len({chunk["chunk_id"] for chunk in found}) == len({chunk["document_id"] for chunk in found}) == 3


def test_what_others_put_around_what_langchain_wraps_stays(tmp_path: Path) -> None:
    document = {"page_content": "The cat sleeps.", "metadata": {"source": "a.md"}, "type": "Document"}
    wrapped = {"lc": 1, "type": "constructor", "id": ["langchain", "schema"], "kwargs": document, "batch": "of May"}
    [[chunk]] = read(tmp_path, wrapped)
    assert (chunk["text"], chunk["batch"], "lc" in chunk) == ("The cat sleeps.", "of May", False)


_NO_SOURCE = "names no source: its `{}` has none of source, source_uri, file_path"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"page_content": "x"}, "it would be one with a `text` beside a table `metadata` that names its `source`"),
        ({"page_content": 5, "metadata": {"source": "a"}}, "has a `metadata`, but its `page_content` is no text"),
        ({"text": None, "metadata": {"source": "a"}}, "has a `metadata`, but its `text` is null"),
        ({"text": "x", "metadata": {"colour": "red"}}, _NO_SOURCE.format("metadata")),
        ({"lc": 1, "kwargs": {"text": "x", "metadata": {}}}, _NO_SOURCE.format("metadata")),
        ({"content": "x", "metadata": {"source": "a"}}, "it would be one with a `text`"),
        ({"id": 5, "content": "an answer of some server", "meta": {"total": 3}}, _NO_SOURCE.format("meta")),
        ({"text": "x", "metadata": {"source": "a"}, "source": {"path": "b"}}, "it would be one with a `text`"),
    ],
)
def test_what_is_none_of_them_is_told_what_it_lacks(record: Record, reason: str) -> None:
    with pytest.raises(RecordRefused) as refused:
        detect(record)
    assert reason in str(refused.value)


def test_one_that_names_no_source_is_refused_by_name(tmp_path: Path) -> None:
    assert detect({"text": "x", "metadata": {"source": "a"}}) is Form.FRAMEWORK
    path = write_lines(tmp_path / "r.jsonl", [framework_chunk(metadata={}), framework_chunk(page_content=" ")])
    produced, left = read_all(BridgeReader(), path)
    assert produced == []
    assert refusals(left) == [(1, findings.FIELD_MISSING, True), (2, errors.SOURCE_EMPTY, False)]
    assert _NO_SOURCE.format("metadata") in left[0].reason
