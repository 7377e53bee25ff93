"""Chunks as LangChain, LlamaIndex, Haystack and Unstructured save them."""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.chunks import ChunksFormat
from chunksink.sinks.projection import project_family
from tests.ingest.chunks.samples import framework_chunk
from tests.ingest.reading import codes_of, fields_of, read_file, read_lines

FORMAT = ChunksFormat()
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


def read(folder: Path, *records: Record | bytes, tenant: str | None = None) -> list[list[Record]]:
    families, notices = read_lines(FORMAT, folder, records, tenant)
    assert notices == []
    return families


def test_langchain_document_when_projected_has_headings_and_page(tmp_path: Path) -> None:
    documents = pytest.importorskip("langchain_core.documents")
    about = {"source": "docs/cat.md", "title": "Cats", "page_label": "12", "Header 2": "At night", "Header 1": "Cats"}
    line = documents.Document(page_content="The cat sleeps.", metadata=about).model_dump_json().encode()
    [[chunk]] = read(tmp_path, line)
    fields = fields_of([chunk])
    expected = {
        "text": "The cat sleeps.",
        "source_uri": "docs/cat.md",
        "title": "Cats",
        "headings": ("Cats", "At night"),
        "page_start": 12,
    }
    assert {name: fields.get(name) for name in expected} == expected
    assert chunk["metadata"] == about


def test_langchain_document_when_dumped_is_unwrapped(tmp_path: Path) -> None:
    documents, load = pytest.importorskip("langchain_core.documents"), pytest.importorskip("langchain_core.load")
    document = documents.Document(page_content="The cat sleeps.", metadata={"source": "docs/cat.md"}, id="7")
    [plain] = read(tmp_path, document.model_dump_json().encode())
    assert read(tmp_path, load.dumps(document).encode()) == [plain]
    [[chunk]] = read(tmp_path, {**json.loads(load.dumps(document)), "batch": "of May"})
    assert (chunk["batch"], "lc" in chunk) == ("of May", False)
    (tmp_path / "all.json").write_text(load.dumps([document], pretty=True))
    [family], notices = read_file(FORMAT, tmp_path / "all.json")
    assert [chunk["chunk_id"] for chunk in family] == [chunk["chunk_id"] for chunk in plain]
    assert notices == []


def test_llama_index_node_when_it_has_a_source_node_belongs_to_it(tmp_path: Path) -> None:
    schema = pytest.importorskip("llama_index.core.schema")
    nodes = [schema.TextNode(text=f"Part {number}.", metadata={"author": "Ann"}) for number in range(2)]
    for node in nodes:
        node.relationships[schema.NodeRelationship.SOURCE] = schema.RelatedNodeInfo(node_id="doc-1")
    nodes.append(schema.TextNode(text="Of a file.", metadata={"file_path": "a/b.txt"}))
    nodes.append(schema.TextNode(id_="alone", text="Of nothing."))
    families = read(tmp_path, *(node.to_json().encode() for node in nodes))
    texts = [[chunk["text"] for chunk in chunks] for chunks in families]
    assert texts == [["Part 0.", "Part 1."], ["Of a file."], ["Of nothing."]]
    assert [chunks[0]["provenance"].get("source_uri") for chunks in families] == ["doc-1", "a/b.txt", None]
    assert families[2][0]["provenance"]["source_ref"] == "alone"
    assert fields_of(families[0])["authors"] == ("Ann",)


def test_haystack_document_when_read_keeps_its_table_as_metadata(tmp_path: Path) -> None:
    [[chunk]] = read(tmp_path, HAYSTACK)
    assert (chunk["text"], chunk["metadata"], chunk["id"]) == (HAYSTACK["content"], HAYSTACK["meta"], HAYSTACK["id"])
    assert fields_of([chunk])["source_uri"] == "manuals/gauge.txt"
    assert not {"meta", "embedding", "sparse_embedding"} & chunk.keys()
    [[both]] = read(tmp_path, {**HAYSTACK, "metadata": {"owner": "us"}})
    assert (both["metadata"], both["meta"]) == ({"owner": "us"}, HAYSTACK["meta"])


