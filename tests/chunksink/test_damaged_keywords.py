"""Pages of a keyword build's file are damaged, wherever: verify tells, one repair mends, and nobody else is blamed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import source

pytestmark = pytest.mark.promise(4)

SOURCES = [
    source(f"docs/{number}.md", *(f"words {number} of part {part}" for part in range(3))) for number in range(60)
]
TEXTS = sorted(record["text"] for records in SOURCES for record in records)
_PAGE = 4096


@pytest.fixture
def synced(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    shell.begin("keywords", "sync", p1=SOURCES)
    return shell


def keyword_file(shell: Shell) -> Path:
    return shell.home / "fts" / shell.live().builds["fts"] / "fts.db"


def overwrite(file: Path, begin: int, end: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(begin)
        opened.write(b"\0" * (end - begin))


def pages(file: Path) -> int:
    return file.stat().st_size // _PAGE


def header(file: Path) -> None:
    overwrite(file, 100, _PAGE)


def page(number: int) -> Callable[[Path], None]:
    def harm(file: Path) -> None:
        assert number < pages(file)
        overwrite(file, number * _PAGE, (number + 1) * _PAGE)

    return harm


def empty(file: Path) -> None:
    os.truncate(file, 0)


def short(file: Path) -> None:
    os.truncate(file, 5000)


HARMS = [header, *(page(number) for number in (1, 2, 5, 9, 12, 13, 14, 15, 20, 30)), empty, short]
_IDS = ["header", *(f"page{number}" for number in (1, 2, 5, 9, 12, 13, 14, 15, 20, 30)), "empty", "short"]


@pytest.mark.parametrize("harm", HARMS, ids=_IDS)
def test_what_verify_tells_one_repair_mends(harm: Callable[[Path], None], synced: Shell) -> None:
    harm(keyword_file(synced))
    found = synced("verify")
    assert "state.db" not in found.err
    if found.code == Exit.OK:  # a page that nobody uses
        return
    assert found.code == Exit.DRIFT
    assert "`chunksink verify --repair` puts it right" in found.out + found.err
    mended = synced("verify", "--repair")
    assert mended.code == Exit.OK, mended
    assert synced.texts() == TEXTS
    assert synced("verify").code == Exit.OK
    assert synced("sync").code == Exit.OK


@pytest.mark.parametrize("harm", [header, page(1), empty, short], ids=["header", "page1", "empty", "short"])
@pytest.mark.parametrize("command", ["sync", "rebuild"])
def test_a_home_that_lost_its_records_too_begins_anew(
    harm: Callable[[Path], None], command: str, synced: Shell
) -> None:
    file = keyword_file(synced)
    for record in synced.home.glob("state.db*"):
        record.unlink()
    harm(file)
    ended = synced(command)
    assert ended.code == Exit.OK, ended
    assert synced.texts() == TEXTS
    assert synced("verify").code == Exit.OK


@pytest.mark.parametrize("command", ["sync", "plan", "forget"])
def test_the_records_are_not_blamed(command: str, synced: Shell) -> None:
    header(keyword_file(synced))
    ended = synced(command, *(["docs/1.md"] if command == "forget" else []))
    assert "state.db" not in ended.err
    if ended.code != Exit.OK:
        assert "fts.db is damaged" in ended.err
