"""Each test of the conformance suite that guards a promise fails on a sink that breaks the promise."""

import inspect
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from chunksink.sinks.conformance import DIMENSIONS, SinkConformance, marker
from chunksink.sinks.contract import Marker, RefusedDocument, Stored
from chunksink.sinks.document import Document, Family
from chunksink.sinks.payload import with_usable_vectors
from tests.support.memory_sink import MemoryBuild, MemoryContent, MemoryReader, MemorySink


class ForgetsSurplus(MemoryBuild):
    def _prune(self) -> None:
        pass


class RemovesWhatItRemembers(MemoryBuild):
    """Removes only the ids that this handle wrote."""

    def _prune(self) -> None:
        mine = self.__dict__.setdefault("mine", set())
        self._take([id for id in self._replacements.surplus(self.ids_of) if id in mine])
        mine.update(self.content.documents)


class TakesItselfForAlone(MemoryBuild):
    """Assumes that a build that was empty contains only what this handle wrote."""

    def __init__(self, content: Any, wants_vectors: bool) -> None:
        super().__init__(content, wants_vectors)
        self._seen: set[str] | None = set() if not content.documents else None

    def _prune(self) -> None:
        super()._prune()
        if self._seen is not None:
            self._seen.update(self._replacements.complete())

    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return super().of_families([id for id in parent_ids if self._seen is None or id in self._seen], content=content)


class DeletesFirst(MemoryBuild):
    def _add(self, family: Family) -> None:
        self._take([d.id for d in self.content.documents.values() if d.parent_id == family.parent_id])
        time.sleep(0.05)
        super()._add(family)


class ForgetsTheWork(MemoryBuild):
    def flush(self) -> list[RefusedDocument]:
        self._queue = []
        return super().flush()


class FailsAllForOne(MemoryBuild):
    def _add(self, family: Family) -> None:
        super()._add(family)
        if with_usable_vectors(family)[1]:
            self._take([d.id for d in family.documents if d.id in self.content.documents])


class SaysNothingOfRefused(MemoryBuild):
    def flush(self) -> list[RefusedDocument]:
        super().flush()
        return []


class SaysRefusedTwice(MemoryBuild):
    def flush(self) -> list[RefusedDocument]:
        refused = super().flush()
        self._replacements.refuse(refused)
        return refused


class MergesFields(MemoryBuild):
    """Merges the fields of old and new documents, as Chroma's upsert does."""

    def _add(self, family: Family) -> None:
        merged = []
        for document in family.documents:
            old = self.content.documents.get(document.id)
            fields = (old.as_dict() if old else {}) | document.as_dict()
            merged.append(Document.from_fields(fields))
        super()._add(Family(merged, family.vectors))


class StripsText(MemoryBuild):
    def _add(self, family: Family) -> None:
        stripped = [msgspec.structs.replace(d, text=" ".join(d.text.split())) for d in family.documents]
        super()._add(Family(stripped, family.vectors))


class LosesMoved(MemoryBuild):
    """Removes a family by the ids that it once wrote, even if another family has them now."""

    def _prune(self) -> None:
        owned: dict[str, set[str]] = self.__dict__.setdefault("owned", {})
        surplus = set(self._replacements.surplus(self.ids_of))
        for parent in self._replacements.complete():
            now = {d.id for d in self.content.documents.values() if d.parent_id == parent} - surplus
            self._take([id for id in owned.get(parent, set()) - now if id in self.content.documents])
            owned[parent] = now
        super()._prune()


class TrustsHashes(MemoryBuild):
    def _add(self, family: Family) -> None:
        known = {document.document_hash for document in self.content.documents.values()}
        if any(document.document_hash not in known for document in family.documents):
            super()._add(family)


class TakesAPartForAll(MemoryBuild):
    def _add(self, family: Family) -> None:
        super()._add(replace(family, first=True, last=True))


class ListsEverything(MemoryBuild):
    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return self.scan(content=content)


class ReportsStoredHashes(MemoryBuild):
    """Returns the stored hashes with the content instead of computing them from it."""

    def scan(self, *, content: bool = False, vectors: bool = False) -> Iterator[Stored]:
        for found in super().scan(content=content, vectors=vectors):
            written = self.content.documents[found.id]
            yield replace(found, document_hash=written.document_hash, text_hash=written.text_hash)


class OmitsContentOfFamilies(MemoryBuild):
    def of_families(self, parent_ids: Sequence[str], *, content: bool = False) -> Iterator[Stored]:
        return super().of_families(parent_ids)


class IgnoresAdoption(MemoryBuild):
    def sign(self, marker: Marker) -> None:
        pass


