"""Every kind of source, from file to answer: it is ingested, indexed and found by one of its sentences."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import chunksink as library
from chunksink.command_line.exits import Exit
from chunksink.index import Index
from tests.conftest import ROOT
from tests.ingest.chunks.samples import (
    canonical_chunk,
    framework_chunk,
    markdown_chunk,
    recorder_chunk,
    structural_chunk,
)
from tests.journey.support import chunksink

HTML = "<!doctype html><title>Ferry</title><h1>Ferry</h1><p>The night ferry carries bicycles free of charge.</p>"
OTHERS: dict[str, list[dict[str, Any]]] = {
    "from-001.jsonl": [markdown_chunk(0, chunk_text="Solder the antenna before the lid is glued.", token_count=8)],
    "from-003.jsonl": [structural_chunk(0, text="Invoices of suppliers are archived for eleven years.")],
    "from-004.jsonl": [recorder_chunk(0, text="[OUT] firmware 7.2 flashed to the beacon", text_chars=40)],
    "from-a-framework.jsonl": [framework_chunk(0, "shed.md", page_content="Ladders are tied to the wall of the shed.")],
    "canonical.jsonl": [canonical_chunk(0, text="Lanterns are hung along the pier in winter.")],
}

# A question in the words of the source, one in other words, and the expected source.
FAMILIES = [
    ("markdown", "visitors are met at the door", "where do guests wait", "security.md"),
    ("html", "night ferry carries bicycles", "transport at sea for cyclists", "ferry.html"),
    ("text", "kettle must be descaled", "limescale in the tea maker", "kettle.txt"),
    ("ir", "note the level in millimetres", "when to pour out the precipitation meter", "gauge-manual.txt"),
    ("parsed", "rinse it with water never with soap", "washing the funnel", "gauge.pdf"),
    ("recorder log", "readings.csv 412 rows", "how many lines were in the table of measurements", "monday"),
    ("recording", "offset 0.208 replace it", "swap probe P-11", "demo.cast"),
    ("chunks of 001", "solder the antenna", "fix the aerial with tin first", "doc-7"),
    ("chunks of 003", "invoices of suppliers", "how long are bills kept", "retention.pdf"),
    ("chunks of 004", "firmware 7.2 flashed", "new software on the beacon", "s-1"),
    ("chunks of a framework", "ladders are tied", "where can one find steps to climb", "shed.md"),
    ("canonical chunks", "lanterns along the pier", "lights at the quay", "docs/a.md"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "examples", folder / "examples")
    mine = folder / "mine"
    mine.mkdir()
    (mine / "ferry.html").write_text(HTML)
    (mine / "kettle.txt").write_text("The kettle must be descaled every month.\n")
    for name, records in OTHERS.items():
        (mine / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> Iterator[Index]:
    """Used from Python, so that the model is loaded once."""
    with library.open(folder) as index:
        with contextlib.chdir(folder):
            assert index.ingest("examples", "mine").failed == 0
            assert index.sync().status == "ok"
        yield index


@pytest.mark.parametrize(("question", "source"), [(words, source) for _, words, _, source in FAMILIES])
def test_source_is_found_by_its_own_words(index: Index, question: str, source: str) -> None:
    for mode in ("keyword", "hybrid"):
        assert source in index.search(question, mode=mode, limit=3).hits[0].source_uri, mode


@pytest.mark.parametrize(("question", "source"), [(other, source) for _, _, other, source in FAMILIES])
def test_source_is_found_by_other_words(index: Index, question: str, source: str) -> None:
    found = [hit.source_uri for hit in index.search(question, mode="semantic", limit=3).hits]
    assert any(source in uri for uri in found), found


@pytest.mark.usefixtures("index")
def test_second_run_does_nothing_and_reports_so(folder: Path) -> None:
    before = {path: path.read_bytes() for path in (folder / "chunks").rglob("*.json*")}
    ended = chunksink(folder, "ingest", "examples", "mine", "--sync")
    assert ended.code == Exit.OK
    assert "nothing to do" in ended.out
    assert {path: path.read_bytes() for path in (folder / "chunks").rglob("*.json*")} == before
