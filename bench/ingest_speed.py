"""How fast Markdown becomes chunks, and what unchanged files and many files cost.

    python -m bench.ingest_speed FOLDER [--files 10000] [--many 60000] [--rounds 3]

FOLDER holds Markdown to learn from. Steps are measured in processor time of this process, since the machine may be
busy; runs are whole processes. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from bench.processes import Ran, ours
from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.passages import cut
from chunksink.ingest.formats.markdown.policy import Policy
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Source

STAMP = "2026-01-01T00:00:00Z"
PRODUCER = {"name": "bench", "version": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    _steps(sorted(asked.folder.rglob("*.md")), asked.rounds)
    with tempfile.TemporaryDirectory() as folder:
        few, many = (_runs(Path(folder) / str(files), files, asked.rounds) for files in (asked.files, asked.many))
    print(f"\nPeak memory of {asked.many:,} files to that of {asked.files:,}: {many / few:.2f} (goal 1.2)")


def _steps(paths: Sequence[Path], rounds: int) -> None:
    texts = [path.read_text(encoding="utf-8") for path in paths]
    sources = [_source(path) for path in paths]
    megabytes = sum(source.size for source in sources) / 1e6
    policy, reader = Policy(), MarkdownFormat()
    steps: dict[str, Callable[[], object]] = {
        "parse (blocks, links, normalised text)": lambda: [parse(text) for text in texts],
        "parse and cut with tokens, goal 5": lambda: [list(cut(parse(text), policy)) for text in texts],
        "all of it: records, ids, checklist": lambda: [list(reader.read(source)) for source in sources],
    }
    print(f"{megabytes:.1f} MB of Markdown in {len(texts)} files, best of {rounds}\n\n| step | MB/s |\n|---|---|")
    for name, step in steps.items():
        print(f"| {name} | {megabytes / min(_processor_seconds(step) for _ in range(rounds)):.1f} |")


def _source(path: Path) -> Source:
    data = path.read_bytes()
    return Source(path.name, path, sha256(data).hexdigest(), len(data), STAMP, PRODUCER)


def _processor_seconds(step: Callable[[], object]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def _runs(folder: Path, files: int, rounds: int) -> float:
    """Peak memory in MB of a first ingest of so many files; prints what that and further ones take."""
    docs = folder / "docs"
    for number in range(files):
        path = docs / f"{number % 100:02}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n## Part\n\n" + "Some words are here, and a [link](y.md). " * 40)

    def ingest(*more: str) -> Ran:
        return ours("chunksink", "ingest", docs, "--to", folder / "bus", "--home", folder / "home", *more)

    first = ingest()
    again = min((ingest() for _ in range(rounds)), key=lambda ran: ran.seconds)
    checked = ingest("--checksum")
    print(f"\n{files:,} files\n\n| run | seconds | processor | peak memory |\n|---|---|---|---|")
    for name, ran in (("first", first), (f"again, best of {rounds}", again), ("again, --checksum", checked)):
        print(f"| {name} | {ran.seconds:.2f} | {ran.cpu:.2f} | {ran.peak_mb:.0f} MB |")
    return first.peak_mb


if __name__ == "__main__":
    main()
