"""The structure of a text as data: the result of `structure.parse`, the input of `passages.cut`."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """The kind of a block. White space matters in all kinds except prose."""

    PROSE = "prose"
    CODE = "code"
    TABLE = "table"
    FRONT_MATTER = "front_matter"

    @property
    def is_literal(self) -> bool:
        return self is not Kind.PROSE


class Block(NamedTuple):
    """A paragraph, heading, table, code block or the like: the whole lines `[start, end)` of the normalised text, as
    offsets of characters.

    `section` is an index of `Structure.sections`. `list_number` is the number of the top-level list, None outside of
    lists. `container` is the number of the top-level list or quote. `element` names the list, table or code block
    within its section, such as `ul[1]`. `detail` is the header row of a table, or the language of code. A block that
    `is_whole` is never cut, even if it is large.
    """

    kind: Kind
    start: int
    end: int
    section: int
    list_number: int | None = None
    element: str = ""
    detail: str = ""
    is_heading: bool = False
    is_whole: bool = False
    container: int | None = None

    @property
    def unit(self) -> int:
        """The same for all blocks of a list or quote, else unique."""
        return self.container or self.list_number or -1 - self.start


@dataclass(frozen=True, slots=True)
class Link:
    """A link as the source writes it; `at` is its offset in the normalised text."""

    url: str
    kind: str
    at: int


@dataclass(frozen=True)
class Structure:
    """A normalised text and its structure. Blocks are in order and cover every character except white space.

    `sections[n]` is the heading stack of section n; section 0 comes before the first heading. `anchors[n]` is the
    anchor of its heading, if it is not simply the slug of the heading.
    """

    text: str
    blocks: tuple[Block, ...]
    sections: tuple[tuple[str, ...], ...]
    links: tuple[Link, ...]
    metadata: Mapping[str, Any]
    """`title`, `language` and `date`; the lists `tags` and `authors`; other keys of the front matter."""
    anchors: Mapping[int, str] = field(default_factory=dict)
    notice_codes: frozenset[str] = frozenset()
    """Notices about the whole document, such as FENCE_UNCLOSED."""


class Outline:
    """Collects the sections of a document. Each heading opens one."""

    def __init__(self) -> None:
        self.sections: list[tuple[str, ...]] = [()]
        self._open: list[tuple[int, str]] = []
        self._elements = Counter[str]()

    @property
    def section(self) -> int:
        """The index of the open section."""
        return len(self.sections) - 1

    def open_section(self, level: int, title: str) -> None:
        self._open = [above for above in self._open if above[0] < level] + [(level, title)]
        self.sections.append(tuple(title for _, title in self._open))
        self._elements.clear()

    def next_element(self, name: str) -> str:
        """The name of the section's next list, table or code block, such as `ul[1]`."""
        self._elements[name] += 1
        return f"{name}[{self._elements[name]}]"
