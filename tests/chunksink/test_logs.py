"""`--log-format json`: every line on standard error is one JSON object."""

import json
import logging
import signal
from threading import Thread
from typing import Any

import pytest

from chunksink.command_line import logs
from chunksink.command_line.commands import status as status_command
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.chunksink.test_serve_command import WORDS, running
from tests.embeddings.endpoint import serve as serve_endpoint
from tests.engines.servers import free_port
from tests.journey.support import Ended, chunksink
from tests.journey.test_watch import watching
from tests.support.bus import source

FIELDS = {"time", "level", "event", "run_id", "message"}
CANARY = "canary-5b1c"


def lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    assert [line for line in found if line.keys() - {"traceback"} != FIELDS] == []
    return found


def events(ended: Ended) -> list[tuple[str, str]]:
    return [(line["event"], line["level"]) for line in lines(ended.err)]


def json_shell(shell: Shell, *arguments: str) -> Ended:
    return shell("--log-format", "json", *arguments)


def test_events_of_a_run_carry_its_id_and_the_result_stays_on_standard_output(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    ended = json_shell(quick_shell, "sync", "--json")
    assert events(ended) == [("started", "info"), ("finished", "info")]
    assert {line["run_id"] for line in lines(ended.err)} == {ended.json["run_id"]}


def test_notes_after_a_run_carry_its_id(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")], p2=[source("b.md", "a boat")])
    quick_shell.cut_off("p2")
    ended = json_shell(quick_shell, "sync")
    assert ended.code == Exit.INVALID_INPUT
    found = lines(ended.err)
    assert {"finding", "note"} <= {line["event"] for line in found}
    assert len({line["run_id"] for line in found}) == 1
    assert ("finished", "warning") in events(ended)


def test_errors_have_their_level(quick_shell: Shell) -> None:
    assert events(json_shell(quick_shell, "sync")) == [("error", "error")]
    assert events(json_shell(quick_shell, "sync", "--no-such-option")) == [("error", "error")]
    assert json_shell(quick_shell, "sync").code == Exit.USAGE


def test_bug_is_one_line_with_its_traceback(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(status_command, "status_of", fail)
    ended = json_shell(quick_shell, "status")
    (line,) = lines(ended.err)
    assert (ended.code, line["level"], line["event"]) == (Exit.BUG, "critical", "bug")
    assert "RuntimeError" in line["traceback"]


def test_bug_in_a_thread_is_one_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    logs.use_json()
    try:
        thread = Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
    finally:
        logs.use_text()
    [line] = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["level"], line["event"]) == ("critical", "bug")
    assert "ZeroDivisionError" in line["traceback"]


def test_next_command_prints_text_again(quick_shell: Shell) -> None:
    json_shell(quick_shell, "sync")
    assert not logs.is_json()
    with pytest.raises(json.JSONDecodeError):
        lines(quick_shell("sync").err)


def test_warnings_and_log_messages_take_the_same_form(capsys: pytest.CaptureFixture[str]) -> None:
    logs.use_json()
    try:
        logging.getLogger("another.library").warning("a %s", "warning")
        logging.getLogger("another.library").info("no warning")
        logs.write("a name \udcff", severity="warning")
    finally:
        logs.use_text()
    assert [line["message"] for line in lines(capsys.readouterr().err)] == ["a warning", "a name \\udcff"]


@pytest.mark.promise(12)
def test_no_secret_is_logged(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    port = free_port()
    with serve_endpoint() as endpoint:
        endpoint.next = [lambda _body: (500, {}, f"I was sent {CANARY}-key".encode())] * 50
        variables = {
            "CHUNKSINK_SINKS": "fts,chroma,meilisearch",
            "CHUNKSINK_ENDPOINT": endpoint.url,
            "CHUNKSINK_ENDPOINT_KEY_VARIABLE": "THE_KEY",
            "CHUNKSINK_PATIENCE": "0.3",
            "THE_KEY": f"{CANARY}-key",
            "MEILI_MASTER_KEY": f"{CANARY}-master-key-of-16",
        }
        addresses = [f"http://127.0.0.1:{port}", f"http://user:{CANARY}@127.0.0.1:{port}", f"http://h/?key={CANARY}"]
        for address in addresses:
            given = variables | {"CHUNKSINK_SINK_MEILISEARCH_URL": address}
            for command in ("sync", "verify", "doctor"):
                ended = chunksink(quick_shell.folder, "--log-format", "json", command, **given)
                assert ended.code not in (Exit.OK, Exit.BUG)
                assert CANARY not in ended.out + ended.err
                lines(ended.err)


def test_watch_and_serve_log_in_this_form(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    with watching(quick_shell.folder, program=("-m", "chunksink", "--log-format", "json")) as watcher:
        watcher.says('"event":"finished"')
        assert watcher.interrupt() == Exit.INTERRUPTED
    found = lines(watcher.err)
    assert [line["event"] for line in found] == ["note", "note", "started", "finished", "interrupted"]
    with running(quick_shell.folder, CHUNKSINK_LOG_FORMAT="json", **WORDS) as server:
        assert server.get("/status")[0] == 200
        assert server.end(signal.SIGTERM) == Exit.OK
    lines("".join(server.complained))
