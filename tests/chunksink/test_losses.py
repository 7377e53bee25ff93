"""Lost, damaged or foreign content: `sync` or one repair restores it, or the message names the remedy."""

import os
import shutil
from collections.abc import Callable, Iterable
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Models, Shell, write
from tests.conftest import HEAVY, sampled
from tests.engines.servers import MeilisearchServer, without_leftovers
from tests.support.bus import projected, source
from tests.support.damaged_files import foreign, half, newer

SOURCES = [
    source(f"docs/{number}.md", *(f"words {number} of part {part}" for part in range(3))) for number in range(60)
]
_PAGE = 4096
PARTS = {"cache": "vectors.db*", "records": "state.db*", "fts": "fts", "chroma": "chroma"}


def losses(*parts: str) -> list[tuple[str, ...]]:
    """Each part alone, and all at once. With `make soak`, every combination."""
    numbers = range(1, len(parts) + 1) if HEAVY else (1, len(parts))
    return list(chain.from_iterable(combinations(parts, number) for number in numbers))


OF_A_SERVER = [lost for lost in losses("cache", "records", "meilisearch", "chroma") if "meilisearch" in lost]


@pytest.mark.promise(1)
@pytest.mark.parametrize("lost", losses(*PARTS), ids="+".join)
def test_sync_restores_lost_files(lost: tuple[str, ...], shell: Shell, models: Models) -> None:
    is_brought_back(shell, models, lost, lambda: lose_files(shell, lost))


@pytest.mark.promise(1)
@pytest.mark.parametrize("lost", OF_A_SERVER if HEAVY else OF_A_SERVER[:1], ids="+".join)
def test_sync_restores_a_lost_index_of_a_server(
    lost: tuple[str, ...], shell: Shell, models: Models, meilisearch_server: MeilisearchServer, public_index: Any
) -> None:
    def lose() -> None:
        with without_leftovers(meilisearch_server, public_index.uid):
            lose_files(shell, (part for part in lost if part != "meilisearch"))

    is_brought_back(shell, models, lost, lose)


def lose_files(shell: Shell, lost: Iterable[str]) -> None:
    for name in lost:
        for path in shell.home.glob(PARTS[name]):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def is_brought_back(shell: Shell, models: Models, lost: tuple[str, ...], lose: Callable[[], None]) -> None:
    for number in range(3):
        shell.commit(f"p{number}", source(f"docs/{number}.md", *(f"text {number} {part}" for part in range(3))))
    assert shell("sync").code == Exit.OK
    before = shell.digests("--deep")
    lose()
    models.take_texts()
    ended = shell("sync")
    assert ended.code == Exit.OK, ended
    computed = bool(models.take_texts())
    assert computed == ("cache" in lost and not {"records", "chroma", "meilisearch"}.isdisjoint(lost))
    # without the cache there is nothing to compare vectors with, unless they were computed again
    deep = ["--deep"] if computed or "cache" not in lost else []
    assert shell.digests(*deep) == before
    again = shell("sync", "--json").json
    assert again["chunks"] == {"written": 0, "deleted": 0}
    assert models.take_texts() == []


# -- in real engines ---------------------------------------------------------------------------------------------------


def named(shell: Shell, sink: str) -> dict[str, set[str]]:
    """The ids in verify's findings for this sink. The other sink must have no findings."""
    ended = shell("verify", "--json")
    assert ended.code == Exit.DRIFT
    assert [name for name, found in ended.json["sinks"].items() if not found["ok"]] == [sink]
    found = ended.json["sinks"][sink]
    return {what: set(found[what]) for what in ("missing", "extra", "changed")}


def done(index: Any, task: Any) -> None:
    assert index.wait_for_task(task.task_uid, timeout_in_ms=30_000).error is None


