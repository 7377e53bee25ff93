"""How fast Markdown becomes chunks, step by step and as a whole, and what unchanged files cost.

    python -m bench.ingest_speed FOLDER [--files 10000] [--megabytes 200] [--rounds 3]

FOLDER holds Markdown to learn from. Steps are measured in processor time of this process, since the machine may be
busy; runs are whole processes. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.processes import Ran, ours
from chunksink.producers.markdown import MarkdownChunker, SourceVersion, WordTokenizer, cut, find_problems, parse
from chunksink.producers.markdown.parser import parse_blocks
from chunksink.producers.markdown.records import build_records

STAMP = "2026-01-01T00:00:00Z"
PRODUCER = {"name": "bench", "version": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    texts = [path.read_text(encoding="utf-8") for path in sorted(asked.folder.rglob("*.md"))]
    _steps(texts, asked.rounds)
    with tempfile.TemporaryDirectory() as folder:
        _unchanged(Path(folder), asked.files, asked.rounds)
        _memory(Path(folder), texts, asked.megabytes)
        _long_line(Path(folder))


class _Lengths(WordTokenizer):
    """Counts no tokens: takes five characters for one."""

    def counter(self, text: str) -> Callable[[int, int], int]:
        return lambda start, end: (end - start + 4) // 5


def _steps(texts: list[str], rounds: int) -> None:
    chunker = MarkdownChunker()
    policy, tokenizer = chunker.policy, chunker.tokenizer
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    sources = [SourceVersion.of("a.md", text.encode()) for text in texts]
    documents = [parse(text) for text in texts]
    passages = [list(cut(document, policy, tokenizer)) for document in documents]

    def make(number: int) -> list[dict[str, object]]:
        return build_records(
            documents[number],
            passages[number],
            sources[number],
            policy_id=chunker.policy_id,
            tokenizer_version=tokenizer.version,
            created_at=STAMP,
            producer=PRODUCER,
        )

    records = [make(number) for number in range(len(texts))]
    steps: dict[str, Callable[[], object]] = {
        "blocks (markdown-it-py, plain ones by our rule)": lambda: [parse_blocks(text) for text in texts],
        "parse (blocks, links, normalised text)": lambda: [parse(text) for text in texts],
        "cut, tokens counted": lambda: [list(cut(document, policy, tokenizer)) for document in documents],
        "parse and cut, no tokens counted, goal 20": lambda: [
            list(cut(parse(text), policy, _Lengths())) for text in texts
        ],
        "parse and cut, goal 5": lambda: [list(cut(parse(text), policy, tokenizer)) for text in texts],
        "records (ids, hashes)": lambda: [make(number) for number in range(len(texts))],
        "checklist (tokens counted again)": lambda: [find_problems(made, policy, tokenizer) for made in records],
        "all of it": lambda: [
            chunker.chunks(text.encode(), source, created_at=STAMP, producer=PRODUCER)
            for text, source in zip(texts, sources, strict=True)
        ],
    }
    print(f"{megabytes:.1f} MB of Markdown in {len(texts)} files, best of {rounds}\n\n| step | MB/s |\n|---|---|")
    for name, step in steps.items():
        print(f"| {name} | {megabytes / min(_processor_seconds(step) for _ in range(rounds)):.1f} |")


def _processor_seconds(step: Callable[[], object]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def _ingest(folder: Path, docs: Path, *more: str) -> Ran:
    return ours("chunksink", "ingest", docs, "--to", folder / "bus", "--home", folder / "home", *more)


def _unchanged(folder: Path, files: int, rounds: int) -> None:
    folder = folder / "many"
    docs = folder / "docs"
    for number in range(files):
        path = docs / f"{number % 100:02}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n## Part\n\n" + "Some words stand here, and a [link](y.md). " * 40)
    first = _ingest(folder, docs)
    again = [_ingest(folder, docs) for _ in range(rounds)]
    checked = _ingest(folder, docs, "--checksum")
    print(f"\n{files:,} files\n\n| run | seconds | processor | peak memory |\n|---|---|---|---|")
    best = min(again, key=lambda ran: ran.seconds)
    for name, ran in (("first", first), (f"again, best of {rounds}", best), ("again, --checksum", checked)):
        print(f"| {name} | {ran.seconds:.2f} | {ran.cpu:.2f} | {ran.peak_mb:.0f} MB |")


def _memory(folder: Path, texts: list[str], megabytes: int) -> None:
    print("\n| folder | seconds | peak memory of the largest process |\n|---|---|---|")
    for size in (megabytes // 10, megabytes):
        docs = folder / f"large{size}" / "docs"
        docs.mkdir(parents=True)
        written = number = 0
        while written < size * 1e6:
            text = f"# Copy {number}\n\n" + texts[number % len(texts)]
            written += (docs / f"{number}.md").write_text(text, encoding="utf-8")
            number += 1
        ran = _ingest(docs.parent, docs)
        print(f"| {size} MB, {number:,} files | {ran.seconds:.1f} | {ran.peak_mb:.0f} MB |")


def _long_line(folder: Path) -> None:
    folder = folder / "line"
    folder.mkdir()
    (folder / "line.md").write_text("A sentence of words stands here, then another. " * (50 * 2**20 // 48))
    ran = _ingest(folder, folder / "line.md", "--json")
    print(f"\nA file of one line of 50 MB: {ran.seconds:.1f} s, {ran.peak_mb:.0f} MB")


if __name__ == "__main__":
    main()
