"""The exit codes of `chunksink sync`, its reports, and the deletion brake in other commands."""

from collections.abc import Iterator

import pytest

from chunksink.chunkbus.findings import CHECKSUM_MISMATCH, FAMILY_SPLIT, MEANINGS, TIME_IN_FUTURE
from chunksink.command_line.exits import Exit
from chunksink.rebuild.locks import writing
from tests.chunksink.shell import Shell
from tests.conftest import sampled
from tests.support.bus import FEBRUARY, source

A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")
D = source("d.md", "a dog")


@pytest.fixture
def synced(quick_shell: Shell) -> Shell:
    return quick_shell.begin("of words", "sync", p1=[A, B], p2=[C])


def test_an_invalid_partition_keeps_what_it_held_and_the_others_sync(synced: Shell) -> None:
    synced.commit("p1", source("a.md", "a cheetah", version="2"), B, at=FEBRUARY)
    synced.cut_off("p1")
    synced.commit("p2", D)
    ended = synced("sync")
    assert ended.code == Exit.INVALID_INPUT
    assert "1 source added (1 chunk written)" in ended.out
    assert ", 3 sources held, in " in ended.out
    assert "INTEGRITY_VIOLATION" in ended.err
    assert "2 sources held, unchanged in the index: partition p1 is invalid (" in ended.err
    assert synced.texts() == ["a boat", "a cat", "a cow", "a dog", "a mat"]  # no chunk is known to be missing
    withheld = "removal withheld while a partition is missing or invalid"
    assert f"1 source held, unchanged in the index: {withheld} (" in ended.err
    report = synced("sync", "--json").json
    assert (report["status"], report["families"]["held"]) == ("held", 3)
    assert report["held"] == {"partition p1 is invalid": 2, withheld: 1}
    assert {finding["partition"] for finding in report["findings"]} == {"p1"}
    status = synced("status", "--json").json
    assert (status["held"], [sink["to_remove"] for sink in status["sinks"].values()]) == (3, [0])
    assert "run `chunksink sync`" not in synced("status").out, "which would do nothing"
    synced.commit("p1", source("a.md", "a cheetah", version="2"), B, at=FEBRUARY)
    assert synced("sync").code == Exit.OK
    assert synced.texts() == ["a boat", "a cheetah", "a dog"]


def test_missing_bus_deletes_nothing(synced: Shell) -> None:
    synced.root.path.rename(synced.folder / "elsewhere")
    before = synced.files()
    for command in ("sync", "sync --watch", "plan", "verify", "rebuild", "retire-partition p1"):
        ended = synced(*command.split())
        assert (ended.code, ended.out) == (Exit.INVALID_INPUT, "")
        assert "2 partitions" in ended.err
        assert "`mkdir -p chunks/manifest`, then `chunksink retire-partition KEY` for each" in ended.err
    assert synced.files() == before
    synced.root.manifests.mkdir(parents=True)
    for key in ("p1", "p2"):
        assert synced("retire-partition", key).code == Exit.OK
    assert synced("sync").code == Exit.OK
    assert synced.texts() == []


@pytest.mark.parametrize(
    ("chunks", "remedy"),
    [
        ("chunks/canonical/p1.jsonl", "is a file: name the folder that contains canonical/ and manifest/"),
        ("chunks/canonical", "name its parent, chunks"),
        ("chunks/manifest/", "name its parent, chunks"),
    ],
)
def test_mistyped_bus_is_not_taken_for_a_missing_one(chunks: str, remedy: str, synced: Shell) -> None:
    ended = synced("sync", "--chunks", chunks)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert remedy in ended.err
    assert "retire-partition" not in ended.err


@pytest.mark.parametrize("how", ["missing", "invalid"])
def test_strict_sync_with_a_broken_partition_writes_nothing(how: str, synced: Shell) -> None:
    synced.commit("p3", D)
    if how == "missing":
        synced.remove("p2")
    else:
        synced.cut_off("p2")
    before = synced.files()
    ended = synced("sync", "--strict")
    assert (ended.code, ended.out) == (Exit.INVALID_INPUT, "")
    assert "the index is unchanged" in ended.err
    assert "p2" in ended.err
    remedies = ("`chunksink retire-partition p2`" in ended.err, "`chunksink validate`" in ended.err)
    assert remedies == (how == "missing", how == "invalid")
    assert synced.files() == before