@pytest.mark.promise(1)
@pytest.mark.promise(4)
def test_repair_restores_lost_changed_and_foreign_documents_in_meilisearch(
    shell: Shell, public_index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    shell.synced(p1=SOURCES)
    sound, index = shell.digests(), public_index
    lost, changed, copied = (document.id for document in projected(*SOURCES)[:60:20])
    copy = dict(index.get_document(copied)) | {"id": "a-stranger"}
    without_vector = {"_vectors": dict.fromkeys(index.get_settings()["embedders"])}
    done(index, index.delete_document(lost))
    done(index, index.update_documents([{"id": changed, "title": "Somebody else's title"}]))
    done(index, index.add_documents([{key: copy[key] for key in copy if not key.startswith("_")} | without_vector]))
    assert named(shell, "meilisearch") == {"missing": {lost}, "extra": {"a-stranger"}, "changed": {changed}}
    assert shell("verify", "--repair").code == Exit.OK
    assert shell.digests() == sound


@pytest.mark.promise(1)
@pytest.mark.promise(4)
@pytest.mark.parametrize("what", ["one page", "all pages", *(["vectors"] if HEAVY else [])])
def test_damaged_chroma_file_fails_a_sync_and_is_repaired(what: str, shell: Shell, models: Models) -> None:
    """A sync with nothing to write still checks the build. All vectors are in the cache, so none is computed again."""
    # Chroma writes vector files for a thousand documents or more
    texts = [f"a text with the number {number}" for number in range(1200 if what == "vectors" else 60)]
    shell.synced(p1=(source(f"docs/{number}.md", *texts[number::12]) for number in range(12)))
    sound = shell.digests()
    [file] = shell.home.glob("chroma/**/data_level0.bin" if what == "vectors" else "chroma/**/chroma.sqlite3")
    held = file.read_bytes()
    if what == "vectors":
        file.write_bytes(held[: len(held) // 2])
        found = named(shell, "chroma")
        assert (len(found["missing"]), found["extra"], found["changed"]) == (len(texts), set(), set())
    else:  # written without SQLite, so that the file header does not show the change
        end = 2 * _PAGE if what == "one page" else len(held)
        file.write_bytes(held[:_PAGE] + b"\xff" * (end - _PAGE) + held[end:])
    models.take_texts()
    refused = shell("sync")
    assert (refused.code, "`chunksink verify --repair` rebuilds it" in refused.err) == (Exit.ENGINE, True)
    assert shell("verify", "--repair").code == Exit.OK
    assert shell.digests() == sound
    assert models.take_texts() == []


# -- a keyword build's file -------------------------------------------------------------------------------------------

TEXTS = sorted(record["text"] for records in SOURCES for record in records)


@pytest.fixture
def keywords(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    return shell.begin("keywords", "sync", p1=SOURCES)


def keyword_file(shell: Shell) -> Path:
    return shell.home / "fts" / shell.live().builds["fts"] / "fts.db"


def overwrite(begin: int, end: int) -> Callable[[Path], None]:
    def harm(file: Path) -> None:
        assert begin < file.stat().st_size
        with file.open("r+b") as opened:
            opened.seek(begin)
            opened.write(b"\0" * (end - begin))

    return harm


def page(number: int) -> Callable[[Path], None]:
    return overwrite(number * _PAGE, (number + 1) * _PAGE)


HARMS = {
    "header": overwrite(100, _PAGE),
    "page1": page(1),
    "empty": lambda file: os.truncate(file, 0),
    "short": lambda file: os.truncate(file, 5000),
}
PAGES = {f"page{number}": page(number) for number in (2, 5, 9, 12, 15, 20, 30)}


@pytest.mark.promise(4)
@pytest.mark.parametrize("harm", sampled((HARMS | PAGES).values()))
def test_repair_fixes_what_verify_reports(harm: Callable[[Path], None], keywords: Shell) -> None:
    harm(keyword_file(keywords))
    found = keywords("verify")
    assert "state.db" not in found.err
    assert found.code == Exit.DRIFT
    assert "`chunksink verify --repair` fixes it" in found.out + found.err
    repaired = keywords("verify", "--repair")
    assert repaired.code == Exit.OK, repaired
    assert keywords.texts() == TEXTS
    assert keywords("verify").code == Exit.OK
    assert keywords("sync").code == Exit.OK


@pytest.mark.promise(4)
@pytest.mark.parametrize(("harm", "command"), sampled(product(HARMS.values(), ["sync", "rebuild"])))
def test_home_with_lost_records_and_a_damaged_build_is_rebuilt(
    harm: Callable[[Path], None], command: str, keywords: Shell
) -> None:
    file = keyword_file(keywords)
    for record in keywords.home.glob("state.db*"):
        record.unlink()
    harm(file)
    ended = keywords(command)
    assert ended.code == Exit.OK, ended
    assert keywords.texts() == TEXTS
    assert keywords("verify").code == Exit.OK


@pytest.mark.promise(4)
@pytest.mark.parametrize("command", ["sync", "forget docs/1.md"])
def test_error_about_a_damaged_build_names_its_file(command: str, keywords: Shell) -> None:
    HARMS["header"](keyword_file(keywords))
    ended = keywords(*command.split())
    assert (ended.code, "state.db" in ended.err, "fts.db is damaged" in ended.err) == (Exit.ENGINE, False, True)


def test_plan_reads_no_part_of_a_build_that_could_be_damaged(keywords: Shell) -> None:
    HARMS["header"](keyword_file(keywords))
    assert keywords("plan").code == Exit.OK


# -- files of the jsonl sink ------------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[[Path], object]] = {
    "folder": lambda build: shutil.rmtree(build.parent),
    "build": shutil.rmtree,
    "families": lambda build: shutil.rmtree(build / "families"),
    "marker": lambda build: (build / "marker.json").write_text("{"),
    "link": lambda build: (build.parent / "current").unlink(),
}
REMEDIES = [("sync",), ("verify", "--repair"), ("rebuild",)]


@pytest.mark.parametrize(("what", "remedy"), sampled(product(LOSSES, REMEDIES)))
def test_lost_jsonl_files_are_restored(
    what: str, remedy: tuple[str, ...], shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    shell.begin("jsonl", "rebuild", p1=[source("a.md", "one", "two"), source("b.md", "three")])
    LOSSES[what](shell.home / "jsonl" / shell.live().builds["jsonl"])
    named = shell("verify")
    assert named.code in (Exit.ENGINE, Exit.DRIFT)
    assert "`chunksink verify --repair`" in named.err
    if what == "link":  # the build itself is complete
        assert "other programs do not find it" in named.err
    else:
        assert "jsonl: " in named.err
    if remedy == ("sync",) and what in ("families", "marker"):  # a plain sync does not discard existing content
        assert shell(*remedy).code == Exit.ENGINE
        return
    assert shell(*remedy).code == Exit.OK
    assert shell("verify").code == Exit.OK
    live = shell.live().builds["jsonl"]
    assert (shell.home / "jsonl" / "current").readlink() == Path(live)
    assert shell.texts("jsonl") == ["one", "three", "two"]
    assert shell("sync").code == Exit.OK


# -- files of the home -------------------------------------------------------------------------------------------------

COMMANDS = {
    "ingest.db": ["ingest notes", "ledger"],
    "state.db": ["sync", "rebuild", "plan", "verify", "status", "search note"],
}
PAIRS = sampled([(file, command) for file, commands in COMMANDS.items() for command in commands])


@pytest.fixture
def ingested(quick_shell: Shell) -> Shell:
    for number in range(60):
        write(quick_shell, f"notes/{number}.md", f"# A note\n\nabout {number}\n")
    return quick_shell.begin("ingested", "ingest notes --sync")


@pytest.mark.parametrize(("file", "command"), PAIRS)
@pytest.mark.parametrize(("harm", "expected"), [(half, "is damaged"), (foreign, "is not a database of chunksink")])
def test_damaged_or_foreign_database_has_the_drift_exit_code(
    file: str, command: str, harm: Callable[[Path], None], expected: str, ingested: Shell
) -> None:
    harm(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, ended.out) == (Exit.DRIFT, "")
    assert f"{file} {expected}" in ended.err
    assert "move it away" in ended.err


@pytest.mark.parametrize(("file", "command"), PAIRS)
def test_database_of_a_newer_chunksink_is_a_usage_error(file: str, command: str, ingested: Shell) -> None:
    newer(ingested.home / file)
    ended = ingested(*command.split())
    assert (ended.code, "upgrade" in ended.err) == (Exit.USAGE, True)
