"""How good the answers are: keyword, semantic and hybrid search against judgements, beside a reference BM25 and exact
neighbours.

    python -m bench.relevance FOLDER [--limit-queries N] [--words N]

FOLDER holds a set in BEIR's form (corpus.jsonl, queries.jsonl, qrels/test.tsv) or the Cranfield collection
(cran.all.1400, cran.qry, cranqrel). Each document is one chunk, its title in front of its text; with --words it is as
many as it takes, and found by its best one. Prints a Markdown table. Where a Meilisearch is installed (`make engines`)
an index in it is measured too. About five minutes for Cranfield on two cores.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import orjson

import chunksink
from bench.bm25 import Bm25
from chunksink.chunkbus.chunk import new_chunk
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.writer import PartitionWriter
from chunksink.embeddings.encoder import PrecisionRequest, encode_queries
from chunksink.embeddings.load import load_encoder
from chunksink.index import Index
from chunksink.search.evaluation.evaluate import JudgedQueries, choose, evaluate
from chunksink.search.evaluation.metrics import DEPTH, METRICS
from chunksink.search.evaluation.reading import Judgements, Queries, read_judgements, read_queries
from chunksink.search.question import FUSIONS, FusionName, Mode
from tests.engines.servers import run_meilisearch
from tools import engines

CREATED_AT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Judged:
    """Title and text of documents by their ids, and what they are asked."""

    documents: dict[str, tuple[str, str]]
    queries: Queries
    judgements: Judgements

    def texts(self) -> list[str]:
        return [f"{title}\n\n{text}".strip() for title, text in self.documents.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit-queries", type=int)
    parser.add_argument("--words", type=int, help="of a chunk at most; without, a document is one chunk")
    options = parser.parse_args()
    judged = cranfield(options.folder) if (options.folder / "cran.qry").exists() else beir(options.folder)
    asked = choose(judged.queries, judged.judgements, options.limit_queries)
    print(f"{len(judged.documents)} documents, {len(asked.queries)} queries; means with 95 % intervals\n")
    print(f"| search | {' | '.join(METRICS)} |\n|---|{'---|' * len(METRICS)}")
    names = list(judged.documents)
    reference = Bm25([" ".join(parts) for parts in judged.documents.values()])
    show("reference BM25", asked, lambda text: [names[row] for row in reference.best(text, DEPTH)])
    for precision in ("float32", "bfloat16"):
        with exact(judged.texts(), names, precision) as rank:
            show(f"exact neighbours, {precision}", asked, rank)
    with tempfile.TemporaryDirectory() as folder:
        root = write(Path(folder) / "chunks", judged, options.words)
        own_index(root, Path(folder) / "home", asked)
        if engines.find("meilisearch") is not None:
            with run_meilisearch() as server:
                os.environ["MEILI_MASTER_KEY"] = server.key
                meilisearch(root, Path(folder) / "meilisearch", server.url, asked)


def own_index(root: BusRoot, home: Path, asked: JudgedQueries) -> None:
    with chunksink.open(chunks=str(root.path), home=str(home), sinks=("fts", "chroma")) as index:
        index.rebuild()
        show("keyword (fts)", asked, ranked(index, "keyword"))
        show("semantic (Chroma)", asked, ranked(index, "semantic"))
        for fusion in FUSIONS:
            show(f"hybrid by {fusion}", asked, ranked(index, "hybrid", fusion))


def meilisearch(root: BusRoot, home: Path, url: str, asked: JudgedQueries) -> None:
    sink = {"meilisearch": {"url": url, "vectors": True}}
    with chunksink.open(chunks=str(root.path), home=str(home), sinks=("meilisearch", "chroma"), sink=sink) as index:
        index.rebuild()
        show("keyword (Meilisearch)", asked, ranked(index, "keyword"))
        show("hybrid by scores (Meilisearch, Chroma)", asked, ranked(index, "hybrid"))
        show("hybrid by Meilisearch itself", asked, ranked(index, "engine"))


def ranked(index: Index, mode: Mode, fusion: FusionName = "scores") -> Callable[[str], list[str]]:
    def rank(text: str) -> list[str]:
        return [hit.document.document_id for hit in index.search(text, mode=mode, fusion=fusion, limit=DEPTH)]

    return rank


@contextmanager
def exact(
    texts: Sequence[str], names: Sequence[str], precision: PrecisionRequest
) -> Iterator[Callable[[str], list[str]]]:
    """Every query compared with every text."""
    encoder = load_encoder(precision=precision, network=False)
    vectors = np.empty((len(texts), encoder.dimension), dtype=np.float32)
    for batch in encoder.encode_batches(texts):
        vectors[batch.positions] = batch.vectors
    yield lambda text: [
        names[row] for row in np.argsort(-(vectors @ encode_queries(encoder, [text])[0]), kind="stable")[:DEPTH]
    ]
    encoder.close()


def show(name: str, asked: JudgedQueries, rank: Callable[[str], Sequence[str]]) -> None:
    figures = evaluate(asked, rank).figures.values()
    told = " | ".join(f"{one.mean:.4f} ({one.low:.3f} to {one.high:.3f})" for one in figures)
    print(f"| {name} | {told} |", flush=True)


def write(folder: Path, judged: Judged, words: int | None) -> BusRoot:
    root = BusRoot(folder)
    with PartitionWriter(root, "judged") as writer:
        for number, (id, text) in enumerate(zip(judged.documents, judged.texts(), strict=True)):
            provenance = {
                "source_uri": f"judged/{number}",
                "source_checksum": f"sha256:{number:064x}",
                "parser": {"parser_name": "bench", "parser_version": "1"},
                "canonicalizer": {"canonicalizer_name": "bench", "canonicalizer_version": "1"},
                "inputs": [],
            }
            title = judged.documents[id][0]
            for place, part in enumerate(parts(text, words)):
                writer.add(
                    new_chunk(
                        document_id=id,
                        text=part or "empty",
                        provenance=provenance,
                        span_key=place,
                        created_at=CREATED_AT,
                        fields={"chunk_index": place, "metadata": {"title": title} if title else {}},
                    )
                )
        producer = ManifestProducer("bench", "1")
        writer.commit(documents=len(judged.documents), producer=producer, created_at=CREATED_AT)
    return root


def parts(text: str, words: int | None) -> list[str]:
    """Of about equal length."""
    if words is None:
        return [text]
    found = text.split()
    count = max(1, -(-len(found) // words))
    bounds = [len(found) * place // count for place in range(count + 1)]
    return [" ".join(found[start:end]) for start, end in pairwise(bounds)]


def beir(folder: Path) -> Judged:
    lines = (folder / "corpus.jsonl").read_bytes().splitlines()
    records = [orjson.loads(line) for line in lines if line.strip()]
    documents = {record["_id"]: (record.get("title") or "", record.get("text") or "") for record in records}
    return Judged(documents, read_queries(folder / "queries.jsonl"), read_judgements(folder / "qrels" / "test.tsv"))


def cranfield(folder: Path) -> Judged:
    """The codes 1 (best) to 4 become gains 4 to 1. Judgements number the queries by their place in the file."""
    documents = {}
    for number, entry in _entries(folder / "cran.all.1400"):
        title, text = (" ".join(_field(entry, name).split()) for name in "TW")
        documents[number] = (title, text.removeprefix(title).strip())  # the text begins with the title
    queries = {
        str(place): " ".join(_field(entry, "W").split())
        for place, (_, entry) in enumerate(_entries(folder / "cran.qry"), start=1)
    }
    judgements: Judgements = {}
    for line in (folder / "cranqrel").read_text(encoding="ascii").splitlines():
        query, document, code = line.split()
        judgements.setdefault(query, {})[document] = 5 - int(code) if 1 <= int(code) <= 4 else 0
    return Judged(documents, queries, judgements)


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    for entry in re.split(r"^\.I ", path.read_text(encoding="ascii", errors="replace"), flags=re.MULTILINE)[1:]:
        number, _, rest = entry.partition("\n")
        yield number.strip(), f"\n{rest}"


def _field(entry: str, name: str) -> str:
    found = re.search(rf"\n\.{name}\n(.*?)(?=\n\.[A-Z]\n|\Z)", entry, flags=re.DOTALL)
    return found[1] if found else ""


if __name__ == "__main__":
    main()