@pytest.mark.parametrize("command", ["sync", "rebuild", "status"])
def test_damaged_file_is_named_before_the_errors_that_it_causes(command: str, synced: Shell) -> None:
    synced.cut_off("p2")
    assert synced("rebuild").code == Exit.INVALID_INPUT
    ended = synced(command)
    lines = [line for line in (ended.out + ended.err).splitlines() if "INTEGRITY_VIOLATION" in line or "SCHEMA" in line]
    assert "INTEGRITY_VIOLATION:checksum_mismatch p2" in lines[0]
    assert command != "rebuild" or MEANINGS[CHECKSUM_MISMATCH][1] in ended.err


def test_sync_of_a_split_family_names_its_source_and_the_command_that_finds_the_rest(quick_shell: Shell) -> None:
    for key, chunk in zip(("p1", "p2"), A, strict=True):
        quick_shell.commit(key, [chunk])
    ended = quick_shell("sync")
    assert (ended.code, ended.err.count(FAMILY_SPLIT), ended.err.count("'a.md'")) == (Exit.INVALID_INPUT, 2, 2)
    assert "the partitions among which a family is split" in ended.err


def test_the_first_sync_begins_with_what_is_valid_unless_it_is_strict(quick_shell: Shell) -> None:
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", C)
    quick_shell.cut_off("p2")
    assert quick_shell("sync", "--strict").code == Exit.INVALID_INPUT
    assert not (quick_shell.home / "fts").exists()
    assert quick_shell("sync").code == Exit.INVALID_INPUT
    assert quick_shell.texts() == ["a cat", "a mat"]


@pytest.mark.parametrize("command", ["sync", "plan", "rebuild"])
def test_warnings_are_shown_when_their_partition_is_read(command: str, synced: Shell) -> None:
    for key in ("p3", "p4"):
        synced.commit(key, source(f"{key}.md", "a pet", "a lion", at="9998-01-01T00:00:00Z"))
    ended = synced(command, "--json")
    assert ended.code == Exit.OK
    assert [(each["code"], each["severity"], each["partition"]) for each in ended.json["findings"]] == [
        (TIME_IN_FUTURE, "warning", key) for key in ("p3", "p4")
    ]
    assert synced("plan", "--json").json["findings"] == []
    synced.commit("p4", source("p4.md", "a pet", "a lion", "a puma", at="9998-01-01T00:00:00Z"))
    ended = synced(command)
    assert (ended.code, ended.err.count(TIME_IN_FUTURE)) == (Exit.OK, 2 if command == "rebuild" else 1)
    assert "`chunksink validate` lists all warnings" in ended.err


