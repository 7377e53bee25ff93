"""Which source a name means to `chunksink forget`, and which names are refused."""

import pytest

from chunksink.chunkbus.runlog import RunLog
from chunksink.command_line.exits import Exit
from tests.chunksink.forgetting import OTHER, builds, traces
from tests.chunksink.shell import Shell
from tests.support.bus import FEBRUARY, parent_of, source


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("my notes/costs (1).md", "my%20notes/costs%20%281%29.md#costs"),
        ("my notes/costs.md", "my notes/costs.md#costs"),
        ("screen 1.rec#pane=0&part=1", "screen%201.rec#pane=0&part=1&t=12.5"),
        ("https://example.org/a%20b", "https://example.org/a%20b#part"),
        ("100%25.md#1", "100%25.md#1"),
    ],
)
def test_forget_accepts_the_address_that_search_shows(name: str, address: str, quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source(name, "some words"), source("100%.md", "other words")])
    assert quick_shell("forget", address).code == Exit.INVALID_INPUT
    assert quick_shell.texts() == ["other words"]


@pytest.mark.parametrize("name", ["nobody.md", "", "secret", "%", "no%20body.md#x", "#costs", "\udcff.md"])
def test_forget_of_an_unknown_source_is_a_usage_error(name: str, twice: Shell) -> None:
    ended = twice("forget", name)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert f"no source {name!r} is known here" in ended.err
    assert len(twice.texts()) == 4


def test_forget_of_an_unknown_source_removes_copies_of_a_bucket(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[OTHER])
    copy = quick_shell.home / "partitions" / "0.jsonl"
    copy.parent.mkdir()
    copy.touch()
    assert quick_shell("forget", "nobody.md").code == Exit.USAGE
    assert not copy.exists()


@pytest.mark.parametrize("word", ["sync", "Unreachable"])
def test_forget_of_a_word_in_a_run_record_changes_nothing(word: str, twice: Shell) -> None:
    twice.remove("p1")
    assert "partition p1 is missing" in twice("sync").err
    with RunLog(twice.home, "sync") as log:
        log.write("fault", sink="fts", error="the engine did not answer")
        log.finish("failed", error="Unreachable")
    before = {file: file.read_bytes() for file in (twice.home / "runs").iterdir()}
    assert twice("forget", word).code == Exit.USAGE
    assert {file: file.read_bytes() for file in before} == before
    assert {run["status"] for run in twice("runs", "--json").json} == {"ok", "held", "failed"}


def test_forget_of_a_source_named_like_a_command_keeps_run_records(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("sync", "some words"), OTHER])
    assert quick_shell("forget", "sync").code == Exit.INVALID_INPUT
    runs = [(run["command"], run["status"]) for run in quick_shell("runs", "--json").json]
    assert runs == [("forget", "ok"), ("sync", "ok")]


@pytest.fixture
def of_two(shell: Shell) -> Shell:
    """The same file of two tenants."""
    texts = {name: [source("same.md", f"what {name} says", tenant_id=name, ids=name[0])] for name in ("north", "south")}
    return shell.begin("of two tenants", "sync", **texts)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_forget_with_a_tenant_erases_only_its_source(of_two: Shell, withdrawn: bool) -> None:
    if withdrawn:  # then only the builds know the tenant
        of_two("rebuild")
        for key in ("north", "south"):
            of_two.commit(key, at=FEBRUARY)
        assert of_two("sync", "--allow-deletions", "2").code == Exit.OK
    held = of_two.texts(*builds(of_two)[0])
    ended = of_two("forget", "same.md")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "'same.md' names 2 sources; nothing was erased" in ended.err
    assert "of tenant 'north'" in ended.err and "of tenant 'south'" in ended.err
    assert of_two.texts(*builds(of_two)[0]) == held == ["what north says", "what south says"]
    ended = of_two("forget", "same.md", "--tenant", "south")
    assert ended.code == (Exit.OK if withdrawn else Exit.INVALID_INPUT)
    assert of_two.texts(*builds(of_two)[0]) == ["what north says"]
    assert traces(of_two, "what south says", beside="chroma") == set()


def test_forget_with_every_erases_the_sources_of_all_tenants(of_two: Shell) -> None:
    assert of_two("forget", "same.md", "--every").code == Exit.INVALID_INPUT
    assert of_two.texts() == []


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ([], ["what north says", "what south says"]),
        (["--tenant", "north"], ["what nobody says", "what south says"]),
        (["--every"], []),
    ],
)
def test_forget_by_a_family_key_means_that_source_alone(options: list[str], left: list[str], of_two: Shell) -> None:
    """The family key of the source without a tenant is the `parent_id` of those of both tenants."""
    of_two.synced(nobody=[source("same.md", "what nobody says")])
    assert "names 3 sources" in of_two("forget", "same.md").err
    assert of_two("forget", parent_of("same.md"), *options).code == Exit.INVALID_INPUT
    assert of_two.texts() == left
