"""One build on a Meilisearch server. It sends many large payloads before it waits for their tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from chunksink.sinks.contract import NO_PARENT, Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family, Vectors
from chunksink.sinks.errors import BuildMissing, Refused, RefusedData, SinkError
from chunksink.sinks.meilisearch import rows, tasks
from chunksink.sinks.meilisearch.errors import TooLarge
from chunksink.sinks.meilisearch.index_settings import EMBEDDERS
from chunksink.sinks.meilisearch.indexes import EMBEDDER, Indexes, marker_in, with_marker
from chunksink.sinks.meilisearch.tasks import Payload, PendingWork, Row
from chunksink.sinks.payload import Replacements, batches, slices_by_size, with_usable_vectors

_KEYS = 500  # families in one filter
_MAX_REFUSED = 64
_PAGE, _CONTENT_PAGE = 5000, 500


@dataclass(frozen=True)
class Limits:
    """Limits of payloads and waiting."""

    documents: int = 5000
    payload_bytes: int = 90 * 10**6
    """Meilisearch accepts 100 MB, unless its operator set less. A chunk has at most 8 MiB."""
    bytes_in_flight: int = 256 * 2**20
    """The limit of all unconfirmed payloads together, which stay in memory."""
    patience: float = 900.0
    """The longest wait in seconds without any task ending."""


class MeilisearchBuild:
    def __init__(self, indexes: Indexes, name: str, vectors: bool, limits: Limits) -> None:
        self._indexes = indexes
        self._connection = indexes.connection
        self._path = f"/indexes/{name}"
        self._name = name
        self._limits = limits
        self._vectors = vectors
        self._payload_bytes = limits.payload_bytes
        self._replacements = Replacements()
        self._pending = PendingWork(self._replacements)

    def marker(self) -> Marker | None:
        return marker_in(self._connection.get(f"{self._path}/settings/synonyms"))

    def sign(self, marker: Marker) -> None:
        synonyms = with_marker(self._connection.get(f"{self._path}/settings/synonyms"), marker, self._indexes.public)
        self._indexes.change_settings(self._name, {"synonyms": synonyms})
        if not self._indexes.has_our_primary_key(self._name):
            raise self._removed()

    def count(self) -> int:
        return int(self._connection.get(f"{self._path}/stats")["numberOfDocuments"])

    def replace(self, families: Sequence[Family]) -> int:
        stored, embedder = self._stored_hashes(families), self._embedder()
        families = self._replacements.begin(families)
        self._replacements.add(families)
        latest: dict[str, Row] = {}  # an id in two families goes to the later one
        for family in families:
            for document, vector in self._with_usable_vectors(family, embedder):
                if (document.parent_id, document.document_hash) in stored and document.id not in family.rewrite:
                    continue
                if (flaw := rows.refusal_reason(document)) is None:
                    latest[document.id] = (document, rows.line(document, vector, embedder))
                else:
                    self._refuse(document, flaw)
        documents = list(latest.values())
        sizes = [len(line) for _, line in documents]
        for part in slices_by_size(sizes, self._limits.documents, self._payload_bytes):
            payload = Payload(documents[part])
            if self._pending.payloads and self._pending.size() + sum(sizes[part]) > self._limits.bytes_in_flight:
                self._await_payloads()
            self._pending.payloads.append(payload)
            self._send(payload)
        return len(documents)

    def delete(self, parent_ids: Sequence[str]) -> None:
        self._replacements.delete(parent_ids)

    def flush(self) -> list[RefusedDocument]:
        self._await_payloads()
        surplus = self._replacements.surplus(lambda families: (one.id for one in self.of_families(families)))
        deletions = [self._start_deletion(ids) for ids in batches(surplus, _PAGE)]
        tasks.require_success(self._connection, deletions, self._limits.patience)
        self._pending = PendingWork(self._replacements)
        return self._replacements.finish()

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        for some in batches([parent_id for parent_id in parent_ids if parent_id != NO_PARENT], _KEYS):
            condition = f"parent_id IN {rows.listed(some)}"
            try:
                for found in self._stored_fields(content=content, vectors=False, condition=condition):
                    yield rows.stored(found, None, content)
            except RefusedData as error:
                if self.marker() is not None:
                    raise
                raise self._removed() from error
        if NO_PARENT in parent_ids:  # no filter selects these
            yield from (found for found in self.scan(content=content) if found.parent_id == NO_PARENT)

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        embedder = self._embedder() if vectors else None
        for fields in self._stored_fields(content=content, vectors=vectors):
            yield rows.stored(fields, embedder, content)

    def mark_without_vectors(self, dimensions: int) -> None:
        """Mark documents without a vector of this length as having no vector: Meilisearch requires the mark."""
        stored = (rows.stored(each, EMBEDDER, False) for each in self._stored_fields(content=False, vectors=True))
        ids = [each.id for each in stored if each.vector is None or each.vector.shape != (dimensions,)]
        for some in batches(ids, _PAGE):  # after reading all: a write would shift the pages
            none: list[dict[str, Any]] = [{"id": id, rows.VECTORS: {EMBEDDER: None}} for id in some]
            with self._connection.translate_errors():
                task = self._connection.control.index(self._name).update_documents(none)
            tasks.require_success(self._connection, [task.task_uid], self._limits.patience)

    def _stored_fields(self, *, content: bool, vectors: bool, condition: str | None = None) -> Iterator[dict[str, Any]]:
        """Documents as stored, page by page."""
        limit = _CONTENT_PAGE if content or vectors else _PAGE
        request: dict[str, Any] = {"limit": limit, "retrieveVectors": vectors}
        if not content:
            request["fields"] = list(rows.HASHES) + ([rows.VECTORS] if vectors else [])
        if condition is not None:
            request["filter"] = condition
        offset = 0
        while True:
            page = self._connection.send(f"{self._path}/documents/fetch", {**request, "offset": offset})["results"]
            yield from page
            if len(page) < limit:
                return
            offset += limit

    def close(self) -> None:
        self._replacements = Replacements()
        self._pending = PendingWork(self._replacements)

    def _embedder(self) -> str | None:
        """The name of our embedder; None if the index has no vectors."""
        embedders = self._connection.get(f"{self._path}/settings").get(EMBEDDERS) or {}
        return EMBEDDER if EMBEDDER in embedders else None

    def _with_usable_vectors(self, family: Family, embedder: str | None) -> Iterator[tuple[Document, Vectors | None]]:
        """The documents with usable vectors: one bad vector would fail every task of the server's batch."""
        if embedder is None or not self._vectors or family.vectors is None:
            yield from ((document, None) for document in family.documents)
            return
        usable, refused = with_usable_vectors(family)
        self._replacements.refuse(refused)
        yield from usable

    def _refuse(self, document: Document, reason: str) -> None:
        self._replacements.refuse([RefusedDocument(document.id, document.parent_id, reason)])

    def _refuse_isolated(self, document: Document, reason: str) -> None:
        """Record a refused document. Raises `Refused` if the server has refused many and accepted none: then the
        documents are not the cause, and no old version may be removed."""
        self._refuse(document, reason)
        self._pending.refused_count += 1
        if self._pending.refused_count >= _MAX_REFUSED and not self._pending.any_accepted:
            raise Refused(
                f"Meilisearch at {self._connection.where} refused all {self._pending.refused_count} documents, the "
                f"last one because: {reason} No old document was removed. Check the log of Meilisearch, and any proxy"
            )

    def _send(self, payload: Payload) -> None:
        """Send a payload. If the server refuses it without a task, two halves take its place."""
        if not payload.rows:
            self._pending.payloads.remove(payload)
            return
        lines = b"".join(line for _, line in payload.rows)
        try:
            payload.task = self._connection.send_lines(f"{self._path}/documents", lines)["taskUid"]
        except RefusedData as error:
            if isinstance(error, TooLarge):
                self._payload_bytes = min(self._payload_bytes, len(lines) // 2)
            place = self._pending.payloads.index(payload)
            halves = [Payload(half) for half in _halves(payload.rows)]
            if len(halves) < 2:
                self._refuse_isolated(payload.rows[0][0], str(error))
                halves = []
            self._pending.payloads[place : place + 1] = halves
            for half in halves:
                self._send(half)

    def _await_payloads(self) -> None:
        """Send the unsent payloads and wait for all. A refused one is sent again in halves, to find bad documents."""
        unsent = [payload for payload in self._pending.payloads if payload.task is None]
        for payload, documents in zip(unsent, self._pending.outstanding(unsent), strict=True):
            payload.rows = documents
            self._send(payload)
        sent = {payload.task: payload for payload in self._pending.payloads if payload.task is not None}
        other_error: SinkError | None = None
        failed = tasks.failures(self._connection, list(sent), self._limits.patience)
        self._pending.any_accepted = self._pending.any_accepted or bool(sent.keys() - failed.keys())
        refused: dict[int, RefusedData] = {}
        for number, error in failed.items():
            if isinstance(error, RefusedData):
                refused[number] = error
            else:
                sent[number].task, other_error = None, error
        if refused and (self.marker() is None or not self._indexes.has_our_primary_key(self._name)):
            raise self._removed()
        again = self._pending.outstanding([sent[number] for number in refused])
        for (number, why), documents in zip(refused.items(), again, strict=True):
            sent[number].task = None  # counts as unsent if `_isolate` is interrupted
            self._isolate(documents, str(why))
            sent[number].task = number
        if other_error is not None:
            raise other_error
        self._pending.payloads.clear()

    def _isolate(self, documents: list[Row], reason: str) -> None:
        """Send the documents of a refused payload again in halves, to find the ones that the server refuses."""
        if len(documents) == 1:
            self._refuse_isolated(documents[0][0], reason)
            return
        for half in _halves(documents):
            try:
                lines = b"".join(line for _, line in half)
                answer = self._connection.send_lines(f"{self._path}/documents", lines)
                tasks.require_success(self._connection, [answer["taskUid"]], self._limits.patience)
                self._pending.any_accepted = True
            except RefusedData as error:
                self._isolate(half, str(error))

    def _stored_hashes(self, families: Sequence[Family]) -> set[tuple[str, str]]:
        """Family and hash of each stored document with one of these ids. Empty while writes are pending."""
        if self._pending.payloads:
            return set()
        found: set[tuple[str, str]] = set()
        ids = rows.valid_ids([document.id for family in families for document in family.documents])
        for some in batches(ids, _PAGE):
            request = {"ids": some, "limit": len(some), "fields": list(rows.HASHES)}
            page = self._connection.send(f"{self._path}/documents/fetch", request)["results"]
            stored = (rows.stored(each, None, False) for each in page)
            found.update((one.parent_id, one.document_hash) for one in stored)
        return found

    def _start_deletion(self, ids: Sequence[str]) -> int:
        return int(self._connection.send(f"{self._path}/documents/delete-batch", list(ids))["taskUid"])

    def _removed(self) -> BuildMissing:
        """The error for an index that was removed meanwhile. When documents or settings are sent, Meilisearch creates
        it again, without a primary key."""
        return BuildMissing(f"index {self._name} of Meilisearch at {self._connection.where} was removed during a write")


def _halves(documents: list[Row]) -> list[list[Row]]:
    middle = (len(documents) + 1) // 2
    return [half for half in (documents[:middle], documents[middle:]) if half]
