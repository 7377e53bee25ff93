"""What `chunksink doctor` tells of a public name on Meilisearch that is not this home's."""

from __future__ import annotations

import uuid

import meilisearch
import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.chunksink.test_doctor_command import amiss
from tests.chunksink.test_doctor_findings import checks
from tests.engines.servers import MeilisearchServer
from tests.rebuild.support import source


@pytest.fixture
def index() -> str:
    return f"d{uuid.uuid4().hex[:10]}"


@pytest.fixture
def served(shell: Shell, index: str, meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", index)
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    shell.commit("p", source("a.md", "a cat"))
    return shell


def test_another_home_took_it_over(served: Shell) -> None:
    assert served("sync").code == Exit.OK
    assert amiss(checks(served, Exit.OK)) == {}
    assert served("rebuild", "--home", "other", "--adopt").code == Exit.OK
    found = checks(served)
    assert amiss(found) == {"public name in meilisearch": "fail"}
    assert "made by another home" in found["public name in meilisearch"]["found"]
    assert served("sync", "--adopt").code == Exit.OK  # the remedy that it names
    assert amiss(checks(served, Exit.OK)) == {}


def test_it_is_taken_before_the_first_sync(served: Shell, index: str, meilisearch_server: MeilisearchServer) -> None:
    client = meilisearch.Client(meilisearch_server.url, meilisearch_server.key)
    client.wait_for_task(client.index(index).add_documents([{"id": "1", "title": "a product"}]).task_uid)
    for _ in range(2):  # the second time after a sync that was refused
        found = checks(served)
        assert amiss(found) == {"public name in meilisearch": "fail"}
        assert "something that is not ours" in found["public name in meilisearch"]["found"]
        assert found["index"]["found"] == "none yet; `chunksink rebuild` makes it"
        assert served("sync").code == Exit.ENGINE


def test_records_that_cannot_be_read_end_no_other_check(served: Shell) -> None:
    assert served("sync").code == Exit.OK
    (served.home / "state.db").write_bytes(b"garbage" * 1000)
    found = checks(served)
    assert amiss(found) == {"index": "fail", "settings of meilisearch": "warn"}
    assert "cannot be read" in found["settings of meilisearch"]["found"]
    assert {"sink meilisearch", "cache", "model"} <= found.keys()
