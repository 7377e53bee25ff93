"""An engine whose content differs from what was sent is found before it goes live."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild import executor
from chunksink.rebuild.errors import NotVerified
from chunksink.sinks.contract import Stored
from chunksink.sinks.document import Document, Family
from tests.conftest import sampled
from tests.support.bus import commit, parent_of, projected, source
from tests.support.home import Home, PoisonedEncoder
from tests.support.local_engines import chroma, fts, memory
from tests.support.watched_sinks import Wrap, WrappedBuild, with_builds

Lie = Callable[[Family], Family | None]


class LyingBuild(WrappedBuild):
    """Writes falsified families to a real build."""

    def __init__(self, build: Any, lie: Lie) -> None:
        super().__init__(build)
        self._lie = lie

    def replace(self, families: Sequence[Family]) -> int:
        changed = [self._lie(family) for family in families]
        return int(self._build.replace([family for family in changed if family is not None]))


def lying(engine: str, lie: Lie) -> Wrap:
    return with_builds(engine, lambda build: LyingBuild(build, lie))


def about_the_victim(change: Callable[[Document], Sequence[Document]]) -> Lie:
    """A falsified document: the first one that contains `victim`."""

    def falsify(family: Family) -> Family | None:
        if not any("victim" in document.text for document in family.documents):
            return family
        changed = list(_changed(family, change))
        if not changed:
            return None
        vectors = None if family.vectors is None else np.stack([family.vectors[row] for row, _ in changed])
        return Family([document for _, document in changed], vectors)

    return falsify


def _changed(family: Family, change: Callable[[Document], Sequence[Document]]) -> Iterator[tuple[int, Document]]:
    for row, document in enumerate(family.documents):
        for changed in change(document) if "victim" in document.text else [document]:
            yield row, changed


def altered(**fields: object) -> Lie:
    return about_the_victim(lambda document: [msgspec.structs.replace(document, **fields)])


LIES: dict[str, Lie] = {
    "drops it": about_the_victim(lambda document: []),
    "adds one": about_the_victim(lambda document: [document, msgspec.structs.replace(document, id="stranger")]),
    "gives it another id": altered(id="stranger"),
    "alters its text": altered(text="a victim of another kind"),
    "alters its title": altered(title="Another title"),
    "gives it to a tenant": altered(tenant_key="0" * 64),
    "alters a hash": altered(document_hash="0" * 64),
    "drops the family": lambda family: None if "victim" in family.documents[1].text else family,
    "invents a family": lambda family: (
        Family([msgspec.structs.replace(d, parent_id="f" * 64) for d in family.documents], family.vectors)
        if "victim" in family.documents[1].text
        else family
    ),
}


A = parent_of("docs/a.md")
MOVED_ON = [*source("docs/a.md", "0", "the victim", "2", version="2"), *source("docs/b.md", "3", "4")]
MOVED = projected(MOVED_ON[:3], MOVED_ON[3:])
(VICTIM,) = (document for document in MOVED if document.text == "the victim")
# The drift that a scan finds, by lie. Every other lie changes the document.
DRIFT = {
    "drops it": {f"missing {VICTIM.id} of family {A}"},
    "adds one": {f"extra stranger of family {A}"},
    "gives it another id": {f"missing {VICTIM.id} of family {A}", f"extra stranger of family {A}"},
    "drops the family": {f"missing {document.id} of family {A}" for document in MOVED if document.parent_id == A},
}
CHANGED = {f"changed {VICTIM.id} of family {A}"}


def named(error: BaseException) -> set[str]:
    """The drift that a message names."""
    return set(re.findall("(?:missing|extra|changed) [^ ]+ of family [0-9a-f]{64}", str(error)))


@pytest.fixture
def engine() -> str:
    return "memory"


@pytest.fixture
def built(engine: str, root: BusRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A live generation, and a bus that has changed since."""
    monkeypatch.setattr(executor, "EMBEDDED_AT_ONCE", 1)
    monkeypatch.setattr(executor, "WRITTEN_AT_ONCE", 1)
    home = Home(tmp_path / "home", root, fts, chroma if engine == "chroma" else memory())
    commit(root, "p1", source("docs/a.md", "first", "second"))
    home.rebuild()
    commit(root, "p1", MOVED_ON)
    return home


