"""A renamed title or heading: its chunks are embedded again, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.embeddings.encoder import Encoder
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.families import passage_of
from chunksink.rebuild.forecast import forecast, plan_sync
from chunksink.rebuild.state import State
from tests.embeddings.conftest import tiny_folder  # noqa: F401
from tests.embeddings.helpers import HashEncoder, load_with_torch
from tests.support.bus import commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, memory

TEXTS = ("the cat sat", "one two three", "the cat sat")


@pytest.fixture
def encoder(tiny_folder: Path) -> Iterator[Encoder]:  # noqa: F811
    with closing(load_with_torch(str(tiny_folder), embed_context="title, headings")) as opened:
        yield opened


def described(title: str, *headings: str, texts: tuple[str, ...] = TEXTS) -> list[dict[str, Any]]:
    """A source with a heading for each text."""
    records = source("a.md", *texts, metadata={"title": title})
    for record, heading in zip(records, headings, strict=True):
        record["metadata"] = {"title": title, "headings": [title, heading]}
    return records


def planned(home: Home) -> tuple[int, int]:
    """Vectors in the cache and to compute, according to a plan."""
    with home.session() as session, home.embedder() as embedder:
        found = forecast(session, plan_sync(session, session.state.live(), embedder), embedder.info)
    return found.cached, found.missing


def test_only_chunks_with_a_changed_context_are_embedded(tmp_path: Path, encoder: Encoder) -> None:
    root = FolderRoot(tmp_path / "chunks")
    home = Home(tmp_path / "home", root, chroma, fts)
    home.encoder = encoder  # type: ignore[assignment]
    other = source("b.md", "the dog ran", "one two three")
    commit(root, "p1", [*described("Tools", "Saws", "Files", "Nails"), *other])
    home.rebuild()
    assert home.embedded.encoded == 5, "equal texts in other contexts are other vectors"
    for renamed, computed in (
        (described("Tools", "Saws", "Rasps", "Nails"), 1),
        (described("Machines", "Saws", "Rasps", "Nails"), 3),
        (described("Tools", "Saws", "Files", "Nails"), 0),
    ):
        commit(root, "p1", [*renamed, *other])
        assert planned(home) == (3 - computed, computed)
        outcome = home.sync()
        assert (home.embedded.encoded, outcome.families.changed) == (computed, 1)
        report = home.verify(deep=True)
        assert report.ok
        assert all(not sink.unjudged for sink in report.sinks.values())
    assert set(home.contents()["chroma"]) == set(projected(renamed, other))


def test_chroma_gets_the_new_vector_with_a_new_title(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    home = Home(tmp_path / "home", root, chroma)
    home.encoder = HashEncoder(dimension=8, embed_context="title, headings")
    commit(root, "p1", source("a.md", "text", metadata={"title": "Old"}))
    home.rebuild()
    commit(root, "p1", source("a.md", "text", metadata={"title": "New"}))
    home.sync()
    build = chroma(home.folder).open(home.live().builds["chroma"])
    [stored] = build.scan(vectors=True)
    np.testing.assert_allclose(stored.vector, home.encoder.vector("New\n\ntext"), atol=1e-6)
    build.close()


def test_key_in_the_catalog_is_that_of_the_document(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    fields: list[dict[str, Any]] = [
        {},
        {"metadata": {"title": "  a\n title ", "heading_path": ["x", 5, "y"]}},
        {"metadata": {"headings_path": "one line", "title": 7}, "source": {"title": "of the source"}},
        {"span": {"section_path": ["s", "t"]}, "metadata": {"tenant_id": "acme"}},
        {"metadata": {"headings": ["h" * 150, "word " * 60]}},
    ]
    records = [source(f"{number}.md", "text", **each) for number, each in enumerate(fields)]
    commit(root, "p1", [record for each in records for record in each])
    home = Home(tmp_path / "home", root, memory())
    home.rebuild()
    with State(home.folder) as state:
        keys = {chunk.chunk_id: chunk.key for chunk in Catalog(state).chunks()}
    assert keys == {document.chunk_id: passage_of(document).key for document in projected(*records)}
    assert len(set(keys.values())) == len(fields)


def test_boilerplate_in_many_contexts_is_planned_as_many_vectors(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    home = Home(tmp_path / "home", root, memory())
    home.encoder = HashEncoder(dimension=8, embed_context="title, headings")
    commit(root, "p1", described("First", "a", texts=("the same",)))
    home.rebuild()
    many = [source(f"{n}.md", "the same", "the same", metadata={"title": f"Title {n}"}) for n in range(50)]
    commit(root, "p2", [record for each in many for record in each])
    assert planned(home) == (0, 50)
    home.sync()
    assert (home.embedded.encoded, home.embedded.reused) == (50, 50)


def test_index_without_context_stays_so_until_it_is_rebuilt(tmp_path: Path) -> None:
    root = FolderRoot(tmp_path / "chunks")
    home = Home(tmp_path / "home", root, memory())
    commit(root, "p1", described("Tools", "Saws", "Files", "Nails"))
    home.rebuild()
    assert home.live().encoder.embed_context == ""
    commit(root, "p1", described("Machines", "Saws", "Files", "Nails"))
    home.sync()
    assert home.embedded.encoded == 0, "without context the title changes no vector"
    home.encoder = HashEncoder(dimension=8, embed_context="title, headings")
    home.settings = replace(home.settings, embed_context="title, headings")
    home.rebuild()
    assert home.embedded.encoded == 3
    assert home.live().encoder.embed_context == "title, headings"
    assert home.verify(deep=True, recall=True).ok
