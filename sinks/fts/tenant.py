"""BM25 for the rows of one tenant, from indexes that all tenants share.

FTS5's bm25() uses statistics of all rows: their number, their lengths, and how many have a phrase. So other tenants'
documents would change a tenant's scores. Only the frequency of a phrase in a row does not depend on other rows. It is
derived from two calls to bm25(), one with the real weights and one with saturated weights, for which frequency and
length do not matter. The rest of the formula is computed here with the tenant's numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chunksink.sinks.fts import schema
from chunksink.sinks.fts.filters import as_sql
from chunksink.sinks.reader import Filter

K1, B = 1.2, 0.75  # as in FTS5's bm25()
SATURATED = ", ".join(["1e200"] * len(schema.WEIGHTS))
_AVERAGES = 1  # id of FTS5's record with the number of rows and the sums of their lengths


@dataclass(frozen=True)
class Lengths:
    """Lengths of rows in an index, in words."""

    rows: int
    """The number of the tenant's rows."""
    average: float
    """Words per row of the tenant."""
    overall: float
    """Words per row, over all tenants."""


class Tenant:
    def __init__(self, connection: schema.Connection, filters: Sequence[Filter]) -> None:
        self._connection = connection
        self._where, self.values = as_sql(filters)

    def owns(self, row: str) -> str:
        """A condition on a row number; it needs `values`. The + prevents a separate lookup for each row."""
        return f"+{row} IN (SELECT d.row FROM documents d WHERE {self._where})"

    def lengths(self, table: str) -> Lengths:
        """Cached until the database changes."""
        return self._connection.cached((table, *self.values), lambda: self._counted(table))

    def _counted(self, table: str) -> Lengths:
        sizes = self._connection.execute(
            f"SELECT size.sz FROM documents d CROSS JOIN {table}_docsize size ON size.id = d.row WHERE {self._where}",
            self.values,
        ).fetchall()
        words = sum(length for (size,) in sizes for length in _numbers(size))
        all_rows, *all_words = lengths_of_all(self._connection, table)
        return Lengths(len(sizes), words / max(1, len(sizes)), sum(all_words) / max(1, all_rows))


def lengths_of_all(connection: schema.Connection, table: str) -> list[int]:
    """The number of rows in an index, and the number of words in each column."""
    record = connection.execute(f"SELECT block FROM {table}_data WHERE id = {_AVERAGES}").fetchone()
    return [*_numbers(record[0] if record else b"")] or [0]  # the record of an empty index is empty


def tenant_of(connection: schema.Connection, filters: Sequence[Filter]) -> Tenant | None:
    """The tenant that the filters name, if any."""
    own = [one for one in filters if one.field == "tenant_key"]
    return Tenant(connection, own) if own else None


def bm25_part(score: float, most: float, size: bytes, overall: float, average: float) -> float:
    """The score of a phrase in a row, without its idf.

    `score` is FTS5's score, and `most` the score with saturated weights. The weighted frequency is a whole number,
    because the weights are. Rounding it removes inaccuracies, which depend on the rows of other tenants.
    """
    length, share = sum(_numbers(size)), score / most
    frequency = round(share / (1 - share) * K1 * (1 - B + B * length / overall))
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / average))


def _numbers(packed: bytes) -> Iterator[int]:
    """SQLite's varints."""
    number = 0
    for byte in packed:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0
