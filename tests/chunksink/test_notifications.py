"""`on_failure` and `on_drift`: commands that get a JSON report on standard input."""

import json
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from chunksink import index
from chunksink.chunkbus.errors import StorageDenied
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.layout import BusRoot
from chunksink.command_line.exits import Exit
from chunksink.rebuild.locks import writing
from chunksink.sinks.registry import open_sink
from tests.chunksink.shell import Shell
from tests.engines.servers import alive, free_port
from tests.journey.support import chunksink
from tests.support.bus import source
from tests.support.waiting import eventually

SAVE = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, open(sys.argv[1], 'wb'))"
HANG = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as file:
    file.write(str(child.pid))
time.sleep(600)
"""


class Mailbox:
    """The reports that the commands received."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def configure(self, *, settings: str = "", **programs: str) -> None:
        """Each program gets the name of a file as its argument."""
        lines = ['sinks = ["fts"]', settings]
        for setting, program in programs.items():
            arguments = [sys.executable, "-c", program, str(self.file(setting))]
            lines.append(f"{setting} = {json.dumps(arguments)}")
        (self._folder / "chunksink.toml").write_text("\n".join(lines))

    def file(self, setting: str) -> Path:
        return self._folder / f"{setting}.out"

    def take(self, setting: str) -> Any:
        """The report since the last call, or None."""
        file = self.file(setting)
        if not file.exists():
            return None
        report = json.loads(file.read_bytes())
        file.unlink()
        return report


@pytest.fixture
def mailbox(shell: Shell) -> Mailbox:
    mailbox = Mailbox(shell.folder)
    mailbox.configure(on_failure=SAVE, on_drift=SAVE)
    return mailbox


def lose_everything(shell: Shell) -> None:
    sink = open_sink("fts", shell.home, {})
    sink.drop(shell.live().builds["fts"])
    sink.close()