@pytest.mark.parametrize(
    ("engine", "lie"),
    [*sampled(product(["fts", "memory"], LIES)), *product(["chroma"], ["gives it to a tenant", "gives it another id"])],
)
def test_false_confirmation_is_found_and_the_live_generation_kept(built: Home, engine: str, lie: str) -> None:
    before, contents = built.live(), built.contents()
    with pytest.raises(NotVerified, match=engine) as found:
        built.rebuild(wrap=lying(engine, LIES[lie]))
    if lie == "invents a family":
        ids = {document.id for document in MOVED if document.parent_id == A}
        wrong = {f"missing {id} of family {A}" for id in ids} | {f"extra {id} of family {'f' * 64}" for id in ids}
        assert len(named(found.value)) == 3
        assert named(found.value) < wrong
    else:
        assert named(found.value) == DRIFT.get(lie, CHANGED)
    assert (built.live(), built.contents()) == (before, contents)
    # The next honest run continues the refused build and repairs it.
    report = built.rebuild()
    assert report.families == 2
    assert built.contents() == dict.fromkeys(contents, MOVED)
    assert {len(builds) for builds in built.builds().values()} == {2}


def test_loss_beside_a_refused_document_is_found(root: BusRoot, home: Home) -> None:
    """A receipt that names a refused document does not excuse the absence of another one."""
    home.encoder = PoisonedEncoder(dimension=8)
    commit(root, "p1", source("docs/a.md", "poison", "the victim", "third"))
    victim = projected(source("docs/a.md", "poison", "the victim", "third"))
    (victim_id,) = (document.id for document in victim if document.text == "the victim")
    for lie, kind in (("drops it", "missing"), ("alters its text", "changed")):
        with pytest.raises(NotVerified, match="memory") as found:
            home.rebuild(wrap=lying("memory", LIES[lie]))
        assert named(found.value) == {f"{kind} {victim_id} of family {A}"}
    assert len(home.rebuild().refused["memory"]) == 1


@pytest.mark.parametrize("always", [True, False])
def test_loss_after_the_confirmation_is_found(always: bool, built: Home) -> None:
    """The engine loses a family after its receipt was written. If that happens once, the same run repairs it."""
    lost: list[str] = []

    class Forgetful(WrappedBuild):
        def flush(self) -> object:
            refused = self._build.flush()
            if always or (not lost and self._build.count() > 1):
                lost.append(A)
                self._build.delete([A])
                self._build.flush()
            return refused

    before = built.live()
    if not always:
        built.rebuild(wrap=with_builds("fts", Forgetful))
        assert (lost, built.contents()["fts"]) == ([A], MOVED)
        return
    with pytest.raises(NotVerified, match=r"^fts ") as found:
        built.rebuild(wrap=with_builds("fts", Forgetful))
    assert named(found.value) == DRIFT["drops the family"]
    assert built.live() == before


@pytest.mark.parametrize(("index", "name"), [("documents_fts", "word index"), ("documents_trigrams", "trigram index")])
def test_incomplete_keyword_index_does_not_go_live(built: Home, index: str, name: str) -> None:
    """All its documents exist, and the next run repairs the index."""
    before = built.live()

    class Losing(WrappedBuild):
        def scan(self, **options: bool) -> Iterator[Stored]:
            with self._build._transaction() as connection:
                connection.execute(f"INSERT INTO {index}({index}) VALUES ('delete-all')")
            return self._build.scan(**options)

    commit(built.root, "p2", source("docs/c.md", "東京タワー"))
    with pytest.raises(NotVerified, match=r"word|trigram"):
        built.rebuild(wrap=with_builds("fts", Losing))
    assert built.live() == before
    assert built.rebuild().families == 3
    assert {len(builds) for builds in built.builds().values()} == {2}
    assert built.verify(deep=True).ok


def test_document_read_twice_is_reported(built: Home) -> None:
    """The engine has it twice, or the scan was inconsistent."""
    built.sync()

    class Repeating(WrappedBuild):
        def scan(self, **options: bool) -> Iterator[Stored]:
            shown = list(self._build.scan(**options))
            return iter([*shown, shown[0]])

    found = built.verify(wrap=with_builds("memory", Repeating))
    assert [len(found.sinks[name].extra) for name in ("fts", "memory")] == [0, 1]
    assert not found.ok
    assert built.verify().ok
