"""Files of other kinds than those that are read, counted by their suffix. What it holds does not grow with them."""

import os
import re
from collections import Counter

NO_SUFFIX = "no suffix"
OTHERS = "others"
_SUFFIX = re.compile(r"\.[a-z0-9_+-]{1,16}")
_MOST = 200
"""Suffixes that are told apart: numbers of rotated logs are suffixes too."""


class Tally:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        suffix = os.path.splitext(name)[1].lower() or NO_SUFFIX  # noqa: PTH122 (many files)
        if suffix not in self._counts and suffix != NO_SUFFIX:
            suffix = suffix if len(self._counts) < _MOST and _SUFFIX.fullmatch(suffix) else OTHERS
        self._counts[suffix] += 1

    def counts(self) -> dict[str, int]:
        """The most frequent first."""
        return dict(sorted(self._counts.items(), key=lambda counted: (-counted[1], counted[0])))
