"""Folders with one JSON file a record: which of them are one source, whether that is said or guessed."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.producers.bench import LATER, Bench
from tests.producers.ir.samples import ir_record
from tests.producers.parsed.samples import parsed


def put(bench: Bench, name: str, record: dict[str, Any]) -> None:
    bench.write(name, orjson.dumps(record, option=orjson.OPT_INDENT_2))


def part(index: int, path: str = "/one.pdf", count: int = 2) -> dict[str, Any]:
    return ir_record(path, f"Part {index} of {path}.", index=index, count=count)


def origins(bench: Bench) -> dict[str, str]:
    return {
        record["provenance"]["source_uri"]: record["provenance"]["inputs"][0]["source_uri"]
        for record in bench.records()
        if record["provenance"]["inputs"]
    }


@pytest.mark.parametrize("kind", ["auto", "ir"])
def test_a_family_may_lie_in_several_files(bench: Bench, kind: str) -> None:
    put(bench, "x/a.json", part(0))
    put(bench, "x/b.json", part(1))
    put(bench, "x/deep/er/c.json", part(0, "/two.pdf"))
    put(bench, "x/deep/d.json", part(1, "/two.pdf"))
    report = bench.ingest([bench.docs / "x"], kind=kind)
    assert (report.failures, report.sources, report.chunks) == ((), 1, 4)
    assert origins(bench) == {"/one.pdf": "x/", "/two.pdf": "x/"}
    bench.assert_valid()


def test_what_was_said_and_what_is_guessed_is_the_same(bench: Bench) -> None:
    put(bench, "x/a.json", part(0))
    put(bench, "x/b.json", part(1))
    bench.ingest([bench.docs / "x"], kind="ir")
    before = bench.bytes_on_bus()
    report = bench.ingest([bench.docs / "x"], kind="auto", now=LATER)
    assert (report.written, report.unchanged) == (False, 1)
    assert bench.bytes_on_bus() == before


def test_folders_of_two_forms_are_a_source_each(bench: Bench) -> None:
    put(bench, "ir/1/a.json", part(0))
    put(bench, "ir/2/b.json", part(1))
    put(bench, "documents/a.json", parsed("p/a.md"))
    put(bench, "index.json", {"chunks": 2})
    report = bench.ingest(kind="auto")
    assert (report.failures, report.left_out, report.sources) == ((), {"RECORD_FORM_UNKNOWN": 1}, 2)
    assert origins(bench) == {"/one.pdf": "ir/", "p/a.md": "documents/"}


def test_files_of_two_forms_in_one_folder_stand_for_themselves(bench: Bench) -> None:
    put(bench, "x/a.json", ir_record("/one.pdf"))
    put(bench, "x/b.json", parsed("p/b.md"))
    bench.write("x/c.json", orjson.dumps(parsed("p/c.md")) + b"\n" + orjson.dumps(parsed("p/d.md")))
    assert bench.ingest(kind="auto").failures == ()
    assert origins(bench) == {"/one.pdf": "x/a.json", "p/b.md": "x/b.json", "p/c.md": "x/c.json", "p/d.md": "x/c.json"}


def test_a_file_of_lines_beside_records_stands_for_itself(bench: Bench) -> None:
    put(bench, "x/a.json", ir_record("/one.pdf"))
    bench.write("x/b.json", orjson.dumps(ir_record("/two.pdf")) + b"\n" + orjson.dumps(ir_record("/three.pdf")))
    assert bench.ingest(kind="auto").failures == ()
    assert sorted(origins(bench)) == ["/one.pdf", "/three.pdf", "/two.pdf"]


def put_with_others(bench: Bench) -> list[Path]:
    put(bench, "x/1/a.json", part(0))
    put(bench, "x/2/b.json", part(1))
    put(bench, "x/2/package.json", {"name": "x"})
    put(bench, "x/package.json", {"name": "x"})
    return [bench.docs / "x"]


def test_what_is_no_record_is_told_and_parts_nothing(bench: Bench) -> None:
    paths = put_with_others(bench)
    report = bench.ingest(paths, kind="auto")
    assert (report.failures, report.chunks) == ((), 2)
    assert report.left_out == {"RECORD_FORM_UNKNOWN": 2}
    again = bench.ingest(paths, kind="auto", now=LATER)
    assert (again.written, again.left_out) == (False, report.left_out)


def test_what_is_no_record_fails_in_a_folder_that_is_said_to_hold_records(bench: Bench) -> None:
    report = bench.ingest(put_with_others(bench), kind="ir")
    assert {failure.source_uri for failure in report.failures} == {"x/package.json", "x/2/package.json"}
    assert report.chunks == 2


@pytest.mark.promise(6)
@pytest.mark.parametrize("name", ["x/1/a.json", "x/b.json"])
def test_a_record_of_a_folder_that_is_damaged_keeps_its_chunks(bench: Bench, name: str) -> None:
    put(bench, "x/1/a.json", ir_record("/one.pdf"))
    put(bench, "x/b.json", ir_record("/two.pdf"))
    put(bench, "x/3/c.json", ir_record("/three.pdf"))
    bench.ingest([bench.docs / "x"], kind="auto")
    for data in (b'{"half": ', b""):
        bench.write(name, data)
        report = bench.ingest([bench.docs / "x"], kind="auto", prune=True, now=LATER)
        assert [(failure.source_uri, failure.code) for failure in report.failures] == [
            (name, "SCHEMA_INVALID:json_parse")
        ]
        assert len(bench.records()) == 3


@pytest.mark.promise(6)
def test_a_folder_whose_records_are_all_damaged_is_still_known(bench: Bench) -> None:
    put(bench, "x/a.json", ir_record("/one.pdf"))
    bench.ingest([bench.docs / "x"], kind="auto")
    bench.write("x/a.json", b'{"half": ')
    report = bench.ingest([bench.docs / "x"], kind="auto", prune=True, now=LATER)
    assert [failure.source_uri for failure in report.failures] == ["x/a.json"]
    assert len(bench.records()) == 1


def test_broken_json_of_others_does_not_fail(bench: Bench) -> None:
    put(bench, "x/data/a.json", ir_record("/one.pdf"))
    bench.write("x/web/tsconfig.json", "// said\n{}")
    report = bench.ingest([bench.docs / "x"], kind="auto")
    assert (report.failures, report.left_out) == ((), {"RECORD_FORM_UNKNOWN": 1})
    assert origins(bench) == {"/one.pdf": "x/data/"}


def test_documents_of_a_folder_are_numbered_in_one_order(bench: Bench) -> None:
    for name in ("a", "b", "z/c"):
        document = parsed(f"many/{name}.md")
        del document["doc_id"]
        put(bench, f"many/{name}.json", document)
    bench.ingest([bench.docs / "many"], kind="auto")
    numbered = {
        record["provenance"]["source_uri"]: (record["metadata"]["stable_id"], record["metadata"]["doc_id"])
        for record in bench.records()
        if record["provenance"]["inputs"]
    }
    assert numbered == {
        "many/a.md": ("chunk_0001", "doc_0001"),
        "many/b.md": ("chunk_0002", "doc_0002"),
        "many/z/c.md": ("chunk_0003", "doc_0003"),
    }


def test_what_another_path_reaches_is_not_read_again_with_its_folder(bench: Bench) -> None:
    put(bench, "x/a.json", ir_record("/one.pdf"))
    put(bench, "x/sub/b.json", ir_record("/two.pdf"))
    for kind in ("auto", "ir"):
        report = bench.ingest([bench.docs / "x" / "sub", bench.docs / "x"], base=None, kind=kind)
        assert (report.sources, report.left_out) == (2, {})
        assert origins(bench) == {"/one.pdf": "x/a.json", "/two.pdf": "sub/"}


@pytest.mark.parametrize("kind", ["auto", "ir"])
def test_two_folders_of_one_name_lose_nothing(bench: Bench, kind: str) -> None:
    put(bench, "x/docs/a.json", ir_record("/one.pdf"))
    put(bench, "y/docs/b.json", ir_record("/two.pdf"))
    report = bench.ingest([bench.docs / "x" / "docs", bench.docs / "y" / "docs"], base=None, kind=kind)
    assert report.failures == ()
    assert origins(bench) == {"/one.pdf": "docs/a.json", "/two.pdf": "docs/b.json"}


@pytest.mark.parametrize("paths", [["x", "x/sub"], ["x/sub", "x"]])
def test_a_folder_within_a_folder_is_read_once(bench: Bench, paths: list[str]) -> None:
    put(bench, "x/a.json", part(0))
    put(bench, "x/sub/b.json", part(1))
    report = bench.ingest([bench.docs / path for path in paths], kind="auto")
    assert (report.failures, report.sources, report.left_out) == ((), 1, {})


@pytest.mark.parametrize("kind", ["auto", "ir"])
def test_a_folder_of_records_that_another_run_passes_over_has_not_vanished(bench: Bench, kind: str) -> None:
    put(bench, "a.json", ir_record("/one.pdf"))
    bench.write("a.md", "# A")
    bench.ingest(kind=kind)
    assert origins(bench)["/one.pdf"] == "./"
    assert bench.ingest(kind="markdown", prune=True, now=LATER).pruned == 0