def test_run_without_a_usable_endpoint_is_reported(
    shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost:9000")
    assert shell("sync", "--chunks", "s3://bucket/a").code == Exit.USAGE
    assert mailbox.take("on_failure")["error"] == "StorageEndpointInvalid"


@pytest.mark.parametrize("command", [["sync"], ["rebuild"], ["sync", "--watch"]])
@pytest.mark.parametrize("has_index", [False, True])
def test_run_with_a_denied_bucket_is_reported_once(
    shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch, command: list[str], has_index: bool
) -> None:
    if has_index:
        shell.synced(p1=[source("a.md", "a cat")])
    asked: list[BusRoot] = []

    def deny(root: BusRoot) -> bool:
        asked.append(root)
        raise StorageDenied("access denied")

    monkeypatch.setattr(FolderRoot, "exists", property(deny))
    assert shell(*command).code != Exit.OK
    report = mailbox.take("on_failure")
    assert (report["command"], report["error"], len(asked)) == (command[0], "StorageDenied", 1)


def test_run_that_stops_is_reported_with_its_error(shell: Shell, mailbox: Mailbox) -> None:
    shell.synced(p1=[source(f"{number}.md", f"text {number}") for number in range(20)])
    assert mailbox.take("on_failure") is None
    shell.commit("p1", source("0.md", "text 0"))
    assert shell("sync").code == Exit.BRAKE
    report = mailbox.take("on_failure")
    assert (report["command"], report["status"], report["error"]) == ("sync", "failed", "Brake")
    assert (report["home"], bool(report["message"])) == (str(shell.home), True)
    assert shell("runs", report["run_id"]).code == Exit.OK
    assert mailbox.take("on_drift") is None


def test_engine_that_fails_is_reported_with_the_report_of_the_run(
    shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", f"http://127.0.0.1:{free_port()}")
    assert shell("sync").code == Exit.ENGINE
    report = mailbox.take("on_failure")
    assert (report["command"], report["status"], "message" in report) == ("sync", "failed", False)
    assert report["generation"] == shell.live().id


def test_name_that_is_not_utf8_is_reported_with_escapes(shell: Shell, mailbox: Mailbox) -> None:
    assert chunksink(shell.folder, "ingest", "no\udcff", "--home", "home\udcff").code == Exit.USAGE
    report = mailbox.take("on_failure")
    assert "no\\udcff" in report["message"]
    assert report["home"] == f"{shell.folder}/home\\udcff"


def test_missing_chunks_are_reported_without_a_record(shell: Shell, mailbox: Mailbox) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    (shell.folder / "chunks").rename(shell.folder / "away")
    assert shell("rebuild").code == Exit.INVALID_INPUT
    report = mailbox.take("on_failure")
    assert (report["command"], report["run_id"], report["error"]) == ("rebuild", None, "InvalidBus")


def test_drift_is_reported_once_by_verify(shell: Shell, mailbox: Mailbox) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    assert shell("verify").code == Exit.OK
    shell.commit("p1", source("a.md", "a dog"))
    assert shell("verify").code == Exit.DRIFT
    assert mailbox.take("on_drift") is None, "this change only waits for a sync"
    lose_everything(shell)
    assert shell("verify").code == Exit.DRIFT
    report = mailbox.take("on_drift")
    assert (report["command"], report["status"], report["sinks"]["fts"]["missing"]) == ("verify", "drift", 1)
    assert shell("verify", "--repair").code == Exit.OK
    assert mailbox.take("on_drift")["status"] == "drift"
    assert mailbox.take("on_failure") is None


def test_unreachable_engine_is_no_drift(shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", f"http://127.0.0.1:{free_port()}")
    assert shell("verify").code == Exit.ENGINE
    assert (mailbox.take("on_drift"), mailbox.take("on_failure")["status"]) == (None, "failed")


def test_held_sources_another_active_run_and_another_plan_are_no_failure(
    shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    shell.synced(p1=[source("a.md", "a cat")], p2=[source("b.md", "a boat")])
    shell.cut_off("p2")
    assert shell("sync").code == Exit.INVALID_INPUT
    with writing(shell.home):
        assert shell("sync").code == Exit.LOCKED
    assert shell("sync", "--plan", "0" * 64).code == Exit.OTHER_PLAN
    assert mailbox.take("on_failure") is None


def test_command_that_hangs_is_killed_with_its_children(shell: Shell, mailbox: Mailbox) -> None:
    mailbox.configure(on_failure=HANG, settings="notify_timeout = 3.0")
    shell.commit("p1", source("a.md", "a cat"))
    shell.cut_off("p1")
    ended = chunksink(shell.folder, "rebuild")
    assert (ended.code, "on_failure" in ended.err) == (Exit.INVALID_INPUT, True)
    child = int(mailbox.file("on_failure").read_text())
    eventually(lambda: not alive(child))


@pytest.mark.parametrize("program", ["no-such-program", f"{sys.executable} -c 'raise SystemExit(9)'"])
def test_command_that_fails_is_a_warning_and_changes_no_exit_code(shell: Shell, program: str) -> None:
    shell.commit("p1", source("a.md", "a cat"))
    shell.cut_off("p1")
    ended = chunksink(shell.folder, "rebuild", "--json", CHUNKSINK_SINKS="fts", CHUNKSINK_ON_FAILURE=program)
    assert (ended.code, "on_failure" in ended.err) == (Exit.INVALID_INPUT, True)
    assert ended.json["error"]["exit_code"] == Exit.INVALID_INPUT


@pytest.mark.skipif(sys.platform != "linux", reason="needs files in memory")
def test_disk_without_room_for_temporary_files_is_reported(
    shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shell.folder / "gone"))
    (shell.folder / "empty").mkdir()
    assert shell("sync", "--chunks", "empty").code == Exit.USAGE
    assert mailbox.take("on_failure")["error"] == "NotABusRoot"


def test_arguments_are_not_read_by_a_shell(shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = shell.folder / "a file; touch b $HOME"
    command = [sys.executable, "-c", SAVE, str(marker)]
    monkeypatch.setenv("CHUNKSINK_ON_FAILURE", shlex.join(command))
    (shell.folder / "empty").mkdir()
    assert shell("sync", "--chunks", "empty").code == Exit.USAGE
    assert json.loads(marker.read_bytes())["error"] == "NotABusRoot"


def test_setting_that_is_no_list_is_refused(shell: Shell) -> None:
    (shell.folder / "chunksink.toml").write_text('on_failure = "notify"')
    ended = shell("status")
    assert (ended.code, "on_failure" in ended.err) == (Exit.USAGE, True)


def test_ctrl_c_is_no_failure(shell: Shell, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt  # as Python's handler does; a real signal would reach the whole test process

    monkeypatch.setattr(index, "sync", interrupt)
    shell.commit("p1", source("a.md", "a cat"))
    assert shell("sync").code == Exit.INTERRUPTED
    assert mailbox.take("on_failure") is None
