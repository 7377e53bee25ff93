"""Tests of writing: replace, delete, flush, scan, marker, builds."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

from chunksink.sinks.capabilities import SupportsReader, capability
from chunksink.sinks.conformance.samples import (
    DIMENSIONS,
    RICH,
    UNUSUAL_TEXTS,
    family,
    fill,
    hashes_in,
    hashes_of,
    in_another_thread,
    marker,
    records,
    renamed,
    reopened,
    rewritten,
    vector,
    with_vectors,
)
from chunksink.sinks.contract import Build, Marker, Sink
from chunksink.sinks.document import Family, hashes_of_content
from chunksink.sinks.errors import BuildMissing
from chunksink.sinks.payload import unit
from chunksink.sinks.projection import project_family
from chunksink.sinks.reader import Filter, KeywordReader, VectorReader

Connect = Callable[[], Sink]

ALPHA = ["alpha one", "alpha two", "alpha three"]
BETA = ["beta one", "beta two"]


class SinkConformance:
    """Inherit it and define the fixture `connect`."""

    rounds = 25
    """The number of rounds of random edits. Set fewer for an engine that takes long to confirm each."""
    many = 700
    """Families that are written at once."""

    @pytest.fixture
    def connect(self) -> Connect:
        raise NotImplementedError(
            "define the fixture `connect`: a function that opens the sink, always on the same storage"
        )

    @pytest.fixture
    def sink(self, connect: Connect) -> Iterator[Sink]:
        sink = connect()
        yield sink
        sink.close()

    @pytest.fixture
    def signed(self) -> Marker:
        return marker()

    @pytest.fixture
    def build(self, sink: Sink, signed: Marker) -> Iterator[Build]:
        """A new, empty build."""
        build = sink.create(signed, DIMENSIONS)
        yield build
        build.close()
        sink.drop(signed.build_id)

    # --- builds and their marker ------------------------------------------------------------------------------

    def test_a_new_build_is_empty_and_signed(self, sink: Sink, build: Build, signed: Marker) -> None:
        assert (build.marker(), build.count(), hashes_in(build)) == (signed, 0, [])
        assert signed.build_id in sink.builds()

    def test_create_does_not_change_an_existing_build(self, sink: Sink, build: Build, signed: Marker) -> None:
        fill(build, [family("a", ALPHA)])
        build.close()
        again = sink.create(Marker("somebody else", signed.build_id, 99), DIMENSIONS)
        assert (again.marker(), again.count()) == (signed, 3)
        again.close()

    def test_the_marker_is_stored_and_can_be_changed(self, connect: Connect, build: Build, signed: Marker) -> None:
        adopted = Marker("home-b", signed.build_id, 7, "later")
        build.sign(adopted)
        assert build.marker() == adopted
        fill(build, [family("a", ALPHA)])
        build.close()
        with reopened(connect, signed.build_id) as again:
            assert (again.marker(), again.count()) == (adopted, 3)

    def test_drop_removes_only_the_named_build(self, sink: Sink, build: Build, signed: Marker) -> None:
        second = marker()
        other = sink.create(second, DIMENSIONS)
        fill(build, [family("a", ALPHA)])
        fill(other, [family("a", BETA)])
        assert hashes_in(build) == hashes_of([family("a", ALPHA)])
        other.close()
        sink.drop(second.build_id)
        sink.drop(second.build_id)  # dropping it again is not an error
        with pytest.raises(BuildMissing):
            sink.open(second.build_id)
        assert second.build_id not in sink.builds(), "open must not create a build"
        assert hashes_in(build) == hashes_of([family("a", ALPHA)])
        fresh = sink.create(second, DIMENSIONS)
        assert (fresh.count(), fresh.marker()) == (0, second), "a dropped build left something behind"
        fresh.close()
        sink.drop(second.build_id)

    def test_flip_to_a_missing_build_raises(self, sink: Sink, build: Build, signed: Marker) -> None:
        with pytest.raises(BuildMissing):
            sink.flip(None, marker().build_id)
        sink.flip(None, signed.build_id)
        sink.flip(None, signed.build_id)  # repeated after a crash

    def test_a_build_can_be_used_by_several_threads_in_turn(self, sink: Sink, build: Build, signed: Marker) -> None:
        """A run opens, writes, reads and closes a build in different threads, one at a time."""
        one, two = family("a", ALPHA), family("b", BETA)
        in_another_thread(build.replace, [one, two])
        assert in_another_thread(build.flush) == []
        in_another_thread(build.delete, [two.parent_id])
        assert in_another_thread(build.flush) == []
        assert in_another_thread(build.count) == 3
        assert in_another_thread(hashes_in, build, content=True) == hashes_of([one])
        in_another_thread(build.sign, signed)
        assert in_another_thread(build.marker) == signed
        in_another_thread(build.close)
        again = in_another_thread(sink.open, signed.build_id)
        fill(again, [two])
        assert in_another_thread(hashes_in, again) == hashes_of([one, two])
        in_another_thread(again.close)

    # --- stored content equals written content ----------------------------------------------------------------

    def test_flush_stores_all_families(self, connect: Connect, build: Build, signed: Marker) -> None:
        families = [family("a", ALPHA), family("b", BETA, tenant_id="t1"), family("b", BETA, tenant_id="t2")]
        assert build.replace(families) == 7
        assert build.flush() == []
        assert hashes_in(build) == hashes_of(families)
        assert hashes_in(build, content=True) == hashes_of(families), "the stored content differs from the sent content"
        assert build.count() == 7
        with reopened(connect, signed.build_id) as again:
            assert hashes_in(again) == hashes_of(families), "flush did not store the families"
        build.close()
        with reopened(connect, signed.build_id) as again:
            assert hashes_in(again) == hashes_of(families)

    def test_scan_returns_complete_documents(self, sink: Sink, build: Build) -> None:
        rich = family("folder/a.pdf", ALPHA, **RICH)
        fill(build, [rich])
        found = {stored.id: stored.document for stored in build.scan(content=True)}
        assert found == {document.id: document for document in rich.documents}
        if sink.wants_vectors:
            for stored in build.scan(vectors=True):
                assert stored.vector is not None
                text = found[stored.id].text  # type: ignore[union-attr]
                assert float(unit(stored.vector) @ vector(text)) > 0.99999

    @pytest.mark.parametrize("altered", [{"text": "tampered"}, {"title": "x"}, {"fields": {"project": "tampered"}}])
    def test_a_scan_of_content_computes_the_hashes(self, build: Build, altered: dict[str, Any]) -> None:
        """Otherwise `verify` would overlook altered content, whose stored hashes are the old ones."""
        right = family("a", ALPHA, metadata={"project": "apollo"})
        tampered = with_vectors([msgspec.structs.replace(document, **altered) for document in right.documents])
        fill(build, [tampered])
        expected = sorted((d.id, d.parent_id, *hashes_of_content(d)) for d in tampered.documents)
        assert expected != hashes_of([tampered])
        assert hashes_in(build, content=True) == expected
        found = build.of_families([tampered.parent_id], content=True)
        assert sorted(stored.hashes() for stored in found) == expected

    def test_scan_returns_unusual_texts_unchanged(self, build: Build) -> None:
        families = [family(f"unusual/{name}", [text]) for name, text in UNUSUAL_TEXTS.items()]
        fill(build, families)
        texts = {stored.id: stored.document.text for stored in build.scan(content=True) if stored.document}
        for one in families:
            assert texts[one.documents[0].id] == one.documents[0].text
        assert hashes_in(build) == hashes_of(families)

    def test_scan_returns_exact_timestamps(self, build: Build) -> None:
        """Engines change the last digit of longer numbers; such a document would count as changed in every run."""
        times = [number * step for step in (0.1, 1 / 44_100, 86_399.97) for number in range(1, 200)]
        spoken = [family(f"at {time!r}", ["x"], metadata={"timestamp_start": time}) for time in times]
        fill(build, spoken)
        assert hashes_in(build, content=True) == hashes_of(spoken)

    def test_replace_accepts_many_families_at_once(self, build: Build) -> None:
        families = [family(f"many/{number}", [f"{number} one", f"{number} two"]) for number in range(self.many)]
        fill(build, families)
        assert hashes_in(build) == hashes_of(families)
        edited = [family(f"many/{number}", [f"{number} new"], version="2") for number in range(self.many)]
        fill(build, edited)
        assert hashes_in(build) == hashes_of(edited)

    # --- replacing leaves no orphans --------------------------------------------------------------------------

    @pytest.mark.parametrize("version", ["1", "2"])
    def test_replace_removes_old_documents(self, build: Build, version: str) -> None:
        other = family("b", BETA)
        for texts in (["alpha one"], [*ALPHA, "alpha four"], ["other"] * 4, ALPHA, ALPHA[::-1]):
            fill(build, [family("a", ALPHA), other])
            edited = family("a", texts, version=version)
            fill(build, [edited])
            assert hashes_in(build, content=True) == hashes_of([edited, other]), texts

    def test_replace_removes_unrecorded_orphans(self, connect: Connect, build: Build, signed: Marker) -> None:
        """No record lists the orphans of a killed run or of another program, so the sink finds them in the build."""
        for version in "0", "1":
            orphans = family("a", [f"orphan {number}" for number in range(30)], version=version)
            fill(build, [replace(orphans, last=False)])
        build.close()
        now = family("a", ALPHA)
        with reopened(connect, signed.build_id) as again:
            fill(again, [now])
            assert hashes_in(again) == hashes_of([now])

    def test_replace_removes_what_another_handle_wrote(self, connect: Connect, build: Build, signed: Marker) -> None:
        """A handle that found the build empty once must check again."""
        first, second, kept = family("a", ALPHA, version="1"), family("a", BETA, version="2"), family("b", BETA)
        with reopened(connect, signed.build_id) as theirs:
            fill(theirs, [first, kept])
        fill(build, [second])
        assert hashes_in(build) == hashes_of([second, kept])

    def test_replace_with_rewrite_ignores_stored_hashes(self, build: Build) -> None:
        """A replacement without `rewrite` may trust the stored hashes."""
        right = family("a", ALPHA)
        wrong = [msgspec.structs.replace(document, title="somebody else's") for document in right.documents]
        fill(build, [with_vectors(wrong)])
        fill(build, [right])
        assert hashes_in(build) == hashes_of([right])
        fill(build, [rewritten(right)])
        assert hashes_in(build, content=True) == hashes_of([right])

    def test_replace_with_changed_metadata_leaves_no_old_metadata(self, build: Build) -> None:
        """This includes documents of the family whose text does not change."""
        fill(build, [family("a", ALPHA, metadata=RICH["metadata"]), family("b", BETA)])
        edited = family("a", ["edited", *ALPHA[1:]], metadata={"title": "new"})
        fill(build, [edited])
        assert hashes_in(build, content=True) == hashes_of([edited, family("b", BETA)])

    def test_random_edits_leave_only_the_last_versions(self, build: Build) -> None:
        """Families grow, shrink, and exchange contents and ids."""
        chance, now = random.Random(1), dict[str, Family]()
        sources, ids = [*"abcd", None], [f"id-{number}" for number in range(12)]
        for _ in range(self.rounds):
            members: dict[str | None, list[str]] = {source: [] for source in sources}
            for id in chance.sample(ids, len(ids)):
                members[chance.choice(sources)].append(id)
            families = {}
            for source in filter(None, members):
                texts = [chance.choice(["one", "two", id]) for id in members[source]]
                documents = project_family(records(source, texts))
                if documents:
                    pairs = zip(documents, members[source], strict=True)
                    families[source] = with_vectors([renamed(document, id) for document, id in pairs])
            build.delete([now[source].parent_id for source in now.keys() - families.keys()])
            fill(build, list(families.values()))
            now = families
            assert hashes_in(build, content=True) == hashes_of(now.values())

    def test_old_documents_stay_until_the_last_part_is_written(self, build: Build) -> None:
        old, other = family("a", [*ALPHA, *BETA]), family("b", BETA)
        fill(build, [old, other])
        new = family("a", [f"new {number}" for number in range(5)], version="2")
        ids = {document.id for document in old.documents}
        parts = [
            replace(with_vectors(new.documents[start : start + 2]), first=start == 0, last=start == 4)
            for start in (0, 2, 4)
        ]
        for part in parts:
            assert ids <= {stored.id for stored in build.scan()}
            fill(build, [part])
        assert hashes_in(build, content=True) == hashes_of([new, other])

    def test_of_families_returns_only_the_requested_families(self, build: Build) -> None:
        families = [family(name, ALPHA) for name in "abcd"]
        fill(build, families)
        asked = [families[0].parent_id, families[2].parent_id, "0" * 64]
        for content in False, True:
            found = list(build.of_families(asked, content=content))
            assert sorted(stored.hashes() for stored in found) == hashes_of([families[0], families[2]])
            assert all((stored.document is not None) is content for stored in found)

    def test_the_later_of_two_replacements_counts(self, build: Build) -> None:
        first, second = family("a", ALPHA, version="1"), family("a", BETA, version="2")
        fill(build, [first, second])  # the build has no document of the family yet
        assert hashes_in(build) == hashes_of([second])
        build.replace([first])
        build.replace([second])
        build.flush()
        assert hashes_in(build) == hashes_of([second])
        fill(build, [second, first])
        assert hashes_in(build) == hashes_of([first])

    # --- deleting ---------------------------------------------------------------------------------------------

    def test_delete_removes_only_the_named_families(self, connect: Connect, build: Build, signed: Marker) -> None:
        families = [family(name, ALPHA) for name in "abcd"]
        fill(build, families)
        build.delete([families[0].parent_id, families[2].parent_id, "0" * 64])
        build.delete([])
        assert build.flush() == []
        assert hashes_in(build) == hashes_of([families[1], families[3]])
        with reopened(connect, signed.build_id) as again:
            assert hashes_in(again) == hashes_of([families[1], families[3]]), "flush did not wait for the deletions"

    def test_the_last_call_counts_between_flushes(self, build: Build) -> None:
        one, two = family("a", ALPHA), family("b", BETA)
        build.replace([one])
        build.delete([one.parent_id])
        build.delete([two.parent_id])
        build.replace([two])
        build.flush()
        assert hashes_in(build) == hashes_of([two])

    def test_new_documents_inherit_no_old_metadata(self, sink: Sink, signed: Marker) -> None:
        labels = {"tags": ["old"], "authors": ["Nobody"], "headings": ["Gone"], "year": 1900}
        new = family("new", ALPHA)
        build = sink.create(signed, DIMENSIONS)
        fill(build, [family("old", ALPHA, metadata=labels), family("older", BETA, metadata=labels)])
        build.delete([family("older", BETA).parent_id])
        fill(build, [new])
        assert {stored.document for stored in build.scan(content=True)} >= set(new.documents)
        build.close()
        sink.drop(signed.build_id)
        build = sink.create(signed, DIMENSIONS)
        fill(build, [new])
        assert {stored.document for stored in build.scan(content=True)} == set(new.documents)
        build.close()
        sink.drop(signed.build_id)

    # --- refused documents ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_flush_refuses_only_documents_without_usable_vectors(self, sink: Sink, build: Build, bad: float) -> None:
        before, others = family("a", ALPHA), [family(f"other {number}", BETA) for number in range(3)]
        fill(build, [before])
        damaged = family("a", ["alpha one", "edited", "alpha three"])
        assert damaged.vectors is not None
        damaged.vectors[1, 0] = bad
        build.replace([others[0], damaged, *others[1:]])
        found = build.flush()
        if not sink.wants_vectors:
            assert found == []
            assert hashes_in(build) == hashes_of([damaged, *others])
            return
        bad_id = damaged.documents[1].id
        assert [(one.id, one.parent_id, bool(one.reason)) for one in found] == [(bad_id, damaged.parent_id, True)]
        assert hashes_in(build) == [row for row in hashes_of([damaged, *others]) if row[0] != bad_id]
        assert build.flush() == [], "a refused document is reported once"

    # --- readers during a replacement -------------------------------------------------------------------------

    def test_a_reader_never_finds_the_family_absent(self, connect: Connect, build: Build, signed: Marker) -> None:
        fill(build, [family("other", BETA), family("a", ALPHA)])
        sink = connect()
        readable = capability(sink, SupportsReader)
        if readable is None:
            pytest.skip("this sink has no reader")
        reader = readable.reader(signed.build_id)
        condition = [Filter("parent_id", any_of=(family("a", ALPHA).parent_id,))]
        if sink.wants_vectors and (by_vectors := capability(reader, VectorReader)) is not None:
            ask = partial(by_vectors.query, vector("round 3 chunk 0"), 5, condition)
        elif (by_words := capability(reader, KeywordReader)) is not None:
            ask = partial(by_words.search, "", 5, condition)
        else:
            pytest.skip("its reader supports neither keyword nor vector search")
        found: list[bool] = []
        done = threading.Event()

        def watch() -> None:
            while not done.is_set():
                found.append(bool(ask()))
                reader.refresh()  # one that keeps a snapshot would never see the writes

        with ThreadPoolExecutor(1) as thread:
            watching = thread.submit(watch)
            try:
                for round in range(2, 14):
                    seen = len(found)
                    while len(found) == seen and not watching.done():
                        time.sleep(0.001)
                    texts = [f"round {round} chunk {number}" for number in range(1 + round % 4)]
                    fill(build, [family("a", texts, version=str(round))])
            finally:
                done.set()
            watching.result()
        reader.close()
        assert all(found), f"absent in {found.count(False)} of {len(found)} answers"
        assert len(found) >= 12
