"""Lines of run records that name a source, made blank where they stand: whoever writes a record goes on undisturbed."""

import re
from collections.abc import Iterable
from pathlib import Path

import orjson

_KEPT = ("event", "run_id", "at", "status")


def is_named(folder: Path, name: str) -> bool:
    """Whether a record of this folder names it, and not only something that its name is a part of."""
    whole = re.compile(rb"(?<![\w.@/-])" + re.escape(_needle(name)) + rb"(?![\w@/-]|\.\w)")
    return any(whole.search(file.read_bytes()) for file in _files(folder))


def blank(folder: Path, names: Iterable[str]) -> int:
    """Takes all out of the lines that name one of these, but what kind of line each was and when; how many lines.

    Rather a line too many than a trace: of `a.md`, also the lines of `b/a.md`.
    """
    needles = [_needle(name) for name in names]
    blanked = 0
    for file in _files(folder):
        data = file.read_bytes()
        there = [re.escape(needle) for needle in needles if needle in data]
        if not there:
            continue
        named = re.compile(rb"(?<!\w)(?:" + b"|".join(there) + rb")(?!\w)")
        with file.open("r+b") as opened:
            start = 0
            for line in data.splitlines(keepends=True):
                if named.search(line):
                    opened.seek(start)
                    opened.write(_blanked(line))
                    blanked += 1
                start += len(line)
    return blanked


def _needle(name: str) -> bytes:
    """The name as it stands within JSON."""
    return orjson.dumps(name)[1:-1]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def _blanked(line: bytes) -> bytes:
    """As long as it was."""
    end = b"\n" if line.endswith(b"\n") else b""
    try:
        facts = orjson.loads(line)
        kept = orjson.dumps({name: facts[name] for name in _KEPT if name in facts})
    except (ValueError, TypeError):  # cut off by a kill
        kept = b""
    room = len(line) - len(end)
    return (kept if len(kept) <= room else b"").ljust(room) + end
