"""Numbers and order of a file's documents: folder lineage, then path, then index, whatever the order of the lines."""

import random
from pathlib import Path

import orjson
import pytest

from chunksink.sinks.projection import project_family
from tests.ingest.parsed.samples import heading, paragraph, parsed, read_documents, sentences
from tests.ingest.reading import families, names, notices


def test_order_and_numbers_follow_lineage_then_path_then_index(tmp_path: Path) -> None:
    paths = ["b.md", "a/z.md", "a/b/c.md", "a-b/x.md", "a/b.md", "a.md", "a/b/a.md", "é/a.md"]
    documents = [parsed(name, heading("H"), paragraph("P."), heading("I"), paragraph("Q.")) for name in paths]
    for document in documents:
        del document["doc_id"]
    items = read_documents(tmp_path, documents)
    assert names(items) == ["a.md", "b.md", "a/b.md", "a/z.md", "a/b/a.md", "a/b/c.md", "a-b/x.md", "é/a.md"]
    chunks = [chunk for chunks in families(items) for chunk in chunks]
    assert [chunk["metadata"]["stable_id"] for chunk in chunks] == [f"chunk_{n:04d}" for n in range(1, 17)]
    assert [chunk["metadata"]["doc_id"] for chunk in chunks[::2]] == [f"doc_{n:04d}" for n in range(1, 9)]
    assert [chunk["metadata"]["neighbors"] for chunk in chunks[2:4]] == [["chunk_0004"], ["chunk_0003"]]


@pytest.mark.promise(1)
def test_order_of_the_lines_changes_no_byte(tmp_path: Path) -> None:
    documents = [parsed(f"{n % 3}/{n}.md", heading("H"), paragraph(sentences(60, n))) for n in range(12)]
    outputs = set()
    for seed in range(4):
        random.Random(seed).shuffle(documents)
        items = read_documents(tmp_path, documents)
        assert notices(items) == []
        outputs.add(orjson.dumps(families(items)))
    assert len(outputs) == 1


def test_numbers_shift_with_other_documents_but_ids_and_hashes_do_not(tmp_path: Path) -> None:
    document = parsed("b.md", heading("H"), paragraph(sentences(100)))
    before = families(read_documents(tmp_path, [document]))[0]
    after = families(read_documents(tmp_path, [parsed("a.md"), document]))[1]
    assert before[0]["metadata"]["stable_id"] != after[0]["metadata"]["stable_id"]
    assert [chunk["chunk_id"] for chunk in before] == [chunk["chunk_id"] for chunk in after]
    assert [chunk["hashes"] for chunk in before] == [chunk["hashes"] for chunk in after]
    assert project_family(before) == project_family(after)
