"""`chunksink validate`: output, run records and exit codes, also as a real process."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus import findings
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.runlog import read_run
from chunksink.command_line.exits import Exit
from tests.chunkbus.cases import CASES, KEY
from tests.chunkbus.samples import chunk, lines_of, listing, put, put_chunks
from tests.chunksink.shell import Shell
from tests.conftest import HEAVY, ROOT
from tests.journey.support import command_line


@pytest.mark.parametrize("name", ["broken JSON", "misnamed file", "a range that ends before it begins"])
def test_a_finding_as_json_as_text_and_in_the_run_record(name: str, shell: Shell) -> None:
    """The exit code is not zero even if the only finding is a warning."""
    case = CASES[name]
    case.build(shell.root)
    ended = shell("validate", "--json")
    report = ended.json
    assert (ended.code, report["ok"]) == (Exit.INVALID_INPUT, False)
    assert list(report) == ["ok", "partitions", "chunks", "findings"]
    (finding,) = report["findings"]
    assert list(finding) == ["code", "severity", "partition", "line", "detail"]
    assert [tuple(finding.values())[:4]] == case.places()
    printed = shell("validate", "--all")
    place = case.partition if case.line is None else f"{case.partition}:{case.line}"
    mark = " (warning)" if case.severity == "warning" else ""
    assert printed.code == Exit.INVALID_INPUT
    assert printed.out.splitlines()[0] == f"{case.code} {place} {finding['detail']}{mark}"
    assert findings.MEANINGS[case.code][1] in printed.err
    for record in sorted((shell.home / "runs").iterdir()):
        started, found, finished = read_run(record)
        assert (started["event"], started["command"], finished["status"]) == ("started", "validate", "invalid")
        assert {key: found[key] for key in finding} == finding
        assert finished["chunks"] == report["chunks"]


def test_findings_when_many_are_grouped_by_code_with_their_true_number(shell: Shell) -> None:
    put(shell.root, "a", b"{\n" * 20)
    put(shell.root, "b", lines_of([chunk(0), chunk(0)]))
    ended = shell("validate")
    assert ended.code == Exit.INVALID_INPUT
    heads = [line for line in ended.out.splitlines() if not line.startswith(" ")]
    assert heads[0] == f"{findings.JSON_PARSE}: 20 findings"
    assert f"{findings.DUPLICATE_IDS}: 1 finding" in heads
    assert [line.split()[0] for line in ended.out.splitlines()[1:6]] == [f"a:{line}" for line in range(1, 6)]
    assert ended.out.count("\n  a:") == 5
    assert "15 more; --all" in ended.err
    every = shell("validate", "--all")
    assert (every.code, every.out.count(f"{findings.JSON_PARSE} a:")) == (Exit.INVALID_INPUT, 20)
    assert len(shell("validate", "--json").json["findings"]) == every.out.count("\n") - 1


def test_missing_source_checksum_is_an_error_with_the_option(shell: Shell) -> None:
    (case,) = [case for case in CASES.values() if case.require_source_checksum]
    case.build(shell.root)
    assert shell("validate").code == Exit.OK
    assert case.code in shell("validate", "--require-source-checksum").out


def test_validate_of_a_clean_bus_exits_with_ok(shell: Shell) -> None:
    shell.root.canonical.mkdir(parents=True)
    ended = shell("validate")
    assert (ended.code, "nothing here yet" in ended.out) == (Exit.OK, True)
    put(shell.root, KEY, lines_of([chunk(0), chunk(1)]))
    put(shell.root, "empty", b"")
    ended = shell("validate")
    assert (ended.code, ended.out, ended.err) == (Exit.OK, "clean: 2 partitions, 2 chunks in chunks\n", "")
    assert shell("validate", "--json").json == {"ok": True, "partitions": 2, "chunks": 2, "findings": []}


def test_validate_with_partition_reads_only_these(shell: Shell) -> None:
    for key, content in (("bad", b"{\n"), ("good", lines_of([chunk(0)])), ("fine", b"")):
        put(shell.root, key, content)
    ended = shell("validate", "--partition", "good", "--partition", "fine")
    assert (ended.code, ended.out) == (Exit.OK, "clean: 2 partitions, 1 chunk in chunks\n")
    assert shell("validate", "--partition", "bad").code == Exit.INVALID_INPUT


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--chunks", "nowhere"], "no chunks at nowhere"),
        (["--partition", "absent"], f"no partition absent in chunks; there are {KEY}"),
        (["--partition", "../etc"], "'../etc' cannot name a partition"),
        (["--jobs", "0"], "--jobs"),
        (["--home", "a-file"], "a-file"),
    ],
)
def test_validate_with_invalid_arguments_is_a_usage_error(arguments: list[str], expected: str, shell: Shell) -> None:
    put(shell.root, KEY, b"")
    Path("a-file").write_text("")
    before = listing(shell.root.path)
    ended = shell("validate", *arguments)
    assert (ended.code, ended.out, expected in ended.err) == (Exit.USAGE, "", True)
    assert listing(shell.root.path) == before


# -- --fields: which fields of the chunks the index will have ----------------------------------------------------------


def test_fields_are_counted_and_unread_values_listed(shell: Shell) -> None:
    dates = ["1999-12-31", "31.12.1999", "1.1.2000"]
    chunks = [chunk(i, metadata={"date": date, "product": "p"}) for i, date in enumerate(dates)]
    put(shell.root, "k", lines_of(chunks))
    ended = shell("validate", "--fields")
    assert ended.code == Exit.OK
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "Fields of the index, and how many of 3 chunks fill them:" in lines
    assert 'year 1 2 not read: metadata.date is "31.12.1999" in k:2' in lines
    assert "text 3" in lines
    assert any(line.startswith("Fields that no chunk fills: ") and "authors" in line for line in lines)
    assert "Values that no field reads: metadata.product (3)." in lines
    document = shell("validate", "--fields", "--json").json
    first = {"path": "metadata.date", "value": "31.12.1999", "partition": "k", "line": 2}
    assert document["fields"]["year"] == {"filled": 1, "unread": 2, "first_unread": first}
    assert document["fields"]["text"] == {"filled": 3, "unread": 0, "first_unread": None}
    assert document["unmapped"] == {"metadata.product": 3}


def test_a_long_value_is_cut_and_none_moves_the_cursor(shell: Shell) -> None:
    put(shell.root, "k", lines_of([chunk(0, metadata={"date": "\x9b" + "x" * 1000})]))
    (line,) = [line for line in shell("validate", "--fields").out.splitlines() if "not read" in line]
    assert "\x9b" not in line
    assert len(line) < 150


def test_fields_are_not_counted_while_there_are_errors(shell: Shell) -> None:
    put(shell.root, "k", b"{\n")
    ended = shell("validate", "--fields")
    assert (ended.code, "Fields of the index" in ended.out) == (Exit.INVALID_INPUT, False)
    assert "The fields were not counted, because there are errors." in ended.err


def test_chunking_that_is_not_checked_is_reported(shell: Shell) -> None:
    put(shell.root, "k", b"{\n")
    notes = shell("validate").err.splitlines()
    more = [line for line in shell("validate", "--chunking").err.splitlines() if "chunking" in line]
    assert len(more) == 1 and more[0] not in notes


# -- as a real process -------------------------------------------------------------------------------------------------

Popen = subprocess.Popen[str]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> FolderRoot:
    """A bus whose validation takes many seconds: each of its lines has a finding."""
    root = FolderRoot(tmp_path_factory.mktemp("bus"))
    put_chunks(root, "k", (b"x" * 99 + b"\n") * 400_000)
    return root


def start(root: FolderRoot, home: Path, *arguments: str, **options: Any) -> Popen:
    command = command_line("validate", "--all", "--chunks", str(root.path), "--home", str(home), *arguments)
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT} | options
    # A new process group, so that a signal to it works like Ctrl-C on a terminal. Background jobs ignore
    # that signal, and so do their children; these tests may run in one.
    return subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=heed_interrupts,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
        **options,
    )


def heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def record(home: Path) -> list[dict[str, Any]]:
    (path,) = (home / "runs").iterdir()
    return list(read_run(path))


def wait_for_findings(process: Popen, home: Path, size: int = 5_000) -> None:
    """Wait until the run record has this many bytes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, "it ended before anything could be done to it"
        if any(path.stat().st_size >= size for path in (home / "runs").glob("*.jsonl")):
            return
        time.sleep(0.02)
    pytest.fail("too few findings came")


