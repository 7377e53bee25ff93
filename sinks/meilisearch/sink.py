"""The Meilisearch sink: large payloads, many in flight; done is what a task that succeeded says."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sinks.document import Document, Family, Vectors
from sinks.errors import NotConfirmed
from sinks.meilisearch import rows, tasks
from sinks.meilisearch.builds import Indexes, marker_in, with_marker, without_marker
from sinks.meilisearch.connection import Connection
from sinks.meilisearch.errors import RefusedData, of_task
from sinks.meilisearch.reader import MeilisearchReader
from sinks.sink import NO_PARENT, Marker, RefusedDocument, Stored
from sinks.vectors import sound_rows

EMBEDDER = "default"
_KEYS = 500  # families in one filter
_PAGE, _CONTENT_PAGE = 5000, 500


@dataclass(frozen=True)
class Limits:
    """How much goes at once."""

    documents: int = 5000
    payload_bytes: int = 32 * 2**20
    document_bytes: int = 95 * 2**20
    """Meilisearch takes payloads of 100 MB."""
    payloads_in_flight: int = 24
    patience: float = 900.0
    """Seconds without any task ending, after which the server is given up."""


class MeilisearchSink:
    """Builds on a server. `index` is the public name, under which other programs search the live build.

    `settings` are the index settings of a new build; `vectors` gives the server ours for its own hybrid search.
    """

    name = "meilisearch"

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        settings: Mapping[str, Any],
        index: str = "chunks",
        vectors: bool = True,
        limits: Limits = Limits(),
        timeout: float = 60.0,
    ) -> None:
        self.wants_vectors = vectors
        self._connection = Connection(url, key, timeout=timeout)
        self._settings = settings
        self._limits = limits
        self._indexes = Indexes(self._connection, index, limits.patience)

    def create(self, marker: Marker, dimensions: int | None = None) -> "MeilisearchBuild":
        if marker.build_id not in self._indexes.build_ids():
            self._indexes.make(marker.build_id)
        index = self._indexes.find(marker.build_id)
        if index.marker is None:
            # Settings first: documents that come later are indexed once. The marker is the last word of the making.
            wanted = {**self._settings, "embedders": self._embedders(dimensions)}
            wanted["synonyms"] = with_marker(wanted.get("synonyms", {}), marker)
            self._indexes.require_ours(index.name)
            self._indexes.change_settings(index.name, wanted)
        return self.open(marker.build_id)

    def open(self, build_id: str) -> "MeilisearchBuild":
        self._indexes.drain()
        return MeilisearchBuild(self._indexes, self._indexes.find(build_id).name, self.wants_vectors, self._limits)

    def reader(self, build_id: str) -> MeilisearchReader:
        return MeilisearchReader(self._connection, self._indexes.find(build_id).name)

    def builds(self) -> list[str]:
        return self._indexes.build_ids()

    def flip(self, old: str | None, new: str) -> None:
        self._indexes.flip(old, new)

    def drop(self, build_id: str) -> None:
        self._indexes.drop(build_id)

    def live_settings(self) -> dict[str, Any]:
        """The settings of the index under the public name, as the settings file would have them."""
        settings: dict[str, Any] = self._connection.get(f"/indexes/{self._indexes.public}/settings")
        return without_marker(settings)

    def change_live_settings(self, patch: Mapping[str, Any]) -> None:
        """Sends these settings to the index under the public name. What they touch is indexed again."""
        public = self._indexes.public
        marker = self._indexes.marker_of(public)
        if "synonyms" in patch and marker is not None:
            patch = {**patch, "synonyms": with_marker(patch["synonyms"], marker)}
        self._indexes.change_settings(public, patch)

    def close(self) -> None:
        self._connection.close()

    def _embedders(self, dimensions: int | None) -> dict[str, Any]:
        if not self.wants_vectors or dimensions is None:
            return {}
        return {EMBEDDER: {"source": "userProvided", "dimensions": dimensions}}


Row = tuple[Document, bytes]
"""A document, and the line that it is sent as."""


@dataclass
class _Payload:
    """Documents in one request; `task` is None until the server has taken it, and again when its task was lost."""

    rows: list[Row]
    task: int | None = None


@dataclass
class _Unflushed:
    """What was asked for since the last flush."""

    payloads: list[_Payload] = field(default_factory=list)
    deletions: dict[int, str] = field(default_factory=dict)
    """Task, and its filter."""
    kept: dict[str, str | None] = field(default_factory=dict)
    """The last word on each family: the hash it keeps, None where it was deleted."""
    refused: dict[str, RefusedDocument] = field(default_factory=dict)


class MeilisearchBuild:
    def __init__(self, indexes: Indexes, name: str, vectors: bool, limits: Limits) -> None:
        self._indexes = indexes
        self._connection = indexes.connection
        self._path = f"/indexes/{name}"
        self._name = name
        self._limits = limits
        self._vectors = vectors
        embedders = self._connection.get(f"{self._path}/settings").get("embedders") or {}
        self._embedder = EMBEDDER if EMBEDDER in embedders else None
        self._dimensions = embedders.get(EMBEDDER, {}).get("dimensions")
        self._asked = _Unflushed()

    def marker(self) -> Marker | None:
        return marker_in(self._connection.get(f"{self._path}/settings/synonyms"))

    def sign(self, marker: Marker) -> None:
        synonyms = with_marker(self._connection.get(f"{self._path}/settings/synonyms"), marker)
        self._indexes.change_settings(self._name, {"synonyms": synonyms})

    def count(self) -> int:
        return int(self._connection.get(f"{self._path}/stats")["numberOfDocuments"])

    def replace(self, families: Sequence[Family]) -> None:
        taken: dict[str, Row] = {}  # an id that stands twice goes to the later family
        for family in families:
            for document, vector in self._sound(family):
                line = rows.line(document, vector, self._embedder)
                flaw = rows.flaw(document, len(line), self._limits.document_bytes)
                if flaw is None:
                    taken[document.id] = (document, line)
                else:
                    self._refuse(document, flaw)
        lines = [line for _, line in taken.values()]
        documents = list(taken.values())
        for part in rows.payloads(lines, self._limits.documents, self._limits.payload_bytes):
            if len(self._asked.payloads) >= self._limits.payloads_in_flight:
                self._settle()
            payload = _Payload(documents[part])
            self._asked.payloads.append(payload)
            self._send(payload)
        self._asked.kept.update((family.parent_id, family.family_hash) for family in families)

    def delete(self, parent_ids: Sequence[str]) -> None:
        for start in range(0, len(parent_ids), _KEYS):
            self._delete(f"parent_id IN {rows.listed(parent_ids[start : start + _KEYS])}")
        if NO_PARENT in parent_ids:
            self._delete(rows.strangers())
        self._asked.kept.update(dict.fromkeys(parent_ids))

    def flush(self) -> list[RefusedDocument]:
        self._settle()
        self._finish_deletions()
        kept = {parent: hash for parent, hash in self._asked.kept.items() if hash is not None}
        parents = list(kept)
        for start in range(0, len(parents), _KEYS):
            surplus = rows.surplus({parent: kept[parent] for parent in parents[start : start + _KEYS]})
            if self._holds(surplus):
                self._delete(surplus)
        self._finish_deletions()
        refused, self._asked = list(self._asked.refused.values()), _Unflushed()
        return refused

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        limit = _CONTENT_PAGE if content or vectors else _PAGE
        asked: dict[str, Any] = {"limit": limit, "retrieveVectors": vectors}
        if not content:
            asked["fields"] = list(rows.HASHES) + ([rows.VECTORS] if vectors else [])
        offset = 0
        while True:
            page = self._connection.send(f"{self._path}/documents/fetch", {**asked, "offset": offset})["results"]
            for held in page:
                yield rows.stored(held, self._embedder if vectors else None, content)
            if len(page) < limit:
                return
            offset += limit

    def close(self) -> None:
        self._asked = _Unflushed()

    def _sound(self, family: Family) -> Iterator[tuple[Document, Vectors | None]]:
        """The documents whose vector can be sent; one bad vector would fail every task of the server's batch."""
        if self._embedder is None or not self._vectors:
            yield from ((document, None) for document in family.documents)
            return
        good, refused = sound_rows(family, self._dimensions)
        for one in refused:
            self._asked.refused[one.id] = one
        if family.vectors is not None:
            yield from ((family.documents[row], family.vectors[row]) for row in good)

    def _refuse(self, document: Document, reason: str) -> None:
        self._asked.refused[document.id] = RefusedDocument(document.id, document.parent_id, reason)

    def _send(self, payload: _Payload) -> None:
        try:
            answer = self._connection.send_lines(f"{self._path}/documents", b"".join(line for _, line in payload.rows))
        except RefusedData as error:
            self._asked.payloads.remove(payload)
            self._isolate(payload.rows, str(error))
        else:
            payload.task = answer["taskUid"]

    def _settle(self) -> None:
        """Waits for all payloads. One that failed is sent again part by part, and the document to blame left out."""
        lost = False
        for payload in [payload for payload in self._asked.payloads if payload.task is None]:
            self._send(payload)
        sent = [payload.task for payload in self._asked.payloads if payload.task is not None]
        ended = tasks.wait(self._connection, sent, self._patience)
        for payload in list(self._asked.payloads):
            task: tasks.Task = ended[payload.task] if payload.task is not None else {"status": tasks.LOST}
            if task["status"] == tasks.LOST:
                payload.task, lost = None, True
                continue
            if task["status"] != "succeeded":
                error = of_task(task.get("error"), self._connection.where)
                if not isinstance(error, RefusedData):
                    payload.task = None  # to be sent again
                    raise error
                self._isolate(payload.rows, str(error))
            self._asked.payloads.remove(payload)
        if lost:
            raise NotConfirmed(f"Meilisearch at {self._connection.where} lost tasks (cancelled or purged): write again")

    def _isolate(self, documents: list[Row], reason: str) -> None:
        """Halves what was refused, each half alone in the queue, until the document is found that is to blame."""
        current = [row for row in documents if self._is_current(row[0])]
        if len(current) == 1 == len(documents):
            self._refuse(current[0][0], reason)
            return
        middle = (len(current) + 1) // 2
        for half in (current[:middle], current[middle:]):
            if half:
                self._write_alone(half)

    def _is_current(self, document: Document) -> bool:
        """Whether nothing was asked of its family since; writing it again would undo that."""
        return self._asked.kept.get(document.parent_id, document.family_hash) == document.family_hash

    def _write_alone(self, documents: list[Row]) -> None:
        try:
            answer = self._connection.send_lines(f"{self._path}/documents", b"".join(line for _, line in documents))
            tasks.wait_for(self._connection, answer["taskUid"], self._patience)
        except RefusedData as error:
            self._isolate(documents, str(error))

    def _holds(self, condition: str) -> bool:
        """Whether there is anything to delete; a deletion that finds nothing costs the server a batch all the same."""
        asked = {"filter": condition, "limit": 1, "fields": ["id"]}
        return bool(self._connection.send(f"{self._path}/documents/fetch", asked)["results"])

    def _delete(self, condition: str) -> None:
        answer = self._connection.send(f"{self._path}/documents/delete", {"filter": condition})
        self._asked.deletions[answer["taskUid"]] = condition

    def _finish_deletions(self) -> None:
        for number, task in tasks.wait(self._connection, self._asked.deletions, self._patience).items():
            condition = self._asked.deletions.pop(number)
            if task["status"] == "succeeded":
                continue
            self._delete(condition)  # once more, for whoever flushes again
            if task["status"] == tasks.LOST:
                raise NotConfirmed(f"Meilisearch at {self._connection.where} lost task {number} (cancelled or purged)")
            raise of_task(task.get("error"), self._connection.where)

    @property
    def _patience(self) -> float:
        return self._limits.patience
