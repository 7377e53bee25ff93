"""`--deep` finds a vector that differs from the computed one, in every engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.rebuild.errors import NotVerified
from chunksink.rebuild.flip import roll_back
from chunksink.sinks.capabilities import ChangedSettings
from chunksink.sinks.contract import Sink, Stored
from chunksink.sinks.document import Document, Family
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts, memory
from tests.support.memory_sink import MemorySink
from tests.support.public_index import meilisearch_in
from tests.support.tampering import live_build
from tests.support.watched_sinks import Wrap, WrappedBuild, with_builds


@pytest.fixture(params=["chroma", "meilisearch"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    made: dict[str, Callable[[], Callable[[Path], Sink]]] = {
        "chroma": lambda: chroma,
        "meilisearch": lambda: meilisearch_in(request.getfixturevalue("meilisearch_server"), f"deep-{token_hex(4)}"),
    }
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), fts, made[request.param]())
    commit(home.root, "p1", [*source("docs/a.md", "a cat", "a mat"), *source("docs/b.md", "a boat")])
    return home


class Altering(WrappedBuild):
    """A build that stores a wrong vector of one document."""

    def __init__(self, build: Any, change: Callable[[Any], Any]) -> None:
        super().__init__(build)
        self._change = change

    def replace(self, families: list[Family]) -> int:
        changed = []
        for family in families:
            vectors = family.vectors.copy() if family.vectors is not None else None
            if vectors is not None and family.documents[0].source_uri == "docs/b.md":
                vectors[0] = self._change(vectors[0])
            changed.append(Family(family.documents, vectors))
        return int(self._build.replace(changed))


def altering(change: Callable[[Any], Any]) -> Wrap:
    return with_builds("", lambda build: Altering(build, change))


def label(document: Document) -> str:
    """The document's drift in a message."""
    return f"changed {document.id} of family {document.parent_id}"


def test_sound_vectors_pass_despite_rounding(home: Home) -> None:
    assert home.rebuild(deep=True).chunks == 3
    rounding = altering(lambda vector: vector * np.float32(3) + np.float32(1e-6))
    assert home.rebuild(wrap=rounding, deep=True).chunks == 3


@pytest.mark.parametrize(
    "change", [lambda v: v[::-1].copy(), lambda v: v + np.float32(0.02)], ids=["another", "drifted"]
)
def test_wrong_vector_is_named_and_the_live_index_stays(home: Home, change: Callable[[Any], Any]) -> None:
    home.rebuild()
    live = home.live()
    boat = projected(source("docs/b.md", "a boat"))[0]
    with pytest.raises(NotVerified) as found:
        home.rebuild(wrap=altering(change), deep=True)
    assert all(part in str(found.value) for part in ("differs from what was written", label(boat)))
    assert all(label(other) not in str(found.value) for other in projected(source("docs/a.md", "a cat", "a mat")))
    assert home.live() == live
    home.rebuild(deep=True)
    assert home.live() != live


def test_missing_vector_is_named(home: Home) -> None:
    class Losing(WrappedBuild):
        def scan(self, **options: Any) -> Iterator[Stored]:
            for found in self._build.scan(**options):
                yield found if not options.get("vectors") else Stored(*found.hashes())

    with pytest.raises(NotVerified) as found:
        home.rebuild(wrap=with_builds("", Losing), deep=True)
    documents = projected(source("docs/a.md", "a cat", "a mat"), source("docs/b.md", "a boat"))
    assert all(label(document) in str(found.value) for document in documents)