@pytest.fixture
def ended() -> Iterator[list[Popen]]:
    """End every process that a test has started."""
    processes: list[Popen] = []
    yield processes
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("jobs", ["2", "1"])
def test_ctrl_c_ends_it_with_its_own_code_and_a_finished_record(
    jobs: str, long_run: FolderRoot, tmp_path: Path, ended: list[Popen]
) -> None:
    before = listing(long_run.path)
    process = start(long_run, tmp_path, "--jobs", jobs)
    ended.append(process)
    wait_for_findings(
        process, tmp_path, size=6_000_000 if HEAVY and jobs == "2" else 5_000
    )  # by then some workers are idle
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.INTERRUPTED == 130
    assert err.strip().splitlines()[-1] == "Interrupted. Nothing is half done: run the command again."
    events = record(tmp_path)
    assert (events[-1]["event"], events[-1]["status"]) == ("finished", "interrupted")
    assert listing(long_run.path) == before


def test_closed_output_has_its_own_exit_code(long_run: FolderRoot, tmp_path: Path, ended: list[Popen]) -> None:
    process = start(long_run, tmp_path, stdout=subprocess.PIPE)
    ended.append(process)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("MISSING_OUTPUT:manifest k ")
    process.stdout.close()
    process.wait(timeout=60)
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.returncode == Exit.OUTPUT_CLOSED == 141
    events = record(tmp_path)
    assert (events[-1]["event"], events[-1]["status"]) == ("finished", "interrupted")
    assert "MISSING_OUTPUT:unreadable" not in {event.get("code") for event in events}


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_full_disk_behind_the_output_is_one_line(form: list[str], tmp_path: Path) -> None:
    root = put(FolderRoot(tmp_path / "bus"), "k", b"{\n")
    with Path("/dev/full").open("w") as full:
        process = start(root, tmp_path / "home", *form, stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == Exit.ENGINE
    assert err.startswith("Error: No space left on device")
    assert len(err.splitlines()) == 1
