"""Whether what stands in one passage only is found by it: rare words, names of two words, and phrases in quotes.

    python -m bench.relevance_exact CHUNKS [--home HOME] [--each N]

CHUNKS is a folder of chunks that was indexed with `chunksink sync`. Words and names are drawn among those that stand in
one passage and that keyword search puts first. Prints how many of their passages come first, at 2 to 5, at 6 to 10
and below; and of phrases of five words, for how many the first hit, and any of the first ten, lacks them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import orjson

import chunksink
from chunksink.index import Index
from chunksink.search.answer import Answer
from chunksink.search.question import FusionName, Mode

WORD = re.compile(r"\b[A-Za-z][A-Za-z0-9_]{5,}\b")
NAME = re.compile(r"\b[A-Z][A-Za-z0-9]{3,} [A-Z][A-Za-z0-9]{3,}\b")
PHRASE = re.compile(r"\b(?:[A-Za-z]+ ){4}[A-Za-z]+\b")
WAYS: tuple[tuple[str, Mode, FusionName], ...] = (
    ("keyword", "keyword", "scores"),
    ("semantic", "semantic", "scores"),
    ("hybrid by scores", "hybrid", "scores"),
    ("hybrid by ranks", "hybrid", "ranks"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chunks", type=Path)
    parser.add_argument("--home", default=".chunksink")
    parser.add_argument("--each", type=int, default=100)
    options = parser.parse_args()
    texts = [orjson.loads(line)["text"] for file in canonical(options.chunks) for line in file.open("rb")]
    drawn = random.Random(7)
    with chunksink.open(chunks=str(options.chunks), home=options.home) as index:
        print("| search | what | first | 2 to 5 | 6 to 10 | not in the first ten |\n|---|---|---|---|---|---|")
        for what, pattern in (("words", WORD), ("names", NAME)):
            asked = list(islice(found_first(index, only_once(texts, pattern), drawn), options.each))
            for name, mode, fusion in WAYS:
                places = Counter(band(place(index.search(one, mode=mode, fusion=fusion), one)) for one in asked)
                told = " | ".join(str(places[one]) for one in ("first", "2 to 5", "6 to 10", "below"))
                print(f"| {name} | {len(asked)} {what} | {told} |", flush=True)
        print("\n| search | phrases | first hit without | a hit of ten without | none of ten with |")
        print("|---|---|---|---|---|")
        phrases = sorted({match for text in texts for match in PHRASE.findall(text)})
        chosen = drawn.sample(phrases, min(options.each, len(phrases)))
        for name, mode, fusion in WAYS:
            answers = [(one, index.search(f'"{one}"', mode=mode, fusion=fusion)) for one in chosen]
            first, some, none = (
                count(answers, lambda held: not held[:1] or not held[0]),
                count(answers, lambda held: not all(held)),
                count(answers, lambda held: not any(held)),
            )
            print(f"| {name} | {len(chosen)} | {first} | {some} | {none} |", flush=True)


def canonical(chunks: Path) -> list[Path]:
    return sorted((chunks / "canonical").iterdir())


def only_once(texts: Iterable[str], pattern: re.Pattern[str]) -> list[str]:
    """What stands in one text only, in whatever case, nor within a longer word."""
    held: Counter[str] = Counter()
    everything = []
    for text in texts:
        held.update({match.casefold() for match in pattern.findall(text)})
        everything.append(text.casefold())
    joined = "\n".join(everything)
    return sorted(one for one, times in held.items() if times == 1 and joined.count(one) == 1)


def found_first(index: Index, candidates: Sequence[str], drawn: random.Random) -> Iterable[str]:
    for one in drawn.sample(candidates, len(candidates)):
        if place(index.search(one, mode="keyword", limit=1), one) == 1:
            yield one


def place(answer: Answer, wanted: str) -> int | None:
    return next((at for at, hit in enumerate(answer, 1) if wanted in hit.text.casefold()), None)


def band(found: int | None) -> str:
    if found is None:
        return "below"
    return "first" if found == 1 else "2 to 5" if found <= 5 else "6 to 10"


def count(answers: Sequence[tuple[str, Answer]], wanted: Callable[[list[bool]], bool]) -> int:
    """Of how many phrases this is so of the hits that hold them."""
    return sum(wanted([stands(phrase, hit.text) for hit in answer]) for phrase, answer in answers)


def stands(phrase: str, text: str) -> bool:
    """As words, whatever is between them."""
    return " ".join(re.findall(r"\w+", phrase.casefold())) in " ".join(re.findall(r"\w+", text.casefold()))


if __name__ == "__main__":
    main()
