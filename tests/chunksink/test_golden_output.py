"""What each command prints about one small index, as a file in `golden/`.

The help of every command is in docs/cli.md, which `make lint` compares. CHUNKSINK_GOLDEN=1 rewrites the files.
"""

import os
import re
from pathlib import Path

import pytest

from tests.chunksink.shell import Shell, write
from tests.support.bus import FEBRUARY, source

REGENERATE = bool(os.environ.get("CHUNKSINK_GOLDEN"))
GOLDEN = Path(__file__).parent / "golden"
A = source("docs/a.md", "a cat sleeps", "pure poison", metadata={"title": "Cats", "year": 2024})
B, C = source("docs/b.md", "a boat"), source("docs/c.md", "a cow")

COMMANDS = {
    "backup": ["backup home.tar.gz", "backup home.tar.gz", "restore home.tar.gz", "restore home.tar.gz --force"],
    "cache": ["cache stats", "cache long-texts", "cache verify", "cache gc --dry-run"],
    "dead-letters": ["dead-letters", "dead-letters retry"],
    "endpoints": ["endpoints"],
    "eval": [
        "eval --queries queries.jsonl --qrels qrels.tsv --mode keyword --save answers.json",
        "eval --queries queries.jsonl --qrels qrels.tsv --baseline answers.json",
    ],
    "forget": ["forget docs/b.md"],
    "ingest": ["ingest notes --chunks other", "ingest notes --chunks other"],
    "init": ["init", "init"],
    "ledger": ["ingest notes --chunks other", "ledger"],
    "plan": ["plan"],
    "prove": ["prove proof.json"],
    "rebuild": [
        "rebuild",
        "eval --queries queries.jsonl --qrels qrels.tsv --mode keyword --save answers.json",
        "rebuild --require-eval answers.json",
    ],
    "retire-partition": ["retire-partition p1"],
    "rollback": ["rollback", "rebuild", "rollback"],
    "runs": ["runs"],
    "search": ["search cat", "search cat --mode keyword --explain --facet year"],
    "status": ["status"],
    "sync": ["sync", "sync"],
    "validate": ["validate --fields", "validate --partition nowhere"],
    "verify": ["verify", "verify --repair", "verify"],
    "why": [f"why {A[0]['chunk_id']}"],
}
CHANGING = ("dead-letters", "plan", "status", "sync", "verify")
"""Commands that are shown with chunks which were not synced yet."""
NORMAL = {
    r"\d{8}T\d{12}Z-[0-9a-f]{6}": "GENERATION",
    r"\d{8}t\d{12}z-[0-9a-f]{6}": "BUILD",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?": "TIME",
    r"\d{4}-\d\d-\d\d \d\d:\d\d UTC": "TIME",
    r"\d+\.\d s\b": "SECONDS",
    r"about \d+ s at the pace of the last run\n": "",  # appears on slow machines only
    r"[\d.,]+ (kB|MB|bytes)": "SIZE",
    r"(sha256|plan|digest) [0-9a-f]{64}": r"\1 HASH",
}


@pytest.fixture
def index(shell: Shell) -> Shell:
    write(shell, "notes/one.md", "# One\n\nA note.\n")
    write(shell, "queries.jsonl", '{"_id": "q", "text": "cat"}\n')
    write(shell, "qrels.tsv", "query-id\tcorpus-id\tscore\nq\tdocs/a.md\t1\n")
    shell.commit("p1", A, B)
    assert shell("rebuild").code == 6, "one text gets no vector"
    return shell


@pytest.mark.parametrize("name", COMMANDS)
def test_output(name: str, index: Shell) -> None:
    if name == "retire-partition":
        index.remove("p1")
    if name in CHANGING:
        index.commit("p2", C, at=FEBRUARY)
    printed = ""
    for command in COMMANDS[name]:
        ended = index(*command.split())
        printed += f"$ chunksink {command}\n{ended.out}{ended.err}(exit {int(ended.code)})\n\n"
    printed = printed.replace(str(index.folder), "FOLDER")
    for pattern, word in NORMAL.items():
        printed = re.sub(pattern, word, printed)
    printed = re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE).rstrip() + "\n"
    file = GOLDEN / f"{name}.txt"
    if REGENERATE:
        file.parent.mkdir(exist_ok=True)
        file.write_text(printed, encoding="utf-8")
    assert printed == file.read_text(encoding="utf-8")
