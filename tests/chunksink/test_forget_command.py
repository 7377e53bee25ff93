"""`chunksink forget` erases a source from everything that chunksink writes, and names what it cannot erase."""

import shutil
from contextlib import closing

import pytest

from chunksink.chunkbus.manifest import Tombstone
from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.store import write_transaction
from chunksink.command_line.exits import Exit
from chunksink.rebuild.locks import RebuildLock
from chunksink.rebuild.state import State
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.projection import project_family
from tests.chunksink.forgetting import GONE, OTHER, SECRET, builds, cached, traces
from tests.chunksink.shell import Models, Shell
from tests.support.bus import FEBRUARY, MARCH, parent_of, source


def withdraw(shell: Shell) -> None:
    """Remove the secret from the chunks and the live builds. The previous generation keeps it."""
    shell.commit("p1", at=FEBRUARY)
    assert shell("sync").code == Exit.OK


def lose(shell: Shell, *tables: str) -> None:
    with State.existing(shell.home) as state, write_transaction(state.db):
        for table in tables:
            state.db.execute(f"delete from {table}")


def test_forget_erases_a_source_from_every_build_and_record(twice: Shell) -> None:
    assert len(builds(twice)) == 4
    twice.cut_off("p1")  # so that the records of runs name it
    twice("sync")
    twice.commit("p1", at=FEBRUARY)
    assert twice("sync").code == Exit.OK
    ended = twice("forget", "secret.md", "--json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert sum(ended.json["documents"].values()) == 4  # of the previous generation; the live one was synced
    assert ended.json["vectors"] == 1
    assert ended.json["texts"] == 2
    assert ended.json["not_scrubbed"] == ["chroma"]
    assert "chroma. `chunksink rebuild`, run twice" in ended.json["out_of_reach"]
    assert "bucket" not in ended.json["out_of_reach"]
    for sink, build in builds(twice):
        assert twice.texts(sink, build) == ["nothing to hide", "shared by both"]
    ids = [document.id for document in project_family(SECRET)]
    assert traces(twice, "cheese", "secret.md", parent_of("secret.md"), *ids) == set()
    for run in twice("runs", "--json").json:
        assert twice("runs", run["id"]).code == Exit.OK
    assert twice("verify").code == Exit.OK
    assert "1 source unchanged" in twice("sync").out


def test_forget_erases_the_segments_of_the_home_and_keeps_their_other_vectors(twice: Shell) -> None:
    withdraw(twice)
    waiting = twice.home / "segments"
    assert twice("cache", "export", str(waiting)).code == Exit.OK
    for file in twice.home.glob("vectors.db*"):
        file.unlink()
    (waiting / ".unfinished.new").write_bytes(b"of a killed run")
    assert twice("forget", "secret.md", "--json").json["vectors"] == 1
    assert not waiting.exists()
    texts = ("the moon is made of cheese", "nothing to hide", "shared by both")
    assert cached(twice, *texts) == list(texts[1:])


def test_forget_without_a_bus_erases_and_exits_with_invalid_input(twice: Shell) -> None:
    shutil.rmtree(twice.root.path)
    ended = twice("forget", "secret.md")
    assert ended.code == Exit.INVALID_INPUT
    assert "no chunks at chunks: a sync from their new place may restore" in ended.err
    assert "nothing to hide" in twice.texts()
    assert not any("cheese" in text for sink, build in builds(twice) for text in twice.texts(sink, build))
    assert traces(twice, "cheese", "secret.md", parent_of("secret.md")) == set()


def test_forget_while_the_chunks_contain_it_is_undone_by_the_next_sync(twice: Shell, models: Models) -> None:
    models.take_texts()
    ended = twice("forget", "secret.md")
    assert ended.code == Exit.INVALID_INPUT
    assert ended.out.count(": 2 documents erased\n") == 4
    assert ended.err == "the chunks still contain it, in partition p1: the next sync restores it\n"
    assert twice("runs", "--json").json[0]["status"] == "ok"
    assert "1 source added" in twice("sync").out
    assert models.take_texts() == ["the moon is made of cheese"]
    assert len(twice.texts()) == len(twice.texts("chroma")) == 4


def test_findings_of_a_missing_partition_are_erased(quick_shell: Shell) -> None:
    """The finding is that one partition has two versions of a source. It contains the names of both."""
    quick_shell.synced(p1=[SECRET, source("secret.md", "of cheese", version="2")], p2=[OTHER])
    quick_shell.remove("p1")
    assert quick_shell("sync").code == Exit.INVALID_INPUT
    assert "state.db" in traces(quick_shell, "secret.md")
    ended = quick_shell("forget", "secret.md", "--json")
    assert (ended.code, ended.json["not_scrubbed"]) == (Exit.OK, [])
    assert "`chunksink rebuild` twice" not in ended.json["out_of_reach"]
    assert traces(quick_shell, "secret.md") == set()


@pytest.mark.parametrize("name", ["secret.md", "./secret.md", parent_of("secret.md"), "secret.md@1"])
def test_forget_of_a_source_that_only_builds_have(name: str, twice: Shell) -> None:
    """The source was withdrawn and the index synced, so no chunk names it. The receipts are lost, too."""
    withdraw(twice)
    lose(twice, "receipt")
    ended = twice("forget", name, "--json")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert (sum(ended.json["documents"].values()), ended.json["texts"], ended.json["vectors"]) == (4, 2, 1)
    for sink, build in builds(twice):
        assert twice.texts(sink, build) == ["nothing to hide", "shared by both"]
    assert cached(twice, "the moon is made of cheese", "shared by both") == ["shared by both"]


@pytest.fixture
def former(shell: Shell) -> Shell:
    """A source that was synced, edited and synced again."""
    shell.begin("former", "sync", p1=[SECRET], p2=[OTHER])
    shell.synced(p1=[source("secret.md", "the moon is made of cheddar", version="2", at=FEBRUARY)])
    return shell


TOMBSTONE = Tombstone(parent_id=parent_of("secret.md"), at=MARCH)


@pytest.mark.parametrize(("name", "tombstones"), [("secret.md", [TOMBSTONE]), ("secret.md@1", [])])
def test_forget_of_a_source_that_was_edited_withdrawn_and_synced(
    name: str, tombstones: list[Tombstone], former: Shell
) -> None:
    """No chunk names it and no build has it, but freed pages of the builds still contain its words."""
    former.commit("p1", at=FEBRUARY, tombstones=tombstones)
    assert former("sync").code == Exit.OK
    assert traces(former, "cheese", "cheddar") != set()
    ended = former("forget", name, "--json")
    assert (ended.code, ended.json["texts"], ended.json["vectors"]) == (Exit.OK, 3, 2)
    assert traces(former, "cheese", "cheddar") == set()
    assert cached(former, "the moon is made of cheese", "the moon is made of cheddar", "shared by both") == [
        "shared by both"
    ]
    if not tombstones:
        assert traces(former, "secret.md", parent_of("secret.md")) == set()
        assert former("forget", name).code == Exit.USAGE


def test_forget_by_a_former_document_id_erases_all_versions(former: Shell) -> None:
    former.commit("p1", source("secret.md", "the moon is made of cheddar", "and more", version="3", at=MARCH), at=MARCH)
    assert former("sync").code == Exit.OK
    former.commit("p1", at=MARCH)
    assert former("sync").code == Exit.OK
    assert former("forget", "secret.md@2", "--json").json["vectors"] == 3
    assert traces(former, "secret.md@", "cheddar") == set()


def test_cache_gc_drops_the_notes_about_former_texts(former: Shell) -> None:
    def noted() -> int:
        with State.existing(former.home) as state:
            return len(state.db.execute("select * from former_text").fetchall())

    former.commit("p1", at=FEBRUARY)
    assert former("sync").code == Exit.OK
    assert former("cache", "gc", "--dry-run").code == Exit.OK
    assert noted() == 3
    assert former("cache", "gc").code == Exit.OK
    assert noted() == 0
    ended = former("forget", "secret.md", "--json")
    assert (ended.code, ended.json["vectors"]) == (Exit.OK, 0)
    assert traces(former, "cheese", "cheddar") == set(), "its words in freed pages go, too"


def test_forget_of_a_source_that_only_a_tombstone_names(former: Shell) -> None:
    """The records were created again after it was withdrawn."""
    former.commit("p1", at=FEBRUARY, tombstones=[TOMBSTONE])
    assert former("sync").code == Exit.OK
    lose(former, "former_text", "former_document")
    ended = former("forget", "secret.md")
    assert (ended.code, ended.err) == (Exit.OK, "")
    assert "its vectors could not be found" in ended.out
    assert "`chunksink cache gc` drops them" in ended.out
    assert traces(former, "cheese", "cheddar") == set()
    unknown = former("forget", "nobody.md")
    assert unknown.code == Exit.USAGE
    assert "running `chunksink rebuild` twice" in unknown.err


def test_forget_erases_from_builds_without_records(twice: Shell) -> None:
    withdraw(twice)
    held, live = builds(twice), twice.live().id
    lose(twice, "receipt", f"build where generation <> '{live}'", f"generation where id <> '{live}'")
    ended = twice("forget", "secret.md", "--json")
    assert (ended.code, sum(ended.json["documents"].values())) == (Exit.OK, 4)
    for sink, build in held:
        assert twice.texts(sink, build) == ["nothing to hide", "shared by both"]


def test_forget_blanks_lines_of_run_records(twice: Shell) -> None:
    with RunLog(twice.home, "sync") as log:
        log.write("fault", error="the engine would not take:\nsecret.md: too large")
        log.write("fault", error="nor other.md")
    [record] = [file for file in (twice.home / "runs").glob("*.jsonl") if b"too large" in file.read_bytes()]
    with record.open("ab") as cut_off:
        cut_off.write(b'{"event":"fault","error":"secr')
    assert twice("forget", "secret").code == Exit.USAGE
    assert twice("forget", "secret.md").code == Exit.INVALID_INPUT
    left = record.read_bytes()
    assert (b"secr" in left, b"too large" in left, b"nor other.md" in left) == (False, False, True)


def test_forget_does_not_name_the_source_in_its_own_record(twice: Shell) -> None:
    twice.cut_off("p1")  # the finding is in the record of this run, too
    assert twice("forget", "secret.md").code == Exit.INVALID_INPUT  # the partition may become valid again
    assert traces(twice, parent_of("secret.md")) == set()


CANARY = "kanarienvogelsang"


def test_forget_leaves_no_word_in_any_file(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while a reader is open, so that SQLite keeps its log, and in files that killed runs left behind."""
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma,jsonl")
    secret = source("canary.md", f"hush, a {CANARY} sings", f"\u6771\u4eac {CANARY}", f"{CANARY}s " * 300)
    shell.commit("p1", secret)
    shell.commit("p2", *(source(f"other{number}.md", f"plain words {number}") for number in range(30)))
    for _ in range(3):
        assert shell("rebuild").code == Exit.OK
    live = shell.live().builds
    half_removed = next(build for sink, build in builds(shell) if sink == "fts" and build != live["fts"])
    (shell.home / "fts" / half_removed).rename(shell.home / "fts" / f".{half_removed}.0")
    (shell.home / "jsonl" / live["jsonl"] / ".pending").mkdir(exist_ok=True)
    (shell.home / "jsonl" / live["jsonl"] / ".pending" / "0").write_text(CANARY)
    withdraw(shell)
    assert f"fts/{live['fts']}/fts.db" in traces(shell, CANARY)
    names = [CANARY, "canary.md", parent_of("canary.md")]
    with State.existing(shell.home) as state, closing(FtsSink(shell.home / "fts").reader(live["fts"])) as reader:
        assert state.db.execute("select count(*) from receipt").fetchone()
        assert reader.search("words", 1)
        assert shell("forget", "canary.md").code == Exit.OK
        assert traces(shell, *names) == set()
        assert reader.search(CANARY) == []
    assert traces(shell, CANARY, beside="fts") != set(), "what the message says of Chroma is true"
    for _ in range(2):
        assert shell("rebuild").code == Exit.OK
    # Chroma's index files contain uninitialised memory, here of this process, which has seen all these words.
    assert {file for file in traces(shell, *names, beside="fts") if not file.endswith("data_level0.bin")} == set()
    assert shell("verify").code == Exit.OK


def test_forget_names_a_former_sink_that_does_not_answer(twice: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sink is no longer configured and its server is off. Everything else is erased, and the message names the
    sink."""
    with State.existing(twice.home) as state, write_transaction(state.db):
        state.db.execute("insert into build (generation, sink, id) select live, 'meilisearch', 'old' from pointer")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chroma")
    twice.commit("p1", tombstones=GONE)
    ended = twice("forget", "secret.md")
    assert ended.code == Exit.ENGINE
    assert "not erased from meilisearch" in ended.err
    assert cached(twice, "the moon is made of cheese") == []
    assert "the moon is made of cheese" not in twice.texts()


def test_forget_during_a_rebuild_is_locked(twice: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rebuild has already read the source and would write it again."""
    monkeypatch.setattr("chunksink.rebuild.locks.WAIT_SECONDS", 0.1)
    twice.commit("p1", [], tombstones=GONE)
    with RebuildLock(twice.home)():
        ended = twice("forget", "secret.md")
    assert ended.code == Exit.LOCKED
    assert "another run is building in " in ended.err
    assert "the moon" in " ".join(twice.texts("fts"))
    assert twice("forget", "secret.md").code == Exit.OK


def test_forget_erases_vectors_of_a_retired_partition(former: Shell) -> None:
    former.remove("p1")
    assert former("retire-partition", "p1").code == Exit.OK
    assert former("sync", "--allow-deletions", "1").code == Exit.OK
    assert former("forget", "secret.md", "--json").json["vectors"] == 2
    assert traces(former, "cheese", "cheddar") == set()
