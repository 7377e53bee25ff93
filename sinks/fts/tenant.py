"""BM25 over the rows of one tenant, from indexes that all tenants share.

FTS5's bm25() counts over all rows: how many there are, how long they are, and how many hold a phrase. What others write
would so change the scores and the order of one's own. Only how often a row holds a phrase belongs to the row alone, and
it can be read back: bm25() is asked once with the weights that count and once with such large ones that neither
frequency nor length matters. The rest of the formula is computed here, with the numbers of the tenant.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from chunksink.sinks.fts import schema
from chunksink.sinks.fts.filters import as_sql
from chunksink.sinks.reader import Filter

K1, B = 1.2, 0.75  # those of FTS5's bm25()
SATURATED = ", ".join(["1e200"] * len(schema.WEIGHTS))
_AVERAGES = 1  # where FTS5 keeps the number of rows and the sums of their lengths


@dataclass(frozen=True)
class Lengths:
    """How many rows of the tenant an index has; how many words a row has on average, of the tenant's and of all."""

    rows: int
    average: float
    of_all: float


class Tenant:
    def __init__(self, connection: schema.Connection, filters: Sequence[Filter]) -> None:
        self._connection = connection
        self._where, self.values = as_sql(filters)

    def owns(self, row: str) -> str:
        """A condition on the number of a row; it takes `values`."""
        return f"+{row} IN (SELECT d.row FROM documents d WHERE {self._where})"  # quicker than to look at each row

    def lengths(self, table: str) -> Lengths:
        """Counted again when somebody has written."""
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        key = (table, *self.values)
        known: dict[tuple[object, ...], tuple[int, Lengths]] = self._connection.lengths
        if key not in known or known[key][0] != version:
            known[key] = version, self._counted(table)
        return known[key][1]

    def _counted(self, table: str) -> Lengths:
        sizes = self._connection.execute(
            f"SELECT size.sz FROM documents d CROSS JOIN {table}_docsize size ON size.id = d.row WHERE {self._where}",
            self.values,
        ).fetchall()
        words = sum(length for (size,) in sizes for length in _numbers(size))
        every = self._connection.execute(f"SELECT block FROM {table}_data WHERE id = {_AVERAGES}").fetchone()
        all_rows, *all_words = [*_numbers(every[0])] or [0]  # nothing in an empty index
        return Lengths(len(sizes), words / max(1, len(sizes)), sum(all_words) / max(1, all_rows))


def tenant_of(connection: schema.Connection, filters: Sequence[Filter]) -> Tenant | None:
    """Whose documents are asked for; None where that may be anybody's."""
    own = [one for one in filters if one.field == "tenant_key"]
    return Tenant(connection, own) if own else None


def bm25_part(score: float, most: float, size: bytes, of_all: float, average: float) -> float:
    """What a phrase gives a row, but for its idf: from FTS5's score, and the most that it could be. The weights of the
    columns are whole numbers, so the weighted frequency is one: rounded, nothing of the others' numbers is left."""
    length, share = sum(_numbers(size)), score / most
    frequency = round(share / (1 - share) * K1 * (1 - B + B * length / of_all))
    return frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / average))


def _numbers(packed: bytes) -> Iterator[int]:
    """SQLite's varints."""
    number = 0
    for byte in packed:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            yield number
            number = 0
