"""Folders that nobody called records: other JSON among them is told, and is no failure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from chunksink.producers.detect import look_at
from chunksink.producers.errors import RECORD_FORM_UNKNOWN, SourceFailed
from chunksink.producers.kinds import Kind
from chunksink.producers.produced import Item, LeftOut, Making, RecordReader


def guessed(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """The same kinds, as they are read where the files themselves tell what they are."""
    return {
        name: replace(kind, records=partial(_make, kind)) if kind.folders and kind.records else kind
        for name, kind in kinds.items()
    }


def _make(kind: Kind) -> RecordReader:
    assert kind.records is not None
    return Guessed(kind.records())


@dataclass(frozen=True)
class Guessed:
    """Reads as the other reader does."""

    reader: RecordReader

    @property
    def parser(self) -> tuple[str, str]:
        return self.reader.parser

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.reader.canonicalizer

    def read(self, path: Path, uri: str, making: Making) -> Iterator[Item]:
        for one in self.reader.read(path, uri, making):
            if isinstance(one, LeftOut) and one.is_failure and path.is_dir() and _is_other(path, uri, one):
                yield replace(one, code=RECORD_FORM_UNKNOWN, is_failure=False)
            else:
                yield one


def _is_other(folder: Path, uri: str, left_out: LeftOut) -> bool:
    """Whether the file that it tells of is whole JSON, and no record of any form."""
    try:
        look = look_at(folder / left_out.source_uri.removeprefix(f"{uri.rstrip('/')}/"))
    except SourceFailed:
        return False
    return look.is_value and look.kind is None
