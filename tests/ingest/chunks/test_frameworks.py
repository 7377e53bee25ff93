"""Chunks as LangChain, LlamaIndex, Haystack and Unstructured save them."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest import codes
from chunksink.ingest.formats.chunks import ChunksFormat
from chunksink.sinks.projection import project_family
from tests.conftest import ROOT
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


def hashes(families: Sequence[Sequence[Record]]) -> list[list[str]]:
    return [[document.document_hash for document in project_family(chunks)] for chunks in families]


def nameless(number: int) -> Record:
    return framework_chunk(number, id=str(uuid4()), metadata={"page": number})


def test_sources_when_only_random_ids_name_them_are_named_by_content(tmp_path: Path) -> None:
    first, again = (read(tmp_path, nameless(0), nameless(1), nameless(1)) for _ in range(2))
    assert [len(chunks) for chunks in first] == [1, 2]
    assert hashes(again) == hashes(first)
    references = [chunks[0]["provenance"]["source_ref"] for chunks in first]
    assert all(re.fullmatch("document/[0-9a-f]{16}", reference) for reference in references)
    edited = read(tmp_path, nameless(0), nameless(2))
    assert hashes(edited)[0] == hashes(first)[0]
    assert edited[1][0]["parent_id"] not in {chunks[0]["parent_id"] for chunks in first}


@pytest.mark.parametrize("has_hash", [True, False])
def test_sources_when_documents_of_llama_index_have_random_ids_are_named_by_content(
    tmp_path: Path, has_hash: bool
) -> None:
    schema = pytest.importorskip("llama_index.core.schema")

    def exported(*texts: str) -> list[list[Record]]:
        nodes = []
        for text in texts:
            related = schema.Document(text=text, metadata={"author": "Ann"}).as_related_node_info()
            for part in text.split():
                node = schema.TextNode(text=part, metadata={"author": "Ann"})
                node.relationships[schema.NodeRelationship.SOURCE] = related
                nodes.append(node)
            related.hash = related.hash if has_hash else None
        return read(tmp_path, *(node.to_json().encode() for node in nodes))

    first, again, edited = exported("a b", "c d"), exported("a b", "c d"), exported("a b", "c e")
    assert [len(chunks) for chunks in first] == ([2, 2] if has_hash else [1] * 4)
    assert hashes(again) == hashes(first)
    parents, others = ({chunks[0]["parent_id"] for chunks in families} for families in (first, edited))
    assert len(parents & others) == len(first) - 1
    assert not any("source_uri" in chunks[0]["provenance"] for chunks in first)


@pytest.mark.parametrize(
    "own_id",
    ["row-7", "9e107d9d372b4826b81d3542a419d6d6", "5ef1d111-7721-5047-8c1a-d825991d7d37", "ab" * 32],
)
def test_sources_when_ids_are_not_random_are_named_by_them(tmp_path: Path, own_id: str) -> None:
    [[chunk]] = read(tmp_path, framework_chunk(id=own_id, metadata={}))
    assert chunk["provenance"]["source_ref"] == own_id
    related = {"relationships": {"1": {"node_id": own_id, "hash": "cd" * 32}}}
    [[chunk]] = read(tmp_path, framework_chunk(id=str(uuid4()), metadata={}, **related))
    assert chunk["provenance"]["source_uri"] == own_id


def test_ids_when_only_metadata_changes_stay(tmp_path: Path) -> None:
    def exported(date: str) -> list[Record]:
        about = {"source": "docs/cat.md", "last_modified_date": date}
        [chunks] = read(
            tmp_path,
            *(framework_chunk(metadata={**about, "page": page}) for page in range(2)),
            framework_chunk(1, metadata=about),
        )
        return chunks

    before, after = exported("2026-01-01"), exported("2026-02-02")
    assert [chunk["chunk_id"] for chunk in after] == [chunk["chunk_id"] for chunk in before]
    assert len({chunk["chunk_id"] for chunk in before}) == 3
    assert {chunk["metadata"]["last_modified_date"] for chunk in after} == {"2026-02-02"}


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
    found = read(tmp_path, framework_chunk(0), tenant="acme")[0]
    found += [read(tmp_path, record)[0][0] for record in (other, framework_chunk(0))]
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
        (framework_chunk(page_content=None), codes.SOURCE_EMPTY),
        ({"lc": 1, "kwargs": framework_chunk(page_content=None)}, codes.SOURCE_EMPTY),
        ({"text": None, "metadata": {"source": "a"}}, codes.SOURCE_EMPTY),
        (framework_chunk(page_content=["x"]), findings.WRONG_TYPE),
        ({"lc": 1, "kwargs": framework_chunk(page_content=7)}, findings.WRONG_TYPE),
        ({"text": {"en": "x"}, "metadata": {"source": "a"}}, findings.WRONG_TYPE),
    ],
)
def test_read_when_a_record_lacks_something_refuses_it(tmp_path: Path, record: Record, code: str) -> None:
    families, [notice] = read_lines(FORMAT, tmp_path, [record])
    assert (families, notice.code) == ([], code)


def test_read_when_one_of_two_texts_is_null_takes_the_other(tmp_path: Path) -> None:
    [[chunk]] = read(tmp_path, {"content": None, "meta": {}, "text": "x", "metadata": {"source": "a.md"}})
    assert (chunk["text"], chunk["provenance"]["source_uri"]) == ("x", "a.md")


def test_exporters_of_the_page_write_chunks_with_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "formats" / "chunks.md").read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(programs) == 2
    for program in programs:
        exec(program, {})
    for name in ("langchain.jsonl", "llamaindex.jsonl"):
        [[chunk]], notices = read_file(FORMAT, tmp_path / "exports" / name)
        assert notices == []
        assert chunk["provenance"]["source_uri"] == "docs/cat.md"
