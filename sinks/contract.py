"""The two interfaces through which every index is written. The docstrings are the contract.

A build is the documents of an index in one engine; a rebuild creates a new one. A `Sink` is an engine that stores
builds. A `Build` is a build opened for writing. Every sink, ours or another package's, passes `sinks.conformance`.

A family is all documents of one source; they share a `parent_id`. Foreign documents are those that another program
wrote. The home is the folder with our records: the receipts say what each build has confirmed, and the pointer says
which builds are live.

Rules for all methods:

- Errors are `sinks.errors`: `Transient` (the same call may succeed later) or `Refused`. A missing build raises
  `BuildMissing`, an unreadable one `BuildBroken`; only such builds are created again. Any call may be repeated after
  an error. Repeating a call that had succeeded changes nothing.
- Retry, throttling and fault recording wrap a sink; they are not branches inside it.
- Only the process with the home's lock writes to a build.
- One thread at a time uses a build, but not always the same one. Nothing in it may be bound to the thread that created
  it. A connection of `sqlite3` needs `check_same_thread=False`.
- Readers work during writes. They always find a family that exists before and after the write.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chunksink.chunkbus.errors import NotCanonical
from chunksink.sinks.document import Document, Family, Vectors, hashes_of_content

NO_PARENT = ""
"""The `parent_id` reported for foreign documents that have none. `delete` and `of_families` accept it."""


@dataclass(frozen=True)
class Marker:
    """Which home and build the content belongs to. Stored in the build, so that copies and renamed builds keep it."""

    home_id: str
    build_id: str
    projection_version: int
    stamp: str = ""
    """Changes with every confirmed write, so that an older copy is recognised."""


@dataclass(frozen=True)
class RefusedDocument:
    """A document that the engine does not accept, and why. Its siblings are stored; its old version is removed."""

    id: str
    parent_id: str
    reason: str


@dataclass(frozen=True, eq=False)
class Stored:
    """One document as stored in the engine. A missing hash is "".

    With `content=True` a scan also reads `document` and computes both hashes from it. If the content is not in our
    form, `document` is None and the hashes are "", so that the document counts as changed. A sink that stores no text
    returns the stored hash of the text. With `vectors=True` a scan reads `vector`.
    """

    id: str
    parent_id: str
    document_hash: str
    text_hash: str
    document: Document | None = None
    vector: Vectors | None = None
    damage: str = ""
    """Why searches may miss this document although it is stored; "" if they find it. Only with `content=True`. The
    document counts as changed, and replacing its family repairs it."""

    @classmethod
    def with_content(
        cls, id: str, parent_id: str, read: Callable[[], Document], vector: Vectors | None = None, damage: str = ""
    ) -> "Stored":
        """The document that `read` returns, and its hashes. If no sink wrote the document, `read` or hashing may fail:
        then both hashes are "", so that it counts as changed."""
        try:
            document = read()
            return cls(id, parent_id, *hashes_of_content(document), document, vector, damage)
        except (ValueError, NotCanonical):
            return cls(id, parent_id, "", "", None, vector, damage)

    @classmethod
    def of_fields(
        cls, id: str, fields: Mapping[str, Any], document: Document | None, vector: Vectors | None = None
    ) -> "Stored":
        """A document with these fields. Both hashes are computed from `document`, which was made from the fields;
        without it they are taken from the fields. Any program may have written those, so a hash or parent that is not a
        string counts as missing."""
        named = (fields.get(name) for name in ("parent_id", "document_hash", "text_hash"))
        parent_id, of_document, of_text = (value if isinstance(value, str) else "" for value in named)
        if document is not None:
            return cls.with_content(id, parent_id, lambda: document, vector)
        return cls(id, parent_id, of_document, of_text, None, vector)

    def hashes(self) -> tuple[str, str, str, str]:
        return self.id, self.parent_id, self.document_hash, self.text_hash


class Build(Protocol):
    """One build of one sink, opened for writing.

    Optional: `SupportsScrub`, `SupportsSearchSettings`, `SupportsUnchanged`, `SupportsWarmUp`.
    """

    def marker(self) -> Marker | None:
        """The marker, read from the engine; None if there is none."""

    def sign(self, marker: Marker) -> None:
        """Store this marker durably in place of any other."""

    def count(self) -> int:
        """How many documents the engine has now, including foreign ones."""

    def replace(self, families: Sequence[Family]) -> int:
        """Replace these families. May return before anything is done. Returns how many documents it sends.

        A sink may skip a document that the engine already has with the same id and `document_hash`, unless the family's
        `rewrite` names it. After the engine has confirmed the documents, the sink removes all other documents of these
        families. A document that has moved to another family is not removed, because the engine has it under
        its new family now. A refused document does not affect the others. If one call has a family twice, only the
        later one counts. So the parts of a large family come in separate calls (`Family.first`, `Family.last`); its
        other documents are removed only after the last part.
        """

    def delete(self, parent_ids: Sequence[str]) -> None:
        """Remove all documents of these families. May return before that is done. Absent families are not an error."""

    def flush(self) -> list[RefusedDocument]:
        """Return when all calls since the last flush are done and would survive a kill; raise if that fails.

        Returns the documents refused since the last successful flush; each is reported once.
        """

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        """The stored documents of these families, as `scan` reads them. Absent families are not an error."""

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        """Every stored document once, read from the engine in any order and in bounded memory.

        Must see all that the last flush confirmed. Nothing is written during a scan.
        """

    def close(self) -> None:
        """Release the engine. Writes since the last flush may be lost. May be called twice."""


class Sink(Protocol):
    """An engine that stores builds.

    Optional, in `sinks.capabilities`: `SupportsReader`, `SupportsPublicName`, `SupportsSettings`, `SupportsAddress`,
    `SupportsVersion`, `SupportsWriteCheck`, `SupportsPrepare`.
    """

    @property
    def name(self) -> str:
        """The name of the sink in messages and receipts, such as `fts`."""

    @property
    def wants_vectors(self) -> bool:
        """Whether families need vectors. If False, the sink ignores them."""

    def create(self, marker: Marker, dimensions: int | None = None) -> Build:
        """Create, sign and open the build `marker.build_id`. `dimensions` is the length of its vectors.

        Opens an existing build unchanged. Signs it only if it has no marker: then its creator was killed. The build may
        belong to another home: the caller must compare `marker()` with its own marker.
        """

    def open(self, build_id: str) -> Build:
        """Open an existing build. Raises `BuildMissing`; never creates one."""

    def builds(self) -> list[str]:
        """The sorted ids of all builds, including unfinished ones."""

    def flip(self, old: str | None, new: str) -> None:
        """Move the sink's public name from `old` to `new` in one step, for other programs.

        Raises `BuildMissing` if `new` does not exist. Does nothing if `new` is already live. Raises `Refused` if
        any build but `old` is live. A sink without a public name only checks that `new` exists: readers follow the
        home's pointer.
        """

    def drop(self, build_id: str) -> None:
        """Remove a build and all its content for good. An absent build is not an error."""

    def close(self) -> None:
        """Release the engine. May be called twice."""
