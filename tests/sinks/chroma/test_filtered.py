"""Where few documents pass a filter, all of them are compared: the graph of neighbours may lead past them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.contract import Marker
from chunksink.sinks.document import Family
from chunksink.sinks.reader import Filter
from tests.search.support import family

SAME = 400
"""Documents of one text: their vectors are equal, so that no path leads from one neighbourhood to another."""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaReader]:
    crowd = [family(f"{n}.md", "cat cat cat", ids=f"c{n}", tenant_id="other", year=2000) for n in range(SAME)]
    own = [family(f"own {n}.md", f"tax {n} " * (n + 1), ids=f"o{n}", tenant_id="acme", year=2020) for n in range(5)]
    sink = ChromaSink.embedded(tmp_path_factory.mktemp("chroma"))
    build = sink.create(Marker("home", "few", 1), _width(crowd[0]))
    build.replace([*crowd, *own])
    build.flush()
    build.close()
    reader = sink.reader("few")
    yield reader
    reader.close()
    sink.close()


def _width(one: Family) -> int:
    assert one.vectors is not None
    return int(one.vectors.shape[1])


@pytest.mark.parametrize("filters", [(), (Filter("year", at_least=2020),)])
def test_all_that_pass_are_found_and_in_order(reader: ChromaReader, filters: tuple[Filter, ...]) -> None:
    asked = family("asked.md", "cat cat cat").vectors
    assert asked is not None
    expected = 5 if filters else SAME + 5
    hits = reader.query(asked[0], 1000, filters)
    assert len({hit.id for hit in hits}) == len(hits) == expected
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    if not filters:
        assert hits[0].score == pytest.approx(1.0, abs=1e-5)


def test_the_scores_are_those_of_the_engine(reader: ChromaReader) -> None:
    """Whichever way a document was found, it has the same score."""
    asked = family("asked.md", "tax 3 tax 3").vectors
    assert asked is not None
    compared = {hit.id: hit.score for hit in reader.query(asked[0], 1000, (Filter("year", at_least=2020),))}
    for hit in reader.query(asked[0], 2):
        if hit.id in compared:
            assert compared[hit.id] == pytest.approx(hit.score, abs=1e-4)
    assert np.isfinite(list(compared.values())).all()
