"""A rebuild creates the index described by the chunks, regardless of any earlier state."""

from __future__ import annotations

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.stats import stats
from chunksink.sinks.conformance.samples import RICH
from tests.support.bus import FEBRUARY, MARCH, commit, parent_of, projected, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.watched_sinks import Moment, raising, watching

pytestmark = pytest.mark.usefixtures("small_batches")


def test_every_sink_contains_the_projection_of_the_current_chunks(root: BusRoot, embedded_home: Home) -> None:
    """Superseded, withdrawn, rich, multilingual and tenants' chunks, read back field by field from real engines."""
    rich = source("docs/rich.md", "第一章 図書館", "Zweiter Teil: Müll\n\ttrennen", **RICH)
    new = source("docs/a.md", "new", version="2", at=FEBRUARY)
    theirs = source("docs/a.md", "theirs", tenant_id="south", version="3")
    commit(root, "p1", [*source("docs/a.md", "old", "older"), *rich, *theirs])
    commit(root, "p2", [*new, *source("docs/gone.md", "withdrawn")])
    commit(root, "p3", [], at=MARCH, tombstones=[Tombstone(parent_id=parent_of("docs/gone.md"))])
    report = embedded_home.rebuild()
    wanted = projected(rich, new, theirs)
    assert len(wanted) == 4
    assert embedded_home.contents() == {"fts": wanted, "chroma": wanted}
    assert (report.families, report.chunks, report.superseded) == (3, 4, 1)
    assert report.refused == {"fts": (), "chroma": ()}


def test_second_rebuild_gives_the_same_and_computes_no_vector(root: BusRoot, home: Home) -> None:
    commit(root, "p1", [*source("docs/a.md", "a0", "a1"), *source("docs/b.md", "b0"), *source("docs/c.md", "a0")])
    first = home.rebuild()
    assert (home.embedded.encoded, home.embedded.reused) == (3, 1)  # "a0" comes again in a later batch
    contents = home.contents()
    assert home.encoder.asked == ["a0", "a1", "b0"]
    second = home.rebuild()
    assert home.contents() == contents
    assert home.encoder.asked == ["a0", "a1", "b0"]
    assert (home.embedded.encoded, home.embedded.reused) == (0, 4)
    assert second.generation != first.generation


def test_readers_get_the_new_generation_and_the_previous_is_kept(root: BusRoot, home: Home) -> None:
    kept: list[str] = []
    for number in range(4):
        commit(root, "p1", source("docs/a.md", f"text {number}", version=str(number)))
        report = home.rebuild()
        assert home.live().id == report.generation
        assert [document.text for document in home.contents()["memory"]] == [f"text {number}"]
        kept = [*kept, report.generation.lower()][-2:]
        assert home.builds() == {name: [f"{name}-{id_}" for id_ in kept] for name in ("fts", "memory")}


def test_vectors_of_an_interrupted_run_are_computed_again_on_request(root: BusRoot, home: Home) -> None:
    """Its build was filled from the old cache."""
    commit(root, "p1", source("docs/a.md", "a", "b", "c"))
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(wrap=watching("memory", Moment("scan", 1, raising(KeyboardInterrupt()))))
    home.rebuild(fresh_cache=True)
    assert home.embedded.encoded == 3
    assert [len(builds) for builds in home.builds().values()] == [1, 1]


@pytest.mark.promise(2)
def test_vectors_stay_until_their_successors_are_written(root: BusRoot, home: Home) -> None:
    commit(root, "p1", [*source("docs/a.md", "a", "b"), *source("docs/c.md", "c", "d"), *source("docs/e.md", "e")])
    home.rebuild()
    with pytest.raises(KeyboardInterrupt):
        home.rebuild(fresh_cache=True, wrap=watching("memory", Moment("flush", 1, raising(KeyboardInterrupt()))))
    assert home.verify(deep=True).ok
    commit(root, "p1", source("docs/a.md", "a", "b"), at=FEBRUARY)
    home.rebuild(fresh_cache=True, allow_deletions=9)
    with VectorCache.open(home.folder / "vectors.db", replace_damaged=False) as cache:
        assert stats(cache).rows == 2, "vectors without a text are removed"


@pytest.mark.promise(7)
def test_refused_document_is_named_and_blocks_no_other(root: BusRoot, embedded_home: Home) -> None:
    embedded_home.encoder = PoisonedEncoder(dimension=8)
    bad = source("docs/bad.md", "before", "poison", "after")
    alone, good = source("docs/alone.md", "poison too"), source("docs/good.md", "good")
    commit(root, "p1", [*bad, *alone, *good])
    report = embedded_home.rebuild()
    wanted = projected(bad, alone, good)
    poisoned = [document for document in wanted if "poison" in document.text]
    refused = report.refused["chroma"]
    assert sorted((one.id, one.family) for one in refused) == [(d.id, d.parent_id) for d in poisoned]
    assert all("vector" in one.reason for one in refused)
    assert report.refused["fts"] == ()
    # The keyword sink needs no vector; the siblings are in both.
    assert embedded_home.contents() == {"fts": wanted, "chroma": [d for d in wanted if d not in poisoned]}
    assert embedded_home.live().id == report.generation
