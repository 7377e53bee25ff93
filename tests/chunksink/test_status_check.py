"""`chunksink status --check`: one line, performance data and the exit codes of monitoring plugins."""

import os
import re
import shutil
from time import time
from typing import Any

import pytest

from chunksink.chunkbus.runlog import RunLog
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.journey.support import Ended
from tests.support.bus import FEBRUARY, source

LIMITS = ("--max-lag", "15m", "--max-proof-age", "24h")
OK, WARNING, CRITICAL, UNKNOWN = range(4)


def check(shell: Shell, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON. The text must be one line that agrees with them."""
    ended = shell("status", "--check", "--json", *options)
    line = shell("status", "--check", *options)
    assert line.code == ended.code == ended.json["exit_code"]
    assert re.fullmatch(rf"CHUNKSINK {ended.json['state']}: [^|\n]+( \| [^|\n]+)?\n", line.out), line
    return ended.code, ended.json


def codes(document: dict[str, Any]) -> list[str]:
    return [problem["code"] for problem in document["problems"]]


def figures(line: Ended) -> dict[str, str]:
    performance = line.out.partition(" | ")[2]
    return dict(figure.split("=", 1) for figure in performance.split())


@pytest.fixture
def verified(quick_shell: Shell) -> Shell:
    quick_shell.synced(p1=[source("a.md", "a cat", "a mat"), source("b.md", "a boat")])
    assert quick_shell("verify").code == Exit.OK
    return quick_shell


def commit_earlier(shell: Shell, seconds: float) -> None:
    """Commit a change with files that are `seconds` old."""
    shell.commit("p1", source("a.md", "a tapir", version="2", at=FEBRUARY), source("b.md", "a boat"), at=FEBRUARY)
    for file in (shell.root.manifest_file("p1"), shell.root.chunks_file("p1")):
        os.utime(file, (time() - seconds,) * 2)


def test_complete_and_verified_index_is_ok(verified: Shell) -> None:
    code, document = check(verified, *LIMITS)
    assert (code, document["state"], document["problems"]) == (OK, "OK", [])
    assert (document["lag"], document["verdict"], document["has_drift"]) == (0, "ok", False)
    found = figures(verified("status", "--check", *LIMITS))
    assert found["lag"] == "0s;900;;0"
    assert re.fullmatch(r"\d+s;86400;;0", found["proof_age"])
    assert re.fullmatch(r"\d+s;;;0", found["updated"])
    assert [found[name] for name in ("sources", "chunks", "held", "refused")] == ["2;;;0", "3;;;0", "0;;;0", "0;;;0"]


def test_full_disk_is_critical(verified: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.command_line.commands.status.FULL_BYTES", 10**18)
    code, document = check(verified)
    assert (code, codes(document)) == (CRITICAL, ["disk_full"])


def test_waiting_change_is_a_warning_beyond_the_limit_only(verified: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_earlier(verified, 0)
    now = time()
    monkeypatch.setattr("chunksink.rebuild.freshness.time", lambda: now + 1000)
    assert check(verified)[0] == OK
    assert check(verified, "--max-lag", "17m")[0] == OK
    code, document = check(verified, "--max-lag", "16m")
    assert (code, codes(document)) == (WARNING, ["lag"])
    assert document["lag"] == pytest.approx(1000, abs=60)
    assert verified("sync").code == Exit.OK
    assert check(verified, "--max-lag", "0s")[0] == OK


def test_old_or_missing_verify_is_a_warning(verified: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time()
    monkeypatch.setattr("chunksink.rebuild.freshness.time", lambda: now + 90_000)
    code, document = check(verified, *LIMITS)
    assert (code, codes(document)) == (WARNING, ["proof_age"])
    assert check(verified, "--max-proof-age", "2d")[0] == OK
    for record in (verified.home / "runs").iterdir():
        if b'"verify"' in record.read_bytes():
            record.unlink()
    code, document = check(verified, *LIMITS)
    assert (code, codes(document), document["verified"]) == (WARNING, ["not_verified"], None)


def test_sync_that_runs_no_more_is_a_warning(verified: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """No change is pending, because nothing ingests documents either."""
    assert check(verified, "--max-sync-age", "1h")[0] == OK
    now = time()
    monkeypatch.setattr("chunksink.rebuild.freshness.time", lambda: now + 4000)
    code, document = check(verified, "--max-lag", "15m", "--max-sync-age", "1h")
    assert (code, codes(document)) == (WARNING, ["sync_age"])
    assert figures(verified("status", "--check", "--max-sync-age", "1h"))["updated"].endswith("s;3600;;0")
    assert check(verified, "--max-sync-age", "2h")[0] == OK


def test_failed_verify_is_critical_until_it_is_repaired(verified: Shell) -> None:
    verified.lose("a.md")
    assert verified("verify").code == Exit.DRIFT
    code, document = check(verified, *LIMITS)
    assert (code, codes(document), document["verdict"]) == (CRITICAL, ["drift"], "drift")
    assert verified("verify", "--repair").code == Exit.OK
    assert check(verified, *LIMITS)[0] == OK


def test_changes_that_wait_for_a_sync_are_no_drift(verified: Shell) -> None:
    verified.commit("p1", source("a.md", "a dog"))
    assert verified("verify").code == Exit.DRIFT
    code, document = check(verified)
    assert (code, document["verdict"], document["has_drift"]) == (OK, "behind", False)
    assert verified("sync").code == Exit.OK
    assert check(verified)[0] == OK


def test_drift_ends_with_a_sync_that_rescanned_the_sink(verified: Shell) -> None:
    verified.lose("a.md")
    assert verified("verify").code == Exit.DRIFT
    assert codes(check(verified)[1]) == ["drift"]
    assert verified("sync", "--json").json["sinks"]["fts"]["scanned"]
    assert check(verified)[0] == OK


def test_sink_without_a_build_is_drift_until_it_is_built(verified: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    assert verified("verify").code == Exit.DRIFT
    assert codes(check(verified)[1]) == ["drift"]
    assert verified("sync").code == Exit.OK
    assert check(verified)[0] == OK


def test_verify_of_another_generation_is_no_proof(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    for command in ("rebuild", "verify", "rollback"):
        assert quick_shell(command).code == Exit.OK
    code, document = check(quick_shell, *LIMITS)
    assert (code, codes(document), document["verified"]) == (WARNING, ["not_verified"], None)
    assert "builds that are not live now" in quick_shell("status").out
    assert quick_shell("rollback").code == Exit.OK
    assert check(quick_shell, *LIMITS)[0] == OK
    assert "builds that are not live now" not in quick_shell("status").out


@pytest.mark.parametrize(("plan", "refused"), [("abc", Exit.USAGE), ("0" * 64, Exit.OTHER_PLAN)])
def test_refused_plan_is_no_failed_run(plan: str, refused: Exit, verified: Shell) -> None:
    assert verified("sync", "--plan", plan).code == refused
    assert check(verified, *LIMITS)[0] == OK


def test_failed_run_is_critical_until_one_succeeds(verified: Shell) -> None:
    with RunLog(verified.home, "sync") as log:
        log.finish("failed", error="Unreachable | engine\ndown")
    code, document = check(verified, *LIMITS)
    assert (code, codes(document)) == (CRITICAL, ["run_failed"])
    assert verified("sync").code == Exit.OK
    assert check(verified, *LIMITS)[0] == OK


def test_home_without_an_index_is_critical(quick_shell: Shell) -> None:
    code, document = check(quick_shell, *LIMITS)
    assert (code, codes(document)) == (CRITICAL, ["no_index"])
    assert not quick_shell.home.exists()


def test_ingest_only_without_an_index_is_judged_by_the_last_ingest(quick_shell: Shell) -> None:
    (quick_shell.folder / "a.md").write_text("# A\n")
    assert quick_shell("ingest", "a.md").code == Exit.OK
    code, document = check(quick_shell, "--ingest-only")
    assert (code, codes(document), document["ingest_failures"]) == (OK, [], 0)
    assert figures(quick_shell("status", "--check", "--ingest-only")) == {"ingest_failures": "0;;;0"}
    assert codes(check(quick_shell, "--ingest-only", "--max-lag", "1h")[1]) == ["not_readable"]
    with RunLog(quick_shell.home, "ingest") as log:
        log.finish("failed", error="StorageError")
    code, document = check(quick_shell, "--ingest-only")
    assert (code, codes(document), document["failed_run"]["command"]) == (CRITICAL, ["run_failed"], "ingest")
    assert check(quick_shell, "--ingest-only", "--home", "misspelt")[0] == CRITICAL


def test_first_sync_that_fails_without_a_record_is_critical(quick_shell: Shell) -> None:
    (quick_shell.folder / "a.md").write_text("# A\n")
    assert quick_shell("ingest", "a.md").code == Exit.OK
    assert quick_shell("sync", "--chunks", "wrong").code == Exit.USAGE
    assert codes(check(quick_shell)[1]) == ["no_index"]


def test_missing_chunks_are_unknown_and_no_reason_to_hide_a_failure(verified: Shell) -> None:
    shutil.move(verified.root.path, verified.folder / "elsewhere")
    code, document = check(verified, *LIMITS)
    assert (code, codes(document)) == (UNKNOWN, ["no_chunks"])
    with RunLog(verified.home, "sync") as log:
        log.finish("failed")
    code, document = check(verified, *LIMITS)
    assert (code, codes(document)) == (CRITICAL, ["run_failed", "no_chunks"])


def test_held_source_is_a_warning_even_if_nothing_waits(verified: Shell) -> None:
    with verified.root.chunks_file("p1").open("a") as file:
        file.write("broken")
    assert verified("sync").code == Exit.INVALID_INPUT
    code, document = check(verified, "--max-lag", "0s")
    assert (code, codes(document)) == (WARNING, ["held"])
    assert (document["held"], document["sources"]) == (2, 2)
    assert "p1" in document["problems"][0]["message"]


def test_verify_that_could_not_compare_held_sources_is_no_proof(quick_shell: Shell) -> None:
    shell = quick_shell.synced(p1=[source("a.md", "a cat"), source("b.md", "a boat")], p2=[source("c.md", "a cow")])
    shell.cut_off("p1")
    assert shell("sync").code == Exit.INVALID_INPUT
    shell.lose("a.md")
    ended = shell("verify", "--json")
    assert (ended.code, ended.json["status"], ended.json["held"]) == (Exit.INVALID_INPUT, "held", 2)
    assert shell("verify").out.count("2 held sources") == 1
    code, document = check(shell, *LIMITS)
    assert (code, codes(document), document["verified"]) == (WARNING, ["held", "not_verified"], None)
    assert shell("status", "--json").json["last_verify"]["facts"]["held"] == 2


def test_restored_backup_is_a_warning_until_a_sync(verified: Shell) -> None:
    assert verified("backup", "copy.tar.gz").code == Exit.OK
    assert verified("restore", "copy.tar.gz", "--force").code == Exit.OK
    code, document = check(verified)
    assert (code, codes(document)) == (WARNING, ["restored"])
    assert verified("sync").code == Exit.OK
    assert check(verified)[0] == OK


@pytest.mark.parametrize("age", ["15", "m", "1.5h", "-1s", "15 m", "forever", "15m|", "٣h"])
def test_age_that_is_none_is_unknown(age: str, verified: Shell) -> None:
    code, document = check(verified, "--max-lag", age)
    assert (code, codes(document)) == (UNKNOWN, ["not_readable"])


def test_unreadable_home_or_configuration_is_unknown(verified: Shell) -> None:
    (verified.folder / "chunksink.toml").write_text("no_such_setting = 3\n")
    assert check(verified)[0] == UNKNOWN
    (verified.folder / "chunksink.toml").unlink()
    (verified.home / "state.db").write_bytes(b"no database, but long enough to be one" * 100)
    assert check(verified)[0] == UNKNOWN


def test_limits_without_check_are_a_usage_error(verified: Shell) -> None:
    assert verified("status", "--max-lag", "15m").code == Exit.USAGE
    assert verified("status", "--ingest-only").code == Exit.USAGE
