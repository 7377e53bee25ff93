"""Lines of run records that name a source, made blank where they stand: whoever writes a record goes on undisturbed."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson

_KEPT = ("event", "run_id", "at", "status")
_NEVER = {*_KEPT, "command", "code", "severity", "sink", "call", "generation"}
_NEVER |= {"partition", "partition_key", "partitions", "missing_partitions"}
"""Fields that hold no name of a source, whatever stands there."""
_NAMES = {"id", "parent_id", "source_uri", "missing_from", "examples"}
"""Fields that hold names of sources and chunks, and nothing else."""
_WORD = re.compile("[A-Za-z]+")


def is_named(folder: Path, name: str) -> bool:
    """Whether a record of this folder names it, and not only something that its name is a part of. A plain word within
    a sentence is none."""
    whole = re.compile(r"(?<![\w.@/-])" + re.escape(name) + r"(?![\w@/-]|\.\w)", re.ASCII)
    in_sentences = _WORD.fullmatch(name) is None
    needle = _needle(name)
    return any(
        text == name if field in _NAMES else in_sentences and whole.search(text) is not None
        for file in _files(folder)
        for line in file.read_bytes().splitlines()
        if needle in line
        for field, text in _texts_of(line)
    )


def blank(folder: Path, names: Iterable[str]) -> int:
    """Takes all out of the lines that name one of these, but what kind of line each was and when; how many lines.

    Rather a line too many than a trace: of `a.md`, also the lines of `b/a.md`.
    """
    needles = {name: _needle(name) for name in names}
    blanked = 0
    for file in _files(folder):
        data = file.read_bytes()
        there = [re.escape(form) for each in needles.items() if each[1] in data for form in (each[0], each[1].decode())]
        if not there:
            continue
        named = re.compile(r"(?<!\w)(?:" + "|".join(there) + r")(?!\w)", re.ASCII)
        with file.open("r+b") as opened:
            start = 0
            for line in data.splitlines(keepends=True):
                if any(named.search(text) for _, text in _texts_of(line)):
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


def _texts_of(line: bytes) -> Iterator[tuple[str, str]]:
    """Every text of a line that could name a source, with the field that it stands in."""
    try:
        yield from _texts_in("", orjson.loads(line))
    except ValueError:  # cut off by a kill, and so still written as JSON
        yield "", line.decode(errors="replace")


def _texts_in(field: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, list):
        for each in value:
            yield from _texts_in(field, each)
    elif isinstance(value, dict):
        for name, each in value.items():
            if not name.isidentifier():  # a reason, and how many sources were held for it
                yield field, name
            if name not in _NEVER:
                yield from _texts_in(name, each)


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
