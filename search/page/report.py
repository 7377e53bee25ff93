"""What the status page shows, as whoever knows it tells it."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "good", "bad"]


@dataclass(frozen=True)
class Figure:
    """One number, large."""

    label: str
    value: str
    tone: Tone = ""


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
    """What is said where there is no row."""


@dataclass(frozen=True)
class Report:
    current: bool | None
    """None where it cannot be told."""
    summary: str
    figures: tuple[Figure, ...]
    sections: tuple[Section, ...]
    troubles: tuple[str, ...] = ()
    """Each with what to do about it."""
