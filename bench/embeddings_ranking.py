"""Does bfloat16, or embedding long texts in windows, hurt ranking? nDCG@10 on Cranfield, exact search.

    python -m bench.embeddings_ranking FOLDER

FOLDER holds cran.all.1400, cran.qry and cranqrel. Prints a Markdown table; about five minutes on two cores.
Judgements: Cranfield's codes 1 to 4 (1 is the best) become gains 4 to 1; code -1 and 5 count as 0.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import numpy as np

from chunksink.embeddings.encoder import LongTexts, PrecisionRequest, encode_queries
from chunksink.embeddings.load import load_encoder

SETTINGS: list[tuple[PrecisionRequest, LongTexts]] = [
    ("float32", "truncate"),
    ("bfloat16", "truncate"),
    ("float32", "windows"),
    ("bfloat16", "windows"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    documents = sections(folder / "cran.all.1400")
    queries = sections(folder / "cran.qry")
    gains = judgements(folder / "cranqrel")
    texts = list(documents.values())
    print("| precision | long texts | nDCG@10 | to the first | cosine to the first, least | longer than the model |")
    print("|---|---|---|---|---|---|")
    first_score, first_vectors = 0.0, None
    for precision, long_texts in SETTINGS:
        encoder = load_encoder(precision=precision, long_texts=long_texts, network=False)
        started = time.perf_counter()
        vectors = np.empty((len(texts), encoder.dimension), dtype=np.float32)
        over = 0
        for batch in encoder.encode_batches(texts):
            vectors[batch.positions] = batch.vectors
            over += sum(tokens > (encoder.max_length or tokens) for tokens in batch.tokens)
        seconds = time.perf_counter() - started
        # The judgements number the queries by their place in the file, not by their .I number.
        scores = [
            ndcg(
                np.argsort(-(vectors @ encode_queries(encoder, [query])[0]), kind="stable")[:10] + 1,
                gains.get(number, {}),
            )
            for number, query in enumerate(queries.values(), start=1)
        ]
        score = float(np.mean(scores))
        if first_vectors is None:
            first_score, first_vectors = score, vectors
        least = float((vectors * first_vectors).sum(axis=1).min())
        print(
            f"| {precision} | {long_texts} | {score:.4f} | {score - first_score:+.4f} | {least:.5f} "
            f"| {over} of {len(texts)}, {len(texts) / seconds:.0f} chunks/s |",
            flush=True,
        )
        encoder.close()


def sections(path: Path) -> dict[int, str]:
    """Number and text (field .W) of each entry."""
    entries = re.split(r"^\.I ", path.read_text(encoding="ascii", errors="replace"), flags=re.M)[1:]
    return {int(entry.split(None, 1)[0]): " ".join(entry.partition("\n.W\n")[2].split()) for entry in entries}


def judgements(path: Path) -> dict[int, dict[int, int]]:
    """Gain of each judged document, by query."""
    found: dict[int, dict[int, int]] = {}
    for line in path.read_text(encoding="ascii").splitlines():
        query, document, code = (int(field) for field in line.split())
        found.setdefault(query, {})[document] = 5 - code if 1 <= code <= 4 else 0
    return found


def ndcg(ranked: np.ndarray[tuple[int, ...], np.dtype[np.intp]], gains: dict[int, int]) -> float:
    discounts = 1 / np.log2(np.arange(2, 12))
    best = sorted(gains.values(), reverse=True)[:10]
    ideal = float((np.array(best) * discounts[: len(best)]).sum())
    return (
        float(sum(gains.get(int(d), 0) * w for d, w in zip(ranked, discounts, strict=False))) / ideal if ideal else 0.0
    )


if __name__ == "__main__":
    main()