class DeletesTooMuch(MemoryBuild):
    def delete(self, parent_ids: Sequence[str]) -> None:
        self._queue.append(lambda: self._take(list(self.content.documents)) if parent_ids else None)


class BoundToItsThread(MemoryBuild):
    """Uses one connection that belongs to the thread that opened it."""

    def __init__(self, content: Any, wants_vectors: bool) -> None:
        super().__init__(content, wants_vectors)
        self._connection = sqlite3.connect(":memory:")

    def replace(self, families: Sequence[Family]) -> int:
        self._connection.execute("SELECT 1")
        return super().replace(families)


BROKEN = [
    (ForgetsSurplus, "test_replace_removes_unrecorded_orphans"),
    (ForgetsSurplus, "test_replace_removes_old_documents"),
    (ForgetsSurplus, "test_random_edits_leave_only_the_last_versions"),
    (RemovesWhatItRemembers, "test_replace_removes_unrecorded_orphans"),
    (TakesItselfForAlone, "test_replace_removes_what_another_handle_wrote"),
    (DeletesFirst, "test_a_reader_never_finds_the_family_absent"),
    (ForgetsTheWork, "test_flush_stores_all_families"),
    (FailsAllForOne, "test_flush_refuses_only_documents_without_usable_vectors"),
    (SaysNothingOfRefused, "test_flush_refuses_only_documents_without_usable_vectors"),
    (SaysRefusedTwice, "test_flush_refuses_only_documents_without_usable_vectors"),
    (MergesFields, "test_replace_with_changed_metadata_leaves_no_old_metadata"),
    (StripsText, "test_scan_returns_unusual_texts_unchanged"),
    (LosesMoved, "test_random_edits_leave_only_the_last_versions"),
    (TrustsHashes, "test_replace_with_rewrite_ignores_stored_hashes"),
    (TakesAPartForAll, "test_old_documents_stay_until_the_last_part_is_written"),
    (ForgetsSurplus, "test_old_documents_stay_until_the_last_part_is_written"),
    (ListsEverything, "test_of_families_returns_only_the_requested_families"),
    (ReportsStoredHashes, "test_a_scan_of_content_computes_the_hashes"),
    (OmitsContentOfFamilies, "test_of_families_returns_only_the_requested_families"),
    (IgnoresAdoption, "test_the_marker_is_stored_and_can_be_changed"),
    (DeletesTooMuch, "test_delete_removes_only_the_named_families"),
    (BoundToItsThread, "test_a_build_can_be_used_by_several_threads_in_turn"),
]


class BrokenSink(MemorySink):
    def __init__(self, kind: type[MemoryBuild]) -> None:
        super().__init__()
        self._kind = kind

    def create(self, marker: Marker, dimensions: int | None = None) -> MemoryBuild:
        super().create(marker, dimensions)
        return self.open(marker.build_id)

    def open(self, build_id: str) -> MemoryBuild:
        return self._kind(self.content(build_id), True)


@pytest.mark.parametrize(("kind", "test"), BROKEN)
def test_broken_sink_when_tested_fails_the_suite(kind: type[MemoryBuild], test: str) -> None:
    with pytest.raises((AssertionError, sqlite3.ProgrammingError)):
        run(BrokenSink(kind), test)


@pytest.mark.parametrize("test", sorted({test for _, test in BROKEN}))
def test_sound_sink_when_tested_passes_the_suite(test: str) -> None:
    run(BrokenSink(MemoryBuild), test)


class SnapshotReader(MemoryReader):
    """Sees only what was there at its last `refresh`."""

    def __init__(self, content: MemoryContent) -> None:
        super().__init__(content)
        self._now = content
        self.refresh()

    def refresh(self) -> None:
        self.content = MemoryContent()
        with self._now.lock:
            self.content.documents, self.content.vectors = dict(self._now.documents), dict(self._now.vectors)


class SnapshotSink(BrokenSink):
    def reader(self, build_id: str) -> MemoryReader:
        return SnapshotReader(self.content(build_id))


def test_snapshots_of_a_reader_do_not_hide_that_a_family_was_absent() -> None:
    test = "test_a_reader_never_finds_the_family_absent"
    run(SnapshotSink(MemoryBuild), test)
    with pytest.raises(AssertionError):
        run(SnapshotSink(DeletesFirst), test)


def run(sink: MemorySink, test: str) -> None:
    signed = marker()
    given: dict[str, Any] = {
        "sink": sink,
        "connect": lambda: sink,
        "signed": signed,
        "build": sink.create(signed, DIMENSIONS),
        "bad": float("nan"),
        "texts": ["alpha one"],
        "version": "2",
        "altered": {"text": "tampered"},
    }
    method = getattr(SinkConformance(), test)
    method(**{name: given[name] for name in inspect.signature(method).parameters})