@pytest.mark.parametrize(
    "command", sampled(["sync", "plan", "verify", "rebuild", "rollback", "forget", "retire-partition"])
)
def test_commands_during_another_write_are_locked(command: str, synced: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    before = synced.files()
    operands = {"forget": ["a.md"], "retire-partition": ["p1"]}
    with writing(synced.home):
        ended = synced(command, *operands.get(command, []))
    assert (ended.code, ended.out) == (Exit.LOCKED, "")
    assert "another run is writing to " in ended.err
    assert synced.files() == before


class _Once:
    """A watch that sees one commit and is then interrupted."""

    def __init__(self, *_: object, **__: object) -> None: ...

    def __iter__(self) -> Iterator[None]:
        yield
        raise KeyboardInterrupt

    def settled(self) -> None: ...


def test_failed_sync_of_a_watch_is_printed_as_json(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = quick_shell
    shell.synced(p1=(source(f"{number}.md", f"text {number}") for number in range(20)))
    shell.commit("p1", D, at=FEBRUARY)
    monkeypatch.setattr("chunksink.command_line.commands.sync.BusWatch", _Once)
    ended = shell("sync", "--watch", "--json")
    assert (ended.code, ended.json["error"]["exit_code"]) == (Exit.INTERRUPTED, Exit.BRAKE)
    assert ended.json["brake"]["removed"] == 20


@pytest.mark.parametrize("command", ["sync", "sync --watch", "plan", "verify", "rebuild", "retire-partition x"])
def test_commands_without_chunks_are_usage_errors(command: str, quick_shell: Shell) -> None:
    ended = quick_shell(*command.split())
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert ended.err.startswith("Error: no chunks at chunks: there is no such folder. ")
    assert list(quick_shell.folder.iterdir()) == []


WITHOUT_INDEX = ["verify", "prove report.json", "status", "why x", "endpoints", "dead-letters", "dead-letters retry"]
WITHOUT_INDEX += ["rollback", "forget a.md", *(f"search cat --mode {mode}" for mode in ("hybrid", "semantic"))]


@pytest.mark.parametrize("command", WITHOUT_INDEX)
def test_commands_before_the_first_index_are_usage_errors(quick_shell: Shell, command: str) -> None:
    """They create nothing, because the name of the home may be misspelt."""
    quick_shell.commit("p1", A)
    ended = quick_shell(*command.split())
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert f"no index in {quick_shell.home} yet; build one with `chunksink sync`" in ended.err
    assert not (quick_shell.folder / ".chunksink").exists()


def test_commands_in_the_error_without_an_index_select_the_same_index(quick_shell: Shell) -> None:
    ended = quick_shell("search", "cat", "--home", "other")
    assert (ended.code, ended.err.count("--home other")) == (Exit.USAGE, 2)


# -- the deletion brake ------------------------------------------------------------------------------------------------

MANY = [source(f"{number:02}.md", f"text {number}") for number in range(20)]
BRAKE = {"removed": 12, "total": 20, "flag": "--allow-deletions 12", "chunks": 12}


@pytest.fixture
def braked(quick_shell: Shell) -> Shell:
    """Twelve of twenty sources are missing."""
    quick_shell.begin("to brake", "sync", p1=MANY)
    quick_shell.commit("p1", *MANY[:8], at=FEBRUARY)
    return quick_shell


def test_plan_reports_the_brake(braked: Shell) -> None:
    ended = braked("plan")
    assert ended.code == Exit.OK
    assert (
        "a sync would stop at the brake: 12 of the 20 sources in the index, with 12 chunks, would be removed"
        in ended.out
    )
    assert "`chunksink sync --allow-deletions 12`" in ended.out
    plan = braked("plan", "--json").json
    assert plan["brake"] == BRAKE
    stopped = braked("sync", "--plan", plan["hash"])
    assert (stopped.code, stopped.out) == (Exit.BRAKE, "")
    assert braked("sync", "--allow-deletions", "11").code == Exit.BRAKE
    assert braked("sync", "--plan", plan["hash"], *plan["brake"]["flag"].split()).code == Exit.OK
    assert braked("plan", "--json").json["brake"] is None
    assert "brake" not in braked("plan").out


def test_brake_stops_a_new_sink_too(braked: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "jsonl")
    assert braked("plan", "--json").json["brake"] == BRAKE
    assert braked("sync").code == Exit.BRAKE


def test_status_reports_the_brake_after_a_sync(braked: Shell) -> None:
    assert "run `chunksink sync`" in braked("status").out
    assert braked("status", "--json").json["brake"] is None
    assert braked("sync").code == Exit.BRAKE
    out = braked("status").out
    assert "run `chunksink sync`" not in out
    assert "12 of the 20 sources in the index, with 12 chunks, would be removed" in out
    assert braked("status", "--json").json["brake"] == BRAKE


def test_verify_names_the_brake_that_would_stop_a_sync(braked: Shell) -> None:
    ended = braked("verify")
    assert (ended.code, "`chunksink sync --allow-deletions 12`" in ended.err) == (Exit.DRIFT, True)
    assert "`chunksink sync` applies these changes" not in ended.err


def test_brake_stops_a_repair_unless_its_number_is_given(braked: Shell) -> None:
    assert braked("verify", "--repair").code == Exit.BRAKE
    assert braked("verify", "--repair", "--allow-deletions", "12").code == Exit.OK


@pytest.mark.promise(6)
def test_brake_counts_the_builds_of_other_sinks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without any record of them. A rebuild of one sink would abandon the builds of the others."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    shell.synced(p1=(source(f"docs/{number}.md", f"text {number}") for number in range(50)))
    shell.commit("p1", *(source(f"docs/{number}.md", f"text {number}") for number in range(20)))
    for file in shell.home.glob("state.db*"):
        file.unlink()
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    refused = shell("rebuild", "--sink", "jsonl")
    assert refused.code == Exit.BRAKE
    assert "--allow-deletions 30" in refused.err
    assert shell("rebuild", "--allow-deletions", "30").code == Exit.OK
