"""How many positions of Meilisearch a text takes, of which it has 65,535 for one field. Never too low, often too high.

A word takes one position, a word after a hard separator eight. Dictionaries cut Chinese, Japanese, Korean, Thai and
their like, and symbols stand alone: so of all that is not known better each character counts as a word.
"""

import re
from itertools import pairwise

MOST_POSITIONS = 65_535
"""Of one field; what stands behind them is not searchable, and Meilisearch does not say so."""

# Found by a word behind thousands of each sign of Unicode, on the version that is tested. A test does it again.
_HARD_POINTS = (
    "21 3b 3f a1 a7 b6 bf 37e 55c-55e 589 5c3 60c 61b 61f 6d4 700-709 7f7-7f9 830-835 838-83e 85e 964-965 df4 "
    "e5a-e5b f04-f0a f0d-f12 f14 fd0-fd4 104a-104b 10fb 1362-1368 169b-169c 16eb-16ed 1735-1736 17d4-17d6 17d8 "
    "17da 1800-1806 1808-1809 1944-1945 1a1f 1aa8-1aad 1b5a-1b60 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 203b "
    "203d 204f 2056 205a 2cf9-2cfc 2cfe 2e18 2e2e 2e41 3001-3002 a4fe-a4ff a60d-a60f a6f2-a6f7 a876-a877 "
    "a8ce-a8cf a92f a95f a9c3-a9cd aa5c-aa5f aadf aaf0-aaf1 abeb fe11-fe12 fe14-fe16 fe45 fe51 fe54 fe56-fe57 "
    "ff01 ff1b ff1f ff61 ff64 10857 10a50-10a58 10af0-10af5 10b3a-10b3f 10b99-10b9c 10f55-10f59 11047-1104d "
    "110be-110c1 11140-11143 11175 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 1144b-1144d 1145a "
    "115c2-115c3 115c9-115d7 11641-11642 11660-1166c 1173c-1173e 11944 11946 11a3f-11a46 11a9a-11a9c 11a9e-11aa2 "
    "11c41-11c42 11c70-11c71 11ef7-11ef8 11fff 12471-12474 16a6e-16a6f 16af5 16b37-16b39 16b44 16e97-16e9a 1bc9f "
    "1da87-1da8a 1e95e-1e95f "
)
# After these only sometimes: before a space, or in other versions.
_SOMETIMES = ".,\u2026\uff0c\uff0e"
_SOFT = "_:'\"()\\[\\]/-"

# Letters of scripts that put spaces between words; where the script changes, so does the word.
_RUNS = (
    "0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff",
    "\u0370-\u0373\u0376\u0377\u037b-\u037d\u0386\u0388-\u03f5\u03f7-\u03ff\u1f00-\u1fbc",
    "\u0400-\u0481\u048a-\u052f",
)


def _class(points: str) -> str:
    """Code points in hexadecimal as the inside of a class of a regular expression."""
    ends = [[chr(int(end, 16)) for end in part.split("-")] for part in points.split()]
    return "".join("-".join(map(re.escape, each)) for each in ends)


_BREAKING = _class(_HARD_POINTS) + _SOMETIMES
_BREAK = re.compile(rf"[{_BREAKING}][\s{_BREAKING}{_SOFT}]*")
_WORDS = "|".join(rf"[{run}][{run}\u0300-\u036f]*" for run in _RUNS)
_UNIT = re.compile(rf"{_WORDS}|[^\s{''.join(_RUNS)}{_BREAKING}{_SOFT}]")


def positions(text: str) -> int:
    """At most so many positions does the text take."""
    camels = sum(1 for one, next in pairwise(text) if next.isupper() and one.islower())  # camelCase is two words
    return sum(1 for _ in _UNIT.finditer(text)) + 7 * sum(1 for _ in _BREAK.finditer(text)) + camels
