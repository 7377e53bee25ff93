"""What a real engine lost, gained or had changed by somebody else: `verify` names exactly it, one repair mends it."""

from typing import Any

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Models, Shell
from tests.support.bus import projected, source

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(4), pytest.mark.usefixtures("models")]

SOURCES = [source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(5))) for number in range(40)]
DOCUMENTS = projected(*SOURCES)


@pytest.fixture
def index(public_index: Any, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What readers ask, with the sources in it; as somebody with the key gets at it."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    shell.synced(p1=SOURCES)
    return public_index


def named(shell: Shell, sink: str) -> dict[str, set[str]]:
    """What verify says of it; of the other one it must have nothing to say."""
    ended = shell("verify", "--json")
    assert ended.code == Exit.DRIFT
    assert [name for name, found in ended.json["sinks"].items() if not found["ok"]] == [sink]
    found = ended.json["sinks"][sink]
    return {what: set(found[what]) for what in ("missing", "extra", "changed")}


def test_all_at_once_in_meilisearch(shell: Shell, index: Any) -> None:
    sound = shell.digests()
    lost, changed, copied = DOCUMENTS[0].id, DOCUMENTS[20].id, DOCUMENTS[40].id
    copy = dict(index.get_document(copied)) | {"id": "a-stranger"}
    without_vector = {"_vectors": dict.fromkeys(index.get_settings()["embedders"])}
    done(index, index.delete_document(lost))
    done(index, index.update_documents([{"id": changed, "title": "Somebody else's title"}]))
    done(index, index.add_documents([{key: copy[key] for key in copy if not key.startswith("_")} | without_vector]))
    assert named(shell, "meilisearch") == {"missing": {lost}, "extra": {"a-stranger"}, "changed": {changed}}
    assert shell("verify", "--repair").code == Exit.OK
    assert shell.digests() == sound


def done(index: Any, task: Any) -> None:
    assert index.wait_for_task(task.task_uid, timeout_in_ms=30_000).error is None


def test_a_vector_file_of_chroma_is_cut_off(shell: Shell, models: Models) -> None:
    """A sync leaves it alone and says what to do. All of its vectors are in the cache, so none is computed again."""
    texts = [f"a text with the number {number}" for number in range(1200)]
    shell.synced(p1=(source(f"docs/{number}.md", *texts[number::12]) for number in range(12)))
    sound = shell.digests()
    [file] = shell.home.glob("chroma/**/data_level0.bin")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    found = named(shell, "chroma")
    assert (len(found["missing"]), found["extra"], found["changed"]) == (len(texts), set(), set())
    models.asked()
    refused = shell("sync")
    assert (refused.code, "`chunksink verify --repair` makes it anew" in refused.err) == (Exit.ENGINE, True)
    assert shell("verify", "--repair").code == Exit.OK
    assert shell.digests() == sound
    assert models.asked() == []


@pytest.mark.parametrize("what", ["pages", "one page"])
def test_the_database_of_chroma_is_written_over(what: str, shell: Shell) -> None:
    """Past SQLite, so that nothing in its head says so. Nothing to do is no reason not to look."""
    shell.synced(p1=SOURCES)
    sound = shell.digests()
    [file] = shell.home.glob("chroma/**/chroma.sqlite3")
    held = bytearray(file.read_bytes())
    held[4096 : len(held) if what == "pages" else 8192] = b"\xff" * ((len(held) if what == "pages" else 8192) - 4096)
    file.write_bytes(held)
    refused = shell("sync")
    assert (refused.code, "`chunksink verify --repair` makes it anew" in refused.err) == (Exit.ENGINE, True)
    assert shell("verify", "--repair").code == Exit.OK
    assert shell.digests() == sound
