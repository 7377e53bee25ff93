"""`chunksink doctor` with Meilisearch: its key, its settings and its public name."""

import json
from typing import Any

import meilisearch
import pytest

from chunksink.command_line.exits import Exit
from chunksink.sinks.meilisearch.index_settings import find_settings_file
from tests.chunksink.doctor_checks import checks, is_sound, problems
from tests.chunksink.shell import Shell
from tests.engines.servers import MeilisearchServer
from tests.support.bus import source
from tests.support.damaged_files import foreign


@pytest.fixture
def served(quick_shell: Shell, public_index: Any, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A Meilisearch that has no index of this name yet."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    quick_shell.commit("p", source("a.md", "a cat"))
    return quick_shell


@pytest.mark.promise(12)
def test_meilisearch_with_a_wrong_key_fails_without_showing_it(served: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    found = checks(served, Exit.OK)
    assert (problems(found), found["settings of meilisearch"]["verdict"]) == ({}, "ok")
    monkeypatch.setenv("MEILI_MASTER_KEY", "wrong-key-0123456789")
    found = checks(served)
    assert problems(found) == {"sink meilisearch": "fail"}
    assert "wrong-key" not in json.dumps(found)


def test_unusable_settings_file_fails(
    served: Shell, public_index: Any, meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "true")
    file = served.folder / "meilisearch-settings.json"
    shipped = json.loads(find_settings_file(None).read_text())
    wrong = shipped | {"rankingRulez": [], "typoTolerance": {"enabeld": True}}
    file.write_text("{ no JSON")
    found = checks(served)
    assert problems(found) == {"sink meilisearch": "fail"}
    assert found["sink meilisearch"]["remedy"] == "correct that file"
    file.write_text(json.dumps(wrong))
    assert "typoTolerance.enabeld" in checks(served)["settings of meilisearch"]["found"]  # before there is an index
    file.write_text(json.dumps(shipped))
    assert served("sync").code == Exit.OK
    assert is_sound(served)
    server = meilisearch.Client(meilisearch_server.url, meilisearch_server.key)
    server.wait_for_task(public_index.reset_embedders().task_uid)
    found = checks(served, Exit.OK)
    assert problems(found) == {"settings of meilisearch": "warn"}
    assert found["settings of meilisearch"]["found"].endswith(": embedders")
    file.write_text(json.dumps(wrong))
    found = checks(served)
    assert problems(found) == {"settings of meilisearch": "fail"}
    assert (
        "rankingRulez (did you mean rankingRules?), typoTolerance.enabeld (did you mean enabled?)"
        in found["settings of meilisearch"]["found"]
    )
    assert served("sync").code == Exit.ENGINE  # Meilisearch itself refuses it, too


def test_public_name_of_another_home_fails(served: Shell) -> None:
    assert served("sync").code == Exit.OK
    assert served("rebuild", "--home", "other", "--adopt").code == Exit.OK
    found = checks(served)
    assert problems(found) == {"public name in meilisearch": "fail"}
    assert "made by another home" in found["public name in meilisearch"]["found"]
    assert "option `index`" in found["public name in meilisearch"]["remedy"]
    assert served("sync", "--adopt").code == Exit.OK  # the remedy that the check names
    assert is_sound(served)
    foreign(served.home / "state.db")
    found = checks(served)
    assert problems(found) == {"index": "fail"}


def test_foreign_public_name_before_the_first_sync_fails(
    served: Shell, public_index: Any, meilisearch_server: MeilisearchServer
) -> None:
    client = meilisearch.Client(meilisearch_server.url, meilisearch_server.key)
    client.wait_for_task(public_index.add_documents([{"id": "1", "title": "a product"}]).task_uid)
    for _ in range(2):  # the second time after a refused sync
        found = checks(served)
        assert problems(found) == {"public name in meilisearch": "fail"}
        assert "was not created by chunksink" in found["public name in meilisearch"]["found"]
        assert found["index"]["found"] == "none yet; `chunksink sync` creates it"
        assert served("sync").code == Exit.ENGINE
