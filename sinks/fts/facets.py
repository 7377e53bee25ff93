"""Facets: the values of fields in the matching rows, with the number of families of each.

Reading rows takes most of the time. Once the answers of a connection have together matched half as many rows as the
build has, all rows are read into a table, which is kept until the build changes. Then an answer needs only its row ids.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, count, cycle
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from chunksink.sinks.document import CUSTOM, LISTS
from chunksink.sinks.fts import schema
from chunksink.sinks.fts.tenant import lengths_of_all
from chunksink.sinks.reader import FacetValue, Value

_FEW = 100  # an answer with less than 1/100 of all rows reads only its own: faster than the table


def count_families(
    connection: schema.Connection, fields: Sequence[str], found: tuple[str, list[Value]], limit: int
) -> dict[str, list[FacetValue]]:
    """The most frequent values of each field. `found` is a statement for row ids, with its values; ids may repeat."""
    # As one text: Python objects for each row would take twice as long.
    listed = connection.execute(f"SELECT group_concat(row) FROM ({found[0]})", found[1]).fetchone()[0] or ""
    rows = np.fromstring(listed, dtype=np.int64, sep=",")
    table = connection.cached("facets", lambda: _Table(connection))
    table.requested += len(rows)
    all_rows = lengths_of_all(connection, "documents_fts")[0]
    if len(rows) * _FEW < all_rows or table.requested * 2 < all_rows:
        table = _Table(connection, f"WHERE row IN {schema.JSON_MEMBERS}", [f"[{listed}]"])
    table.read(map(_column, fields))
    matching = np.isin(table.rows, rows)
    return {field: table.pairs(field).most_frequent(matching, limit) for field in fields}


class _Pairs(NamedTuple):
    """The distinct pairs of a family and a value."""

    values: list[Value]
    value_of_pair: NDArray[np.int64]
    """By pair: the index of its value in `values`."""
    places: NDArray[np.int32]
    """One entry for each value of each row: the index of the row."""
    pairs: NDArray[np.int32]
    """For the same entries: the pair of the row's family and the value."""

    def most_frequent(self, matching: NDArray[np.bool], limit: int) -> list[FacetValue]:
        found = np.zeros(len(self.value_of_pair), dtype=bool)
        found[self.pairs[matching[self.places]]] = True
        families = np.bincount(self.value_of_pair[found], minlength=len(self.values))
        best = np.argsort(-families, kind="stable")[:limit].tolist()
        return [FacetValue(self.values[one], int(families[one])) for one in best if families[one]]


class _Table:
    """All rows, or those of one answer. A column is stored as a list of its distinct contents, and an index into that
    list for each row."""

    def __init__(self, connection: schema.Connection, where: str = "", values: Sequence[str] = ()) -> None:
        self.requested = 0
        self._connection, self._where, self._values = connection, where, values
        self._columns: dict[str, tuple[list[Any], NDArray[np.int32]]] = {}
        self._pairs: dict[str, _Pairs] = {}

    def read(self, columns: Iterable[str]) -> None:
        missing = [one for one in dict.fromkeys(("row", "parent_id", *columns)) if one not in self._columns]
        if missing:
            select = f"SELECT {', '.join(missing)} FROM documents {self._where} ORDER BY row"
            number_of = [defaultdict[Any, int](count().__next__) for _ in missing]
            cells = chain.from_iterable(self._connection.execute(select, self._values))
            numbered = map(getitem, cycle(number_of), cells)
            numbers = np.fromiter(numbered, dtype=np.int32).reshape(-1, len(missing)).T.copy()
            self._columns |= zip(missing, zip(map(list, number_of), numbers, strict=True), strict=True)
            if "row" in missing:
                self.rows = np.array(self._columns["row"][0], dtype=np.int64)

    def pairs(self, field: str) -> _Pairs:
        if field not in self._pairs:
            contents, of_rows = self._columns[_column(field)]
            families = self._columns["parent_id"][1]
            members = [_members(field, content) for content in contents]
            values = sorted(set(chain.from_iterable(members)), key=lambda value: (isinstance(value, str), value))
            number_of = {value: number for number, value in enumerate(values)}
            numbers = [[number_of[value] for value in of_content] for of_content in members]
            flat = np.fromiter(chain.from_iterable(map(numbers.__getitem__, of_rows.tolist())), dtype=np.int64)
            lengths = np.array([*map(len, numbers)], dtype=int)[of_rows]
            places = np.repeat(np.arange(len(of_rows), dtype=np.int32), lengths)
            unique, pairs = np.unique(families[places] * np.int64(len(values)) + flat, return_inverse=True)
            self._pairs[field] = _Pairs(values, unique % max(1, len(values)), places, pairs.astype(np.int32))
        return self._pairs[field]


def _column(field: str) -> str:
    return "fields" if field.startswith(CUSTOM) else field


def _members(field: str, content: Any) -> list[Value]:
    """The values of a field in one cell of its column."""
    if field in LISTS or field.startswith(CUSTOM):
        content = orjson.loads(content or "null")
    if field.startswith(CUSTOM):
        content = content.get(field.removeprefix(CUSTOM)) if isinstance(content, dict) else None
    members = content if isinstance(content, list) else [content]
    plain = [one for one in members if isinstance(one, str | int | float)]
    return [bool(one) for one in plain] if field in schema.BOOLEANS else plain
