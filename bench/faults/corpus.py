"""A folder of Markdown sources. Each section has a word of its own, so its place is known in any store.

The word s012v3p2 is in section 2 of version 3 of source 12, however a tool cuts the source into chunks.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

MARK = re.compile(r"\bs\d{3}v\d+p\d+\b")
POISON = "unembeddable"
_WORDS = re.findall(
    r"\w+",
    "harbour lantern meadow granite orchard compass thistle ferry cobalt walnut anchor prairie velvet juniper canyon "
    "saddle ember willow marble kettle falcon quarry amber rowan tundra pebble cedar bramble copper heron",
)


def create(folder: Path, count: int, rng: random.Random) -> None:
    folder.mkdir(parents=True)
    for number in range(count):
        _write(folder, number, 1, rng)


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def edit(folder: Path, chosen: Iterable[str], rng: random.Random) -> None:
    """A new version of these sources: every section changes, and there may be more or fewer of them."""
    for name in chosen:
        number, version = re.findall(r"\d+", mark_of(folder, name))[:2]
        _write(folder, int(number), int(version) + 1, rng)


def add(folder: Path, number: int, rng: random.Random, word: str = "") -> None:
    """A new source, with this word in its first section."""
    _write(folder, number, 1, rng, word)


def swap(folder: Path, one: str, other: str) -> None:
    """The two sources exchange their names."""
    first, second = (folder / one).read_text(), (folder / other).read_text()
    (folder / one).write_text(second)
    (folder / other).write_text(first)


def mark_of(folder: Path, name: str) -> str:
    """The mark of the first section of a source."""
    return MARK.findall((folder / name).read_text())[0]


def marks_of(folder: Path) -> dict[str, Counter[str]]:
    """The marks that an index of these sources has for each source, each once."""
    return {name: Counter(MARK.findall((folder / name).read_text())) for name in names(folder)}


def _write(folder: Path, number: int, version: int, rng: random.Random, word: str = "") -> None:
    sections = []
    for place in range(rng.randint(4, 6)):
        text = " ".join([f"s{number:03}v{version}p{place}", word, *rng.choices(_WORDS, k=40)])
        sections.append(f"## Section {place}\n\n{text}\n")
    (folder / f"doc-{number:03}.md").write_text("\n".join(sections))
