"""The content of the status page."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "bad"]


@dataclass(frozen=True)
class ReportRow:
    label: str
    value: str
    tone: Tone = ""


@dataclass(frozen=True)
class Section:
    title: str
    rows: tuple[ReportRow, ...]
    empty: str = ""
    """Shown if there are no rows."""


@dataclass(frozen=True)
class Report:
    current: bool | None
    """Whether the index is up to date. None if that is unknown."""
    summary: str
    figures: tuple[ReportRow, ...]
    """Numbers that are shown large."""
    sections: tuple[Section, ...]
    troubles: tuple[str, ...] = ()
    """Problems, each with its remedy."""