def test_unstructured_elements_when_in_an_array_are_of_one_source(tmp_path: Path) -> None:
    path = tmp_path / "elements.json"
    path.write_text(json.dumps([ELEMENT, {**ELEMENT, "element_id": "2", "text": "Then it is wiped."}], indent=4))
    [family], notices = read_file(FORMAT, path)
    assert notices == []
    fields = [document.as_dict() for document in project_family(family)]
    assert [(one["text"], one["source_uri"], one["page_start"]) for one in fields] == [
        (ELEMENT["text"], "manuals/gauge.pdf", 3),
        ("Then it is wiped.", "manuals/gauge.pdf", 3),
    ]


def test_ids_when_records_have_none_follow_from_their_content(tmp_path: Path) -> None:
    once, again = (read(tmp_path, framework_chunk(0), framework_chunk(1)) for _ in range(2))
    assert once == again
    [[_, moved]] = read(tmp_path, framework_chunk(5), framework_chunk(1))
    assert moved["chunk_id"] == once[0][1]["chunk_id"]
    families, notices = read_lines(FORMAT, tmp_path, [framework_chunk(0), framework_chunk(0)])
    assert codes_of(notices) == [(1, codes.RECORD_SUPERSEDED, False)]
    assert len(families[0]) == 1


@pytest.mark.parametrize(
    "records",
    [
        [framework_chunk(0, id="a"), framework_chunk(0, id="b")],
        [framework_chunk(0, id="all"), framework_chunk(1, id="all")],
    ],
)
def test_ids_when_texts_or_ids_are_equal_differ(tmp_path: Path, records: list[Record]) -> None:
    [chunks] = read(tmp_path, *records)
    assert len({chunk["chunk_id"] for chunk in chunks}) == 2


def test_documents_when_the_export_has_other_ids_are_the_same(tmp_path: Path) -> None:
    def exported(*ids: str) -> list[str]:
        [family] = read(tmp_path, *(framework_chunk(id=id) for id in ids), framework_chunk(1))
        return [document.document_hash for document in project_family(family)]

    first = exported("a", "b", "c")
    assert len(set(first)) == 4
    assert exported("x", "a", "z") == first


def test_ids_and_page_labels_when_they_are_odd_are_accepted(tmp_path: Path) -> None:
    records = [framework_chunk(number, id=number, metadata={"page_label": label}) for number, label in enumerate("0x")]
    families = read(tmp_path, *records)
    assert [chunks[0]["provenance"]["source_ref"] for chunks in families] == ["0", "1"]
    assert [fields_of(chunks).get("page_start") for chunks in families] == [0, None]


@pytest.mark.parametrize("besides", [None, {}, {"a": 1}])
def test_tenant_when_in_any_table_is_found(tmp_path: Path, besides: Any) -> None:
    record = {"content": "Cats sleep.", "metadata": besides, "meta": {"file_path": "cat.md", "tenant_id": "acme"}}
    [[chunk]] = read(tmp_path, record)
    assert chunk["tenant_id"] == "acme"


@pytest.mark.promise(11)
def test_ids_when_tenants_differ_differ(tmp_path: Path) -> None:
    other = framework_chunk(0, metadata={"source": "docs/cat.md", "tenant_id": "other"})
    found = [read(tmp_path, record, tenant="acme")[0][0] for record in (framework_chunk(0), other)]
    found += read(tmp_path, framework_chunk(0))[0]
    assert [chunk.get("tenant_id") for chunk in found] == ["acme", "other", None]
    assert len({chunk["chunk_id"] for chunk in found}) == len({chunk["document_id"] for chunk in found}) == 3


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ({"page_content": "x"}, codes.RECORD_FORM_UNKNOWN),
        ({"text": "x", "metadata": {"colour": "red"}}, codes.RECORD_FORM_UNKNOWN),
        ({"lc": 1, "kwargs": {"text": "x", "metadata": {}}}, codes.RECORD_FORM_UNKNOWN),
        ({"text": "x", "metadata": {"source": "a"}, "source": {}}, codes.RECORD_FORM_UNKNOWN),
        (framework_chunk(metadata={}), findings.FIELD_MISSING),
        (framework_chunk(page_content=" "), codes.SOURCE_EMPTY),
    ],
)
def test_read_when_a_record_lacks_something_refuses_it(tmp_path: Path, record: Record, code: str) -> None:
    families, [notice] = read_lines(FORMAT, tmp_path, [record])
    assert (families, notice.code) == ([], code)
