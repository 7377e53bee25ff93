"""Changes an engine's content behind our records, through the engine's own interface."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np

from chunksink.chunkbus.layout import BusRoot
from chunksink.sinks.contract import Build, Sink
from chunksink.sinks.document import Document, Family
from tests.support.home import Home
from tests.support.local_engines import memory


def sink_of(home: Home, name: str) -> Sink:
    (found,) = (sink for sink in (maker(home.folder) for maker in home.makers) if sink.name == name)
    return found


@contextmanager
def live_build(home: Home, name: str) -> Iterator[Build]:
    """The build of a sink that readers see, open for writing."""
    with closing(sink_of(home, name)) as sink, closing(sink.open(home.live().builds[name])) as build:
        yield build


def lose(home: Home, name: str, documents: Sequence[Document]) -> None:
    """Remove these documents from the engine."""
    lost = {document.id for document in documents}
    kept = [document for document in home.contents()[name] if document.id not in lost]
    parents = sorted({document.parent_id for document in documents})
    with live_build(home, name) as build:
        build.delete(parents)
        build.flush()
        _put(home, build, [document for document in kept if document.parent_id in parents])


def put(home: Home, name: str, documents: Sequence[Document]) -> None:
    """Add these documents to the engine. Other documents of their families stay."""
    with live_build(home, name) as build:
        _put(home, build, documents)


def _put(home: Home, build: Build, documents: Sequence[Document]) -> None:
    by_family = attrgetter("parent_id")
    for parent_id, members in groupby(sorted(documents, key=by_family), key=by_family):
        changed = {document.id: document for document in members}
        held = [stored.document for stored in build.of_families([parent_id], content=True)]
        family = [*(each for each in held if each is not None and each.id not in changed), *changed.values()]
        vectors = np.stack([home.encoder.vector(document.text) for document in family])
        build.replace([Family(family, vectors, list(changed))])
    assert build.flush() == []


def altered(document: Document, **fields: object) -> Document:
    return msgspec.structs.replace(document, **fields)


def digests(home: Home) -> dict[str, str]:
    """The content of each sink, read back and printed in one line."""
    return {name: sink.digest for name, sink in home.verify().sinks.items()}


def fresh(folder: Path, root: BusRoot, home: Home) -> Home:
    """The digests of the same chunks in an empty home, which every run must reach."""
    makers = [memory() if maker(folder / "none").name == "memory" else maker for maker in home.makers]
    new = Home(folder, root, *makers)
    new.encoder = home.encoder
    new.rebuild()
    return new


def require_sound(home: Home, tmp_path: Path) -> None:
    """The engines must have the content of a new index, and the next sync must have nothing to do."""
    assert home.verify().ok
    new = fresh(tmp_path / "made-from-nothing", home.root, home)
    assert digests(home) == digests(new)
    contents = new.contents()
    assert home.contents() == contents
