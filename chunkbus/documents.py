"""How many documents the chunks of a file are of at least, counted with flat memory."""

from contextlib import closing

import numpy as np

from chunksink.chunkbus.spill import Rows, SpilledRows


class SeenDocuments:
    """Given the hashes of document and source of all stretches of a file; `fewest` then counts them.

    What a producer counts as a document may be a version of a source (`document_id`) or a source, which may have
    several: the smaller number is meant. Equal hashes of two only make it smaller.
    """

    def __init__(self) -> None:
        self._rows = SpilledRows(columns=2)
        self._stretches = 0

    def close(self) -> None:
        self._rows.close()

    def add(self, named: Rows) -> None:
        self._stretches += len(named)
        self._rows.add(named)

    def fewest(self, enough: int) -> int:
        """Documents or sources; anything up to `enough` means that it is no more than that."""
        if self._stretches <= enough:
            return self._stretches
        documents = sum(map(_different, self._rows.sorted_buckets()))
        if documents <= enough:
            return documents
        with closing(SpilledRows(columns=1)) as sources:
            for rows in self._rows.sorted_buckets():
                sources.add(rows[:, 1:])
            return min(documents, sum(map(_different, sources.sorted_buckets())))


def _different(rows: Rows) -> int:
    """Values of the first column, which is sorted."""
    return 1 + int(np.count_nonzero(np.diff(rows[:, 0])))
