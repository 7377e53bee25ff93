"""How good the answers to the questions of the Cranfield collection are, as `chunksink eval` measures them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from bench.harness import Case, Figure, Measurement
from bench.processes import chunksink, python, served

BM25 = 0.342
"""nDCG@10 of BM25 on Cranfield as Anserini computes it: title and text as one field, k1 = 0.9, b = 0.4, Porter's stems,
Lucene's English stop words."""
METRIC = "nDCG@10"
VARIANTS: Mapping[str, Mapping[str, str]] = {
    "bfloat16": {"precision": "bfloat16"},
    "float32": {"precision": "float32"},
    "int8": {"precision": "int8"},
    "bfloat16, truncated": {"precision": "bfloat16", "long_texts": "truncate"},
}
ENGINES = {"fts": "fts,chroma", "Meilisearch": "meilisearch,chroma", "PostgreSQL": "postgres"}
"""The sinks that are used with each keyword engine. Chroma searches vectors, except for PostgreSQL, which does both."""


def measure(case: Measurement) -> None:
    bus = _cranfield(case)
    if bus is None:
        return
    means = {name: _evaluate(case, bus, name, settings) for name, settings in VARIANTS.items()}
    for mode in ("keyword", "semantic", "hybrid"):
        case.found(f"{mode} search", means["bfloat16"][mode])
    for precision in ("bfloat16", "int8"):
        difference = abs(means[precision]["semantic"] - means["float32"]["semantic"])
        case.found(f"{precision}, difference from float32", difference)


def measure_engines(case: Measurement) -> None:
    bus = _cranfield(case)
    if bus is None:
        return
    with served("meilisearch", "postgres"):
        for name, sinks in ENGINES.items():
            means = _evaluate(case, bus, name, {"precision": "bfloat16", "sinks": sinks}, case.scratch / "home")
            for mode in ("keyword", "hybrid"):
                case.found(f"{name}, {mode} search", means[mode])


def _cranfield(case: Measurement) -> Path | None:
    """The bus of the collection, or None if the collection is missing."""
    collection = case.data / "cranfield" if case.data else None
    if collection is None or not collection.is_dir():
        case.note("needs the Cranfield collection: `--data`, or CHUNKSINK_SHARED_DATA")
        return None
    bus = case.scratch / "bus"
    write_cranfield(collection, case.scratch)
    python("chunksink", "ingest", case.scratch / "corpus.jsonl", "--chunks", bus, "--home", case.scratch / "ingest")
    return bus


def _evaluate(
    case: Measurement, bus: Path, name: str, settings: Mapping[str, str], home: Path | None = None
) -> Mapping[str, float]:
    """The mean of each mode, in this home or a new one. All metrics and their 95 % intervals are recorded."""
    home = home or case.scratch / f"home-{name}"
    files = ["--queries", str(case.scratch / "queries.tsv"), "--qrels", str(case.scratch / "qrels.tsv")]
    chunksink("rebuild", bus, home, **settings)
    found: dict[str, Any] = chunksink("eval", bus, home, *files, "--json", **settings).document
    for mode, figures in found["modes"].items():
        for metric, figure in figures.items():
            for value in ("low", "mean", "high"):
                case.keep(f"{name}, {mode}, {metric}, {value}", [figure[value]])
    return {mode: figures[METRIC]["mean"] for mode, figures in found["modes"].items()}


def write_cranfield(collection: Path, folder: Path) -> None:
    """Write the collection in the format of BEIR, with titles before the texts. The codes 1 (best) to 4 become gains 4
    to 1. Judgements number the queries by their position in the file."""
    with (folder / "corpus.jsonl").open("wb") as corpus:
        for number, entry in _entries(collection / "cran.all.1400"):
            title, text = (" ".join(_field(entry, name).split()) for name in "TW")
            text = f"{title}\n\n{text.removeprefix(title).strip()}".strip()  # the text begins with the title
            corpus.write(orjson.dumps({"_id": number, "title": title, "text": text}, option=orjson.OPT_APPEND_NEWLINE))
    with (folder / "queries.tsv").open("w") as queries:
        for place, (_, entry) in enumerate(_entries(collection / "cran.qry"), start=1):
            print(place, " ".join(_field(entry, "W").split()), sep="\t", file=queries)
    with (folder / "qrels.tsv").open("w") as qrels:
        print("query-id", "corpus-id", "score", sep="\t", file=qrels)
        for line in (collection / "cranqrel").read_text(encoding="ascii").splitlines():
            query, document, code = line.split()
            print(query, document, 5 - int(code) if 1 <= int(code) <= 4 else 0, sep="\t", file=qrels)


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    for entry in re.split(r"^\.I ", path.read_text(encoding="ascii", errors="replace"), flags=re.MULTILINE)[1:]:
        number, _, rest = entry.partition("\n")
        yield number.strip(), f"\n{rest}"


def _field(entry: str, name: str) -> str:
    found = re.search(rf"\n\.{name}\n(.*?)(?=\n\.[A-Z]\n|\Z)", entry, flags=re.DOTALL)
    return found[1] if found else ""


CASES = (
    Case(
        "relevance",
        f"{METRIC} on Cranfield: 1,400 abstracts, 225 questions, all-MiniLM-L6-v2; BM25 has {BM25}",
        (
            *(Figure(f"{mode} search", METRIC, at_least=BM25) for mode in ("keyword", "semantic", "hybrid")),
            Figure("bfloat16, difference from float32", METRIC, at_most=0.003),
            Figure("int8, difference from float32", METRIC, at_most=0.008),
        ),
        measure,
        {},
    ),
    Case(
        "relevance-engines",
        f"{METRIC} on Cranfield by the engine that finds the words; BM25 has {BM25}",
        tuple(Figure(f"{name}, {mode} search", METRIC) for name in ENGINES for mode in ("keyword", "hybrid")),
        measure_engines,
        {},
    ),
)
