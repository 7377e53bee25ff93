"""Refused documents in verify and repair: refused is not missing, and missing is not refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EndpointUnavailable
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild import sync
from chunksink.rebuild.errors import Brake, Removal
from chunksink.rebuild.receipts import receipts_of_live
from chunksink.rebuild.state import State
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, commit, document_id, parent_of, projected, source
from tests.support.home import Home, PoisonedEncoder, sinks_with
from tests.support.local_engines import memory
from tests.support.tampering import lose
from tests.support.watched_sinks import Calls

OLD = source("docs/a.md", "poison", "fine")


@pytest.fixture
def home(tmp_path: Path, root: FolderRoot) -> Home:
    home = Home(tmp_path / "home", root, memory())
    home.encoder = PoisonedEncoder(dimension=8)
    commit(root, "p1", [*OLD, *source("docs/b.md", "poison too")])
    home.rebuild()
    return home


def wrong(home: Home) -> tuple[int, int, int]:
    """Documents that are missing, changed and refused."""
    found = home.verify().sinks["memory"]
    return len(found.missing), len(found.changed), len(found.refused)


def try_again(home: Home) -> None:
    with State.existing(home.folder) as state:
        assert receipts_of_live(state)["memory"].retry_dead_letters() == 2


def test_document_waiting_to_be_sent_again_is_still_refused(home: Home) -> None:
    assert wrong(home) == (0, 0, 2)
    try_again(home)
    assert wrong(home) == (0, 0, 2)
    assert home.verify().ok
    lose(home, "memory", [document for document in projected(OLD) if document.text == "fine"])
    assert wrong(home) == (1, 0, 2)


def test_change_of_a_source_with_a_refused_document_waits_for_a_sync(home: Home) -> None:
    commit(home.root, "p1", [*source("docs/a.md", "poison", "new", version="2", at=FEBRUARY)], at=FEBRUARY)
    assert home.verify().status == "behind"
    lose(home, "memory", [document for document in projected(OLD) if document.text == "fine"])
    assert home.verify().status == "drift"


def test_repair_sends_documents_that_wait_for_it(home: Home) -> None:
    try_again(home)
    home.encoder = HashEncoder(dimension=8)
    home.sync(scan=True)
    assert len(home.contents()["memory"]) == 3
    with State.existing(home.folder) as state:
        assert receipts_of_live(state)["memory"].dead_letters() == []


def test_refused_document_that_came_in_another_version_is_missing(home: Home) -> None:
    """A dead letter of an earlier version does not count."""
    new = source("docs/a.md", "good", "fine", version="2", at=FEBRUARY)
    for was, now in zip(OLD, new, strict=True):
        now["chunk_id"] = was["chunk_id"]
        del now["hashes"]["chunk_object_hash"]
    assert new[0]["document_id"] == document_id("docs/a.md", "2")
    commit(home.root, "p1", [*new, *source("docs/b.md", "poison too")], at=FEBRUARY)
    assert wrong(home) == (1, 1, 2)


def test_refused_documents_of_a_held_source_do_not_wait_forever(home: Home) -> None:
    """Otherwise every run would scan the engine."""
    try_again(home)
    home.root.chunks_file("p1").unlink()
    home.root.manifest_file("p1").unlink()
    assert sinks_with(home.sync(), "scanned") == ["memory"]
    assert sinks_with(home.sync(), "scanned") == []
    assert len(home.verify().sinks["memory"].refused) == 2


def test_rebuild_with_many_refusals_does_not_go_live(tmp_path: Path, root: FolderRoot) -> None:
    home = Home(tmp_path / "other", root, memory())
    texts = [f"text {number}" for number in range(30)]
    commit(root, "p1", source("docs/a.md", *texts))
    home.rebuild()
    before = home.live()
    commit(root, "p1", source("docs/a.md", *[f"poison {text}" for text in texts[:20]], *texts[20:], version="2"))
    home.encoder = PoisonedEncoder(dimension=8)
    for _ in range(2):
        with pytest.raises(Brake) as error:
            home.rebuild()
        assert error.value.removal == Removal(20, 30, "--allow-deletions 20")
        assert home.live() == before
        assert len(home.contents()["memory"]) == 30
    home.rebuild(allow_deletions=20)
    assert home.live() != before
    home.rebuild()  # the live one also lacks 20
    assert len(home.contents()["memory"]) == 10
    home.encoder = HashEncoder(dimension=8)
    home.rebuild()  # refused documents are sent again
    assert len(home.contents()["memory"]) == 30


def test_first_build_with_refusals_goes_live(tmp_path: Path, root: FolderRoot) -> None:
    home = Home(tmp_path / "other", root, memory())
    home.encoder = PoisonedEncoder(dimension=8)
    commit(root, "p1", source("docs/a.md", *[f"poison {number}" for number in range(30)], "fine"))
    home.rebuild()
    assert len(home.contents()["memory"]) == 1


class TestOfAnEndpoint:
    """A service may accept a text later, so every sync sends it again."""

    @pytest.fixture
    def served(self, home: Home) -> Home:
        home.settings = EncoderSettings("hash", endpoint="http://127.0.0.1:9/v1")
        home.encoder.asked.clear()
        return home

    def test_text_accepted_later_is_sent_by_the_next_sync(self, served: Home, tmp_path: Path) -> None:
        served.encoder = HashEncoder(dimension=8)
        calls = Calls()
        outcome = served.sync(wrap=calls)
        assert outcome.sinks["memory"].written == 2
        assert sorted(served.encoder.asked) == ["poison", "poison too"]
        assert served.refused() == {"memory": []}
        assert len(served.contents()["memory"]) == 3

    def test_repeated_refusal_writes_nothing_again(self, served: Home) -> None:
        for _ in range(2):
            served.encoder.asked.clear()
            calls = Calls()
            served.sync(wrap=calls)
            assert calls == []
            assert sorted(served.encoder.asked) == ["poison", "poison too"]
        assert wrong(served) == (0, 0, 2)

    def test_only_sources_with_an_accepted_text_are_written(self, served: Home) -> None:
        served.encoder = TakesOne(dimension=8)
        calls = Calls()
        served.sync(wrap=calls)
        assert calls.sent("memory") == [parent_of("docs/b.md")]
        assert wrong(served) == (0, 0, 1)

    def test_many_refused_texts_are_retried_in_turn(self, served: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sync, "_RETRIED_TEXTS", 1)
        for _ in range(2):
            served.sync()
        assert sorted(served.encoder.asked) == ["poison", "poison too"]

    def test_unreachable_endpoint_does_not_fail_a_sync_without_work(self, served: Home) -> None:
        served.encoder = Silent(dimension=8)
        assert served.sync().failed == {}
        assert wrong(served) == (0, 0, 2)

    def test_local_model_is_not_asked_again(self, home: Home) -> None:
        home.encoder.asked.clear()
        home.sync()
        assert home.encoder.asked == []


class TakesOne(PoisonedEncoder):
    def encode(self, texts: Sequence[str]) -> Vectors:
        rows = super().encode(texts)
        taken = [text == "poison too" for text in texts]
        rows[taken] = HashEncoder.encode(self, texts)[taken]
        return rows


class Silent(HashEncoder):
    def encode(self, texts: Sequence[str]) -> Vectors:
        raise EndpointUnavailable("nobody answers")
