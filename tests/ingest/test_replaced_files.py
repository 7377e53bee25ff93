"""Sources that several files contain, and files that another file replaces."""

import pytest

from chunksink.ingest.codes import SOURCE_IN_ANOTHER_FILE
from tests.ingest.bench import Bench
from tests.ingest.chunks.samples import canonical_chunk

CHUNK = {"page_content": "The cat.", "metadata": {"source": "https://example.org/cat"}}


def test_of_two_files_with_one_family_the_last_by_name_counts(bench: Bench) -> None:
    bench.write("1.jsonl", [CHUNK])
    bench.write("2.jsonl", [{**CHUNK, "page_content": "The newer cat."}])
    report = bench.ingest()
    assert bench.texts() == {"https://example.org/cat": ["The newer cat."]}
    assert report.left_out == {SOURCE_IN_ANOTHER_FILE: 1}
    # Either file may be edited later.
    bench.write("1.jsonl", [{**CHUNK, "page_content": "The oldest cat."}])
    for report in (bench.ingest(), bench.ingest("1.jsonl", checksum=True)):
        assert bench.texts() == {"https://example.org/cat": ["The newer cat."]}
        assert report.left_out == {SOURCE_IN_ANOTHER_FILE: 1}


def test_a_family_is_taken_from_another_file_if_its_own_no_longer_exists(bench: Bench) -> None:
    newer = bench.write("2.jsonl", [{**CHUNK, "page_content": "The newer cat."}])
    bench.ingest("2.jsonl")
    aside = newer.rename(bench.folder / "aside")
    bench.write("1.jsonl", [CHUNK])
    assert bench.ingest("1.jsonl").left_out == {}
    assert bench.texts() == {"https://example.org/cat": ["The cat."]}
    aside.rename(newer)
    assert bench.ingest("2.jsonl").processed == 1, "the unchanged file was read again"
    assert bench.texts() == {"https://example.org/cat": ["The newer cat."]}
    newer.unlink()
    assert bench.ingest("1.jsonl").processed == 1, "the unchanged file was read again"
    assert bench.texts() == {"https://example.org/cat": ["The cat."]}
    assert bench.ingest("1.jsonl").processed == 0


def test_a_family_comes_back_from_the_other_file_when_the_later_one_goes(bench: Bench) -> None:
    bench.write("1.jsonl", [CHUNK])
    bench.write("2.jsonl", [{**CHUNK, "page_content": "The newer cat."}])
    bench.ingest()
    bench.remove("2.jsonl")
    report = bench.ingest(prune=True)
    assert bench.texts() == {"https://example.org/cat": ["The cat."]}
    assert report.processed == 1, "the unchanged file was read again for it"


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_source_with_equal_chunks_in_two_files_stays_until_both_lack_it(bench: Bench, is_gone: bool) -> None:
    shared, own = canonical_chunk(), {"page_content": "The dog.", "metadata": {"source": "https://example.org/dog"}}
    bench.write("1.jsonl", [shared])
    bench.write("2.jsonl", [shared, own])
    bench.ingest()
    sources = set(bench.texts())
    if is_gone:
        bench.remove("2.jsonl")
        sources.discard("https://example.org/dog")
    else:
        bench.write("2.jsonl", [own])
    for _ in range(2):
        bench.ingest(prune=True)
        assert set(bench.texts()) == sources
    assert bench.ingest(prune=True).processed == 0, "no file is read again in every run"
    bench.write("1.jsonl", [own] if is_gone else [CHUNK])
    bench.ingest(prune=True)
    assert len(bench.texts()) == (1 if is_gone else 2)
