"""The two interfaces that everything else writes an index through. The comments are the contract.

A `Sink` is one engine as a place where builds lie. A `Build` is one build in it, opened for writing. Every sink,
ours or another package's, passes `sinks.conformance`.

What holds for all of it:

- Errors are `sinks.errors`: `Transient` (the same call may go through later) or `Refused`. After either, every call
  may be repeated: repeating one that had already been done changes nothing.
- Retry, throttling and fault recording wrap a sink; they are not branches inside it.
- A build is written by one process. Who may write is decided elsewhere (the home's lock).
- A build is used by one thread at a time, and seldom by one only: it is opened in one, written in others, scanned and
  closed in yet others. Nothing in it may be bound to the thread that made it, as a connection of `sqlite3` is without
  `check_same_thread=False`.
- Readers are served all the time, and at no moment find a family absent that is there before and after.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from chunksink.sinks.document import Document, Family, Vectors

NO_PARENT = ""
"""Stands for the `parent_id` of what somebody else put into a build without one; `delete` takes it too."""


@dataclass(frozen=True)
class Marker:
    """Whose build it is. Stored in the build, so that it goes where the content goes, whatever that is then called."""

    home_id: str
    build_id: str
    projection_version: int
    stamp: str = ""
    """Another one after each run that wrote to it, so that an older copy of it is known for one."""


@dataclass(frozen=True)
class RefusedDocument:
    """A document that the engine will not take, with the reason in words. Its siblings are in, its old version gone."""

    id: str
    parent_id: str
    reason: str


@dataclass(frozen=True, eq=False)
class Stored:
    """One document as the engine holds it. The hashes are "" where the build holds none.

    With `content=True` the scan reads `document` too and computes `text_hash` and `document_hash` from it, as far
    as the sink stores what they are made of; with `vectors=True` it reads `vector`.
    """

    id: str
    parent_id: str
    document_hash: str
    text_hash: str
    document: Document | None = None
    vector: Vectors | None = None
    damage: str = ""
    """With `content=True`: why it may not be found by a search although it stands there, in words; "" where it is.
    Such a document counts as changed, and to replace its family puts that right."""

    def hashes(self) -> tuple[str, str, str, str]:
        return self.id, self.parent_id, self.document_hash, self.text_hash


class Build(Protocol):
    """One build of one sink, opened for writing.

    Optional: `SupportsScrub`, `SupportsUnchanged`, `SupportsSearchSettings`.
    """

    def marker(self) -> Marker | None:
        """Whose build it is, asked of the engine; None where it does not say."""

    def sign(self, marker: Marker) -> None:
        """Make it the build of `marker`, durably, whatever it said before."""

    def count(self) -> int:
        """How many documents the engine holds now, of whatever origin."""

    def replace(self, families: Sequence[Family]) -> int:
        """Put families in the place of what the build holds of them. May return before anything is done.

        Returns how many documents the engine is sent.

        A sink may list what it holds and leave out documents that it holds with the same id and `document_hash`, except
        those that the family names in `rewrite`. When the engine has confirmed the documents that were sent, everything
        else that it then lists of these families is removed. A document that moved to another family carries that
        family by then and is safe. A document that the engine refuses is left out, without hindering the others. Of two
        replacements of one family the later one counts.
        """

    def delete(self, parent_ids: Sequence[str]) -> None:
        """Remove families, all that the engine holds of them. May return before. Absent ones are no error."""

    def flush(self) -> list[RefusedDocument]:
        """Return when everything asked for since the last flush is done and survives a kill; raise if it is not.

        Returns the documents that were refused since the last flush that returned; each is reported once.
        """

    def held(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        """What the engine really holds of these families, read as `scan` does. Absent ones are no error.

        Must see all that the last flush confirmed. Nothing is written while it is being read.
        """

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        """Everything that the engine really holds, in any order, each document once, in bounded memory.

        Must see all that the last flush confirmed. Nothing is written while it is being read.
        """

    def close(self) -> None:
        """Let go of the engine. What was not flushed may be lost. May be called twice."""


class Sink(Protocol):
    """One engine as a place where builds lie.

    Optional, in `sinks.capabilities`: `SupportsReader`, `SupportsPublicName`, `SupportsSettings`, `SupportsAddress`,
    `SupportsVersion`, `SupportsPrepare`.
    """

    @property
    def name(self) -> str:
        """Names the sink in messages and receipts: `fts`, `chroma`."""

    @property
    def wants_vectors(self) -> bool:
        """Whether families need vectors. A sink that wants none ignores them."""

    def create(self, marker: Marker, dimensions: int | None = None) -> Build:
        """Make the build `marker.build_id`, sign it, open it. `dimensions` is the length of its vectors.

        Where it is there already it is opened as it is; only a build without any marker (its maker was killed in
        between) is signed. So the caller compares `marker()`, and nobody's build is taken over in passing.
        """

    def open(self, build_id: str) -> Build:
        """Open a build that is there; `BuildMissing` where it is not. Never makes one."""

    def builds(self) -> list[str]:
        """Ids of all builds that this sink holds, sorted; also of unfinished ones."""

    def flip(self, old: str | None, new: str) -> None:
        """Make `new` what other programs reach under the sink's public name, in one step; `old` was it before.

        `BuildMissing` where `new` is not there. Asks what is live first: where it is `new` already nothing happens,
        where it is neither, `Refused`. A sink whose builds have no public name only looks whether `new` is there:
        readers open the build that the home's pointer names.
        """

    def drop(self, build_id: str) -> None:
        """Remove a build and all its content for good. An absent one is no error."""

    def close(self) -> None:
        """Let go of the engine. May be called twice."""
