"""Runs the command line in this process and in its own folder, with test encoders instead of models."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.manifest import Tombstone
from chunksink.command_line.cli import run
from chunksink.command_line.exits import Exit
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.state import Generation, State
from chunksink.sinks.contract import Stored
from chunksink.sinks.registry import open_sink
from tests.embeddings.helpers import HashEncoder
from tests.journey.support import Ended
from tests.support.bus import JANUARY, commit, parent_of
from tests.support.home import PoisonedEncoder
from tests.support.prepared import Prepared


class Models:
    """The test encoders by model name, and the names that were loaded."""

    def __init__(self) -> None:
        self.known: dict[str, HashEncoder] = {
            DEFAULT_MODEL: PoisonedEncoder(dimension=8, name=DEFAULT_MODEL),
            "other": HashEncoder(dimension=12, name="other"),
        }
        self.loaded: list[str] = []

    def load(self, settings: EncoderSettings, **_options: Any) -> HashEncoder:
        self.loaded.append(settings.model)
        return self.known[settings.model]

    def take_texts(self) -> list[str]:
        """The texts that all models have embedded since the last call."""
        texts = [text for encoder in self.known.values() for text in encoder.asked]
        for encoder in self.known.values():
            encoder.asked.clear()
        return texts


class Shell:
    """Runs commands in a folder; chunks and home have their default names."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], prepared: Prepared) -> None:
        self.folder = folder
        self._prepared = prepared
        self.root = FolderRoot(folder / "chunks")
        self.home = folder / ".chunksink"
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ended:
        self._capsys.readouterr()
        code = run(list(arguments))
        return Ended(code, *self._capsys.readouterr())

    def begin(self, name: str, *commands: str, **partitions: Iterable[Iterable[Record]]) -> "Shell":
        """Commit these partitions and run these commands. The result of each `name` is made once and copied."""

        def build() -> None:
            for key, sources in partitions.items():
                self.commit(key, *sources)
            for command in commands:
                ended = self(*command.split())
                assert ended.code == Exit.OK, ended

        self._prepared.into(self.folder, name, build)
        return self

    def synced(self, **partitions: Iterable[Iterable[Record]]) -> "Shell":
        """Commit these partitions and sync."""
        for key, sources in partitions.items():
            self.commit(key, *sources)
        ended = self("sync")
        assert ended.code == Exit.OK, ended
        return self

    def commit(
        self, key: str, *sources: Iterable[Record], at: str = JANUARY, tombstones: Sequence[Tombstone] = ()
    ) -> None:
        commit(self.root, key, [record for records in sources for record in records], at=at, tombstones=tombstones)

    def remove(self, key: str) -> None:
        """Delete the files of a partition."""
        self.root.manifest_file(key).unlink()
        self.root.chunks_file(key).unlink()

    def cut_off(self, key: str) -> None:
        """Remove the end of the chunks file."""
        file = self.root.chunks_file(key)
        file.write_bytes(file.read_bytes()[:-9])

    def live(self) -> Generation:
        with State.existing(self.home) as state:
            return state.live()

    def digests(self, *options: str) -> dict[str, str]:
        """The digest of each sink. Fails if `verify` finds a difference."""
        verified = self("verify", "--json", *options)
        assert verified.code == Exit.OK, verified
        return {name: sink["digest"] for name, sink in verified.json["sinks"].items()}

    def stored(self, sink: str, build_id: str | None = None) -> list[Stored]:
        """The documents of a build, read from the engine. The default is the live build."""
        with (
            closing(open_sink(sink, self.home, {})) as opened,
            closing(opened.open(build_id or self.live().builds[sink])) as build,
        ):
            return sorted(build.scan(content=True), key=lambda found: found.id)

    def lose(self, name: str) -> None:
        """Delete the documents of a source from fts, as another program might."""
        build_id = self.live().builds["fts"]
        with closing(open_sink("fts", self.home, {})) as sink, closing(sink.open(build_id)) as build:
            build.delete([parent_of(name)])
            build.flush()

    def texts(self, sink: str = "fts", build_id: str | None = None) -> list[str]:
        found = [stored.document for stored in self.stored(sink, build_id)]
        return sorted(document.text for document in found if document is not None)

    def files(self) -> dict[str, int]:
        """A hash of every file of the engines in the home, except Chroma: opening it changes its files."""
        return {
            str(file): hash(file.read_bytes())
            for engine in ("fts", "jsonl")
            for file in (self.home / engine).rglob("*")
            if file.is_file() and not file.name.endswith(("-shm", "-wal", ".lock"))
        }


def write(shell: Shell, name: str, text: str | bytes) -> Path:
    """A source in the shell's folder."""
    path = shell.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
