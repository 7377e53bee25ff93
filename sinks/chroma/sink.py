"""The Chroma sink: vectors with their documents."""

from functools import partial
from pathlib import Path
from typing import cast

from chunksink.sinks.chroma.build import ChromaBuild
from chunksink.sinks.chroma.folder import Folder
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.chroma.server import Server
from chunksink.sinks.chroma.worker import Worker, WorkerBuild
from chunksink.sinks.contract import Build, Marker
from chunksink.sinks.errors import BuildMissing


class ChromaSink:
    """Vector builds in a folder or on a server. Without `store_text` writing is faster, but Chroma has no texts."""

    name = "chroma"
    wants_vectors = True

    def __init__(self, place: Folder | Server, *, store_text: bool = True) -> None:
        self._place = place
        self._store_text = store_text

    def create(self, marker: Marker, dimensions: int | None = None) -> Build:
        del dimensions  # Chroma takes those of the first vector
        return ChromaBuild(self._place.create(marker), self._store_text)

    def open(self, build_id: str) -> Build:
        return ChromaBuild(self._place.open(build_id, writing=True), self._store_text)

    def reader(self, build_id: str) -> ChromaReader:
        return ChromaReader(lambda: self._place.open(build_id, writing=False))

    def builds(self) -> list[str]:
        return self._place.builds()

    def flip(self, old: str | None, new: str) -> None:
        """Only checks that `new` exists: Chroma cannot rename in one step, so there is no public name. Readers find the
        live build in the records of the home."""
        del old
        if new not in self.builds():
            raise BuildMissing(f"Chroma has no build {new}")

    def drop(self, build_id: str) -> None:
        self._place.drop(build_id)

    def address(self, build_id: str) -> dict[str, str]:
        return self._place.address(build_id)

    def version(self) -> str:
        return self._place.version()

    def close(self) -> None:
        """Nothing to do: builds and readers close their own clients."""


class EmbeddedChromaSink(ChromaSink):
    """Builds in a folder. After `prepare`, a separate process fills the next new build.

    Starting that process takes a second, which pays off only for many writes. Other builds are written in this process.
    """

    def __init__(self, root: Path, *, store_text: bool = True) -> None:
        super().__init__(Folder(root), store_text=store_text)
        self._start = partial(Worker, root, store_text=store_text)
        self._spare: Worker | None = None

    def prepare(self) -> None:
        self._spare = self._spare or self._start()

    def create(self, marker: Marker, dimensions: int | None = None) -> Build:
        worker, self._spare = self._spare, None
        return super().create(marker, dimensions) if worker is None else cast(Build, WorkerBuild(worker, marker))

    def close(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.discard()
