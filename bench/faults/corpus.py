"""A folder of Markdown sources. Each section has a unique word, so it can be located in any store.

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
_WORDS = ("harbour", "lantern", "meadow", "granite", "orchard", "compass", "thistle", "ferry", "cobalt", "walnut")


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def edit(folder: Path, chosen: Iterable[str], rng: random.Random) -> None:
    """A new version of these sources: every section changes, and there may be more or fewer of them."""
    for name in chosen:
        number, version, _ = re.findall(r"\d+", MARK.findall((folder / name).read_text())[0])
        write(folder, int(number), rng, version=int(version) + 1)


def write(folder: Path, number: int, rng: random.Random, *, version: int = 1, word: str = "") -> None:
    """A source, with this word in every section."""
    sections = []
    for place in range(rng.randint(4, 6)):
        text = " ".join([f"s{number:03}v{version}p{place}", word, *rng.choices(_WORDS, k=40)])
        sections.append(f"## Section {place}\n\n{text}\n")
    (folder / f"doc-{number:03}.md").write_text("\n".join(sections))


def marks_of(folder: Path) -> dict[str, Counter[str]]:
    """The marks of each source. A correct index has each of them once."""
    return {name: Counter(MARK.findall((folder / name).read_text())) for name in names(folder)}