@pytest.mark.parametrize(
    ("changed", "repaired"),
    [(ChangedSettings(("embedders",)), False), (ChangedSettings(("any",), vectors_in_doubt=True), True)],
)
def test_sync_compares_vectors_if_changed_settings_put_them_in_doubt(
    changed: ChangedSettings, repaired: bool, tmp_path: Path
) -> None:
    class Settable(MemorySink):
        def update_settings(self, build_id: str, dimensions: int | None = None) -> ChangedSettings:
            return changed

        def settings_due(self, build_id: str, dimensions: int | None = None) -> list[str]:
            return []

        def unusable_settings(self, build_id: str | None) -> str:
            return ""

    sink = Settable()
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), lambda _home: sink)
    commit(home.root, "p1", source("docs/b.md", "a boat"))
    home.rebuild()
    with live_build(home, "memory") as build:
        build.replace([Family(projected(source("docs/b.md", "a boat")), home.encoder.encode(["a cat"]))])
        build.flush()
    assert home.sync().sinks["memory"].settings == changed.names
    assert home.verify(deep=True).ok is repaired


class Rounding(HashEncoder):
    """Vectors differ from those in float32 by the rounding of bfloat16, and differ in each batch."""

    batches = 0

    def __init__(self) -> None:
        super().__init__(dimension=8, precision="bfloat16")

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        return super().encode(texts)

    def vector(self, text: str) -> Vectors:
        vector = super().vector(text)
        return vector + np.float32(0.01) * np.roll(vector, 1 + self.batches % 2)


def test_vector_of_another_precision_or_batch_is_no_difference(tmp_path: Path) -> None:
    """For example after a rollback of a rebuild in the other precision. A vector of another text is still wrong."""
    home = Home(tmp_path / "home", FolderRoot(tmp_path / "chunks"), memory())
    records, rounding = source("docs/a.md", "a cat"), Rounding()
    commit(home.root, "p1", records)
    home.encoder = rounding
    home.rebuild(deep=True)
    home.encoder = HashEncoder(dimension=8)
    home.rebuild(deep=True)
    with home.session() as session:
        roll_back(session)
    assert not home.verify(deep=True).ok, "no live vector is of float32"
    home.encoder = rounding
    assert home.verify(deep=True).ok
    (home.folder / "vectors.db").unlink()
    with home.embedder() as embedder:
        embedder.embed(projected(records), lambda _: None)
    assert rounding.batches == 2
    assert home.verify(deep=True).ok
    with live_build(home, "memory") as build:
        build.replace([Family(projected(records), np.stack([rounding.vector("a mat")]))])
        build.flush()
    assert len(home.verify(deep=True).sinks["memory"].changed) == 1


def test_vector_missing_in_the_cache_is_reported_as_unproved(home: Home) -> None:
    """It could not be compared. A rebuild computes it again and compares it."""
    home.rebuild()
    (home.folder / "vectors.db").unlink()
    found = home.verify(deep=True)
    assert [sink.unjudged for sink in found.sinks.values()] == [0, 3]
    assert not found.ok
    assert home.verify().ok
    home.rebuild()
    assert home.verify(deep=True).ok


def test_wrong_vector_beside_a_change_that_waits_is_drift(home: Home) -> None:
    """The next sync may write the changed document only."""
    home.rebuild(wrap=altering(lambda vector: vector[::-1].copy()))
    commit(home.root, "p1", source("docs/b.md", "a boat", "a new chunk", version="2", at=FEBRUARY), at=FEBRUARY)
    assert (home.verify().status, home.verify(deep=True).status) == ("behind", "drift")


def test_lost_vectors_of_held_sources_are_no_drift(home: Home) -> None:
    """No run could compute them, so the verify would never end without drift."""
    commit(home.root, "p2", source("docs/held.md", "a bird", "a fish"))
    home.rebuild()
    home.root.chunks_file("p2").unlink()
    home.root.manifest_file("p2").unlink()
    (home.folder / "vectors.db").unlink()
    home.sync(scan=True, deep=True)
    assert home.verify(deep=True).ok


def test_vectors_of_held_sources_are_not_compared(home: Home) -> None:
    home.rebuild(wrap=altering(lambda vector: vector[::-1].copy()))
    assert not home.verify(deep=True).ok
    home.root.chunks_file("p1").unlink()
    home.root.manifest_file("p1").unlink()
    found = home.verify(deep=True)
    assert (found.ok, found.held) == (True, 2)
