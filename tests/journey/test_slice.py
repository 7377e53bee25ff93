"""From chunks on disk to an answer on the command line, with the real model and embedded engines."""

import re
from pathlib import Path

import pytest

from chunksink.embeddings.resolve import DEFAULT_MODEL
from tests.journey.support import Ended, chunksink, modules_of, write
from tests.support.bus import source

LENDING = source(
    "lending.md",
    "Every tool that leaves the workshop has to come home within seven days, cleaned and dry.",
    "Late tools cost one euro a day; broken ones are repaired together on Saturdays.",
    metadata={"title": "Lending", "section": "Part 1"},
)
BEES = source(
    "bees.md",
    "Hives stand on the roof. In June the honey is spun and shared among all members.",
    metadata={"title": "Bees", "section": "Part 1"},
)
NIGHT = source("night.md", "After ten in the evening machines stay off, for the neighbours want to sleep.")

HIT = {"chunk_id", "parent_id", "score", "title", "text", "highlights", "source_uri", "locator", "ranks"}
HIT |= {"snippet", "link", "same_text", "fields", "metadata", "weak"}
HIT |= {"chunk_index", "path", "filename", "extension", "file_type"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default configuration: chunks in ./chunks, the home in ./.chunksink."""
    folder = tmp_path_factory.mktemp("journey")
    write(folder / "chunks", "2026-01", LENDING, BEES)
    write(folder / "chunks", "2026-02", NIGHT)
    return folder


@pytest.fixture(scope="module")
def rebuilt(folder: Path) -> Ended:
    return chunksink(folder, "rebuild", "--json")


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def test_rebuild_reports_its_results(rebuilt: Ended) -> None:
    assert (rebuilt.code, rebuilt.err) == (0, "")
    report = rebuilt.json
    assert report["status"] == "ok"
    assert {name: number for name, number in report["families"].items() if number} == {"added": 3}
    embedded = report["embeddings"]
    assert (embedded["model"], embedded["computed"], embedded["cached"]) == (DEFAULT_MODEL, 4, 0)
    for sink in ("fts", "chroma"):
        facts = report["sinks"][sink]
        assert (facts["chunks"], facts["written"], facts["refused"], facts["error"]) == (4, 4, [], None)


@pytest.mark.usefixtures("rebuilt")
def test_keyword_search_finds_and_marks_the_word(folder: Path) -> None:
    ended = chunksink(folder, "search", "honey", "--mode", "keyword", "--json")
    assert (ended.code, ended.err) == (0, "")
    report = ended.json
    assert (report["query"], report["mode"]) == ("honey", "keyword")
    assert 0 < report["took_ms"] < 60_000
    (hit,) = report["hits"]
    assert set(hit) == HIT
    assert (hit["text"], hit["chunk_id"]) == (BEES[0]["text"], BEES[0]["chunk_id"])
    assert re.fullmatch("[0-9a-f]{64}", hit["parent_id"])
    assert (hit["source_uri"], hit["title"], hit["locator"]) == ("bees.md", "Bees", {"section": "Part 1"})
    assert (hit["highlights"], hit["ranks"]) == (["honey"], {"keyword": 1})


@pytest.mark.usefixtures("rebuilt")
def test_hybrid_search_finds_text_without_a_shared_word(folder: Path) -> None:
    question = "give back borrowed equipment"
    answers = [record["text"] for record in LENDING]
    assert not words(question) & words(" ".join(answers))
    ended = chunksink(folder, "search", question, "--limit", "2")
    assert (ended.code, ended.err) == (0, "No text contains these words. The hits are only similar in meaning.\n")
    lines = ended.out.splitlines()
    assert lines[0].startswith("1. Lending  Part ")
    assert any(answer.startswith(lines[1].strip(" …")[:40]) for answer in answers)
    assert lines[2] == "   lending.md  (semantic 1)"
    assert len(lines) == 8  # every source once, although the first has two chunks


@pytest.mark.usefixtures("rebuilt")
def test_no_command_imports_torch_on_a_processor(folder: Path) -> None:
    """With a GPU, torch is imported to detect it."""
    loaded = modules_of(folder, ["search", "give back borrowed equipment"], ["rebuild"])
    if loaded:
        import torch  # takes seconds

        assert torch.cuda.is_available() or torch.backends.mps.is_available()
    assert loaded in ([], ["torch"])
