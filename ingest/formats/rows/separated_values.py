"""Reads separated values (CSV, TSV) as records. A CSV with a wrong quote fails as a whole, because nothing tells where
later rows begin."""

import csv
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter, deque
from collections.abc import Collection, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Literal

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.markdown.normalise import TO_UTF8
from chunksink.ingest.json_records import NumberedRecord
from chunksink.ingest.model import Notice

MAX_CHARACTERS = 32 * 2**20
_SEPARATORS = ",\t;|"
_STATED = re.compile(rf"sep=([{_SEPARATORS}])\s*", re.IGNORECASE)
"""The line with which Excel states the separator, above the header."""


def read_header(path: Path, single: Collection[str] = ()) -> list[str]:
    """The names of the columns. An empty one is `column_N`, and so is a repeated one of `single`. Raises
    SourceFailed."""
    names: list[str] = []
    for number, name in enumerate(map(column_name, next(_rows(path), (1, []))[1]), start=1):
        names.append(name if name and not (name in single and name in names) else f"column_{number}")
    return names


def read_separated(
    path: Path, kept: Collection[str], single: Collection[str] = ()
) -> Iterator[NumberedRecord | Notice]:
    """Every record, with its first line. Empty cells become fields only in the columns `kept`. The other cells of
    columns with the same name become a list, except for names in `single`."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_CHARACTERS))  # of the whole process
    names = read_header(path, single)
    repeated = {name for name, columns in Counter(names).items() if columns > 1}
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
    if path.suffix.lower() == ".tsv":
        try:
            deque(_rows(path), maxlen=0)
        except SourceFailed:
            quoting = csv.QUOTE_NONE
    for line, cells in islice(_rows(path, quoting), 1, None):
        if any(cells[len(names) :]):
            reason = f"has {len(cells)} cells, the header {len(names)}: quote cells that contain a separator"
            yield Notice(findings.WRONG_TYPE, reason, line)
        else:
            record: Record = {}
            for name, cell in zip_longest(names, cells[: len(names)], fillvalue=""):
                if cell and name in repeated:
                    record.setdefault(name, []).append(cell)
                elif cell or name in kept:
                    record[name] = cell
            yield NumberedRecord(line, record)


def column_name(name: str) -> str:
    """The name of a column in lower case, with `_` in place of everything but letters and digits."""
    name = name.strip().lower()
    return re.sub(r"\W+", "_", name).rstrip("_") or name


def _rows(path: Path, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row that is not blank, and its first line."""
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(MAX_CHARACTERS)
            stated = _STATED.fullmatch(first)
            separator = stated[1] if stated else max(_SEPARATORS, key=first.count)
            file.seek(0)
            reader = csv.reader(file, delimiter=separator, quoting=quoting, strict=True)
            for cells in reader:
                if cells and not (stated and reader.line_num == 1):
                    yield line, cells
                line = reader.line_num + 1
    except csv.Error as error:
        raise SourceFailed(CHUNKING_FAILED, f"line {line}: {error}; double the quotes inside quoted cells") from error
    except UnicodeDecodeError as error:
        is_utf16 = error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        remedy = "convert it to UTF-8: iconv -f UTF-16 -t UTF-8 OLD > NEW" if is_utf16 else TO_UTF8
        raise SourceFailed(CHUNKING_FAILED, f"not UTF-8 on line {line} or later; {remedy}") from error
