"""What a Markdown text is made of, as data: the result of `structure.parse`, the input of `passages.cut`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a stretch of text is. White space means nothing in prose and much in the others."""

    PROSE = "prose"
    CODE = "code"
    TABLE = "table"
    FRONT_MATTER = "front_matter"

    @property
    def is_literal(self) -> bool:
        return self is not Kind.PROSE


class Block(NamedTuple):
    """A structural unit: whole lines of the normalised text, `[start, end)`.

    `section` is the number of the heading it stands under. `list_number` tells lists apart; None outside.
    `element` names the list, table or code block within its section, such as `ul[1]`. `detail` is a table's
    header row or a fence's language. One that `is_whole` is never cut, whatever its size.

    There are so many that it counts how long one takes to make: half as long as a frozen dataclass.
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


@dataclass(frozen=True, slots=True)
class Link:
    """A link as the source writes it; `at` is where, as an offset into the normalised text."""

    url: str
    kind: str
    at: int


@dataclass(frozen=True)
class Document:
    """A normalised Markdown text with its structure. Blocks come in order and cover every character but white space.

    `sections[n]` is the heading stack of section n; section 0 lies before the first heading. `anchors[n]` is the id of
    its heading, where the source gives it one.
    """

    text: str
    blocks: tuple[Block, ...]
    sections: tuple[tuple[str, ...], ...]
    links: tuple[Link, ...]
    metadata: dict[str, str]
    anchors: Mapping[int, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of what it names several: tags and authors."""
    odd: frozenset[str] = frozenset()
    """Codes of what is to be told of it: what its blocks have that may not be meant, what a reader has left out."""
