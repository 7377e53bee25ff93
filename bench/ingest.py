"""How fast Markdown becomes chunks, and what unchanged files and many files cost."""

from __future__ import annotations

import time
from pathlib import Path

from bench import corpora
from bench.harness import Case, Figure, Measurement
from bench.processes import Ran, python


def measure_markdown(case: Measurement) -> None:
    """Measured in processor time of this process, because the machine may be busy."""
    from chunksink.ingest.formats.markdown.passages import cut
    from chunksink.ingest.formats.markdown.policy import Policy
    from chunksink.ingest.formats.markdown.structure import parse

    texts = [path.read_text(encoding="utf-8") for path in corpora.markdown(case.data)]
    policy = Policy()

    def parsed_and_cut() -> float:
        started = time.process_time()
        for text in texts:
            list(cut(parse(text), policy))
        return time.process_time() - started

    took = case.turns({"parsed and cut": parsed_and_cut})["parsed and cut"]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    case.note(f"{megabytes:.1f} MB in {len(texts)} files")
    speeds = case.keep("parsed and cut, MB/s", [megabytes / one for one in took])
    case.found("parsed and cut, tokens counted, one core", max(speeds))


def measure_files(case: Measurement) -> None:
    few, many = (case.number(name) for name in ("files", "many"))
    peaks = []
    for files in (few, many):
        folder = case.scratch / str(files)
        _write_files(folder / "docs", files)
        first = _ingest(folder)
        peaks.append(first.peak_mb)
        case.keep(f"{files:,} files, first ingest, seconds", [first.seconds])
        if files == few:
            again = [_ingest(folder).seconds for _ in range(case.number("rounds"))]
            case.found("second ingest of 10,000 unchanged files", min(case.keep("unchanged, seconds", again)))
            case.keep("unchanged, with --checksum, seconds", [_ingest(folder, "--checksum").seconds])
    case.found("memory of many files against 10,000", peaks[1] / peaks[0])


def _write_files(docs: Path, files: int) -> None:
    for number in range(files):
        path = docs / f"{number % 100:02}" / f"{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n## Part\n\n" + "Some words are here, and a [link](y.md). " * 40)


def _ingest(folder: Path, *arguments: str) -> Ran:
    bus, home = folder / "bus", folder / "home"
    return python("chunksink", "ingest", folder / "docs", "--chunks", bus, "--home", home, *arguments)


CASES = (
    Case(
        "markdown",
        "Markdown parsed and cut into passages, in processor time",
        (Figure("parsed and cut, tokens counted, one core", "MB/s", at_least=5),),
        measure_markdown,
        {"rounds": (3, 5)},
    ),
    Case(
        "ingest",
        "`chunksink ingest` of small Markdown files: a second time without changes, and many more files",
        (
            Figure("second ingest of 10,000 unchanged files", "s", at_most=2),
            Figure("memory of many files against 10,000", at_most=1.2),
        ),
        measure_files,
        {"files": (10_000, 10_000), "many": (20_000, 60_000), "rounds": (3, 3)},
    ),
)
