"""A run with a tenant writes only into that tenant, whatever the files contain."""

import pytest

from chunksink.ingest.codes import TENANT_MISMATCH
from tests.ingest.bench import Bench
from tests.ingest.chunks.samples import (
    canonical_chunk,
    framework_chunk,
    markdown_chunk,
    recorder_chunk,
    structural_chunk,
)
from tests.ingest.ir.samples import ir_record
from tests.ingest.parsed.samples import paragraph, parsed
from tests.ingest.rows.samples import WHALES

FORMS = {
    "canonical": (canonical_chunk(), canonical_chunk(text="Changed.")),
    "framework": (framework_chunk(), framework_chunk(page_content="")),
    "ir": (ir_record(), ir_record(text="", content=b"other")),
    "markdown": (markdown_chunk(tenant_id=None), markdown_chunk(tenant_id=None, chunk_text="")),
    "parsed": (parsed(), parsed(blocks=[paragraph("")])),
    "recorder": (recorder_chunk(), recorder_chunk(text="")),
    "rows": (WHALES, WHALES | {"url": "a.md", "text": "Changed."}),
    "structural": (structural_chunk(), structural_chunk(text="")),
}


@pytest.mark.promise(11)
@pytest.mark.parametrize("form", FORMS)
def test_a_record_of_another_tenant_is_refused(bench: Bench, form: str) -> None:
    """It would replace the other tenant's source, or remove it if its text is empty."""
    given, changed = FORMS[form]
    bench.write("globex.jsonl", [given])
    bench.ingest("globex.jsonl", tenant="globex")
    owned = bench.records()
    assert {chunk["tenant_id"] for chunk in owned} == {"globex"}
    named = {"tenant_id": "globex"}
    for record in (given | named, changed | named, changed | {"metadata": changed.get("metadata", {}) | named}):
        bench.write("zeta.jsonl", [record])
        report = bench.ingest("zeta.jsonl", tenant="zeta")
        assert [failure.code for failure in report.failures] == [TENANT_MISMATCH]
        assert bench.records() == owned
    bench.write("zeta.jsonl", [given | {"tenant_id": "zeta"}])
    assert bench.ingest("zeta.jsonl", tenant="zeta").failures == ()
    assert [chunk for chunk in bench.records() if chunk["tenant_id"] == "globex"] == owned
    assert len(bench.records()) == 2 * len(owned)


@pytest.mark.promise(11)
def test_a_csv_row_of_another_tenant_is_refused_alone(bench: Bench) -> None:
    bench.write("pages.csv", "id,title,text,tenant_id\n1,A,Cats.,globex\n2,B,Dogs.,zeta\n3,C,Mice.,\n")
    report = bench.ingest(tenant="zeta", format="rows")
    assert [(failure.code, failure.line) for failure in report.failures] == [(TENANT_MISMATCH, 2)]
    assert {(chunk["text"], chunk["tenant_id"]) for chunk in bench.records()} == {("Dogs.", "zeta"), ("Mice.", "zeta")}
