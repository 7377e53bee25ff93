"""How good the answers to questions about documentation are, by kind of question and mode of search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import orjson

from bench.harness import Case, Figure, Measurement
from bench.processes import ROOT, chunksink, python

if TYPE_CHECKING:
    from chunksink.index import Index
    from chunksink.search.question import Mode

QUESTIONS = ROOT / "bench" / "questions"
SETS: Mapping[str, str] = {"rust-book": "rust-book/src", "uv": "uv/docs", "fastapi": "fastapi/docs/en/docs"}
"""Where each documentation is below `--data`; bench/questions/README.md explains how to get it."""
MODES: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
SPLITS = ("tune", "final")
NDCG, SOURCES, FIRST = "nDCG@10", "nDCG@10 of sources", "right source first"
_CHUNKS = 50  # the limit of a search; usually enough for ten different sections


def measure(case: Measurement) -> None:
    import chunksink as library

    for name, folder in SETS.items():
        documents = case.data / folder if case.data else None
        if documents is None or not documents.is_dir():
            case.note(f"{name}: needs the folder {folder} in `--data`, see bench/questions/README.md")
            continue
        bus, home = case.scratch / f"bus-{name}", case.scratch / f"home-{name}"
        python("chunksink", "ingest", documents, "--chunks", bus, "--home", home, "--exclude", "release-notes.md")
        chunksink("rebuild", bus, home, sinks="fts,chroma")
        places = _places(bus)
        questions = [orjson.loads(line) for line in (QUESTIONS / f"{name}.jsonl").read_bytes().splitlines()]
        missing = {_place(one) for question in questions for one in question["judgements"]} - set(places.values())
        if missing:
            case.note(f"{name}: {len(missing)} judged sections are missing: {'; '.join(sorted(missing)[:5])}")
        with library.open(chunks=str(bus), home=str(home), sinks=("fts", "chroma")) as index:
            for mode in MODES:
                _ask_all(case, name, mode, index, questions, places)


def _ask_all(
    case: Measurement,
    name: str,
    mode: Mode,
    index: Index,
    questions: list[dict[str, Any]],
    places: Mapping[str, str],
) -> None:
    """Record the means of all metrics by split, and by split and kind. The mean nDCG@10 of a split is also a figure."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for question in questions:
        for metric, value in _score(index, mode, question, places):
            found[question["split"], metric].append(value)
            found[question["split"], question["kind"], metric].append(value)
    for keys, values in found.items():
        case.keep(", ".join((name, mode, *keys)), [fmean(values)])
    for split in SPLITS:
        case.found(f"{name}, {mode}, {split}", fmean(found[split, NDCG]))


def _score(
    index: Index, mode: Mode, question: Mapping[str, Any], places: Mapping[str, str]
) -> Iterator[tuple[str, float]]:
    """Sections are ranked by their best chunk, in a search that shows every chunk; sources by a default search."""
    from chunksink.search.evaluation.evaluate import ndcg

    sections = {_place(one): one["gain"] for one in question["judgements"]}
    sources = {one["source"]: one["gain"] for one in sorted(question["judgements"], key=lambda one: one["gain"])}
    chunks = index.search(question["query"], mode=mode, limit=_CHUNKS, collapse=False)
    usual = index.search(question["query"], mode=mode)
    assert not chunks.unavailable and not usual.unavailable, question["id"]
    ranked = [places[hit.chunk_id].partition("#")[0] for hit in usual]
    yield NDCG, ndcg(list(dict.fromkeys(places[hit.chunk_id] for hit in chunks)), sections)
    yield SOURCES, ndcg(ranked, sources)
    yield FIRST, float(bool(ranked) and sources.get(ranked[0]) == max(sources.values()))


def _place(judgement: Mapping[str, Any]) -> str:
    return f"{judgement['source']}#{judgement['section']}"


def _places(bus: Path) -> dict[str, str]:
    """The place of each chunk: the path of its source within the documentation, and the path of its headings."""
    places = {}
    for file in (bus / "canonical").glob("*.jsonl"):
        for chunk in map(orjson.loads, file.open("rb")):
            source = chunk["source"]["source_uri"].partition("/")[2]
            places[chunk["chunk_id"]] = f"{source}#{' > '.join(chunk['metadata']['headings_path'])}"
    return places


CASES = (
    Case(
        "answers",
        f"{NDCG} of sections: 180 questions about three documentation sets, half of them held out",
        tuple(Figure(f"{name}, {mode}, {split}", NDCG) for name in SETS for mode in MODES for split in SPLITS),
        measure,
        {},
    ),
)
