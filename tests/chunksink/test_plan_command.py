"""`chunksink plan` shows what a sync would do and cost. `sync --plan` does exactly that or nothing."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import chunksink
from chunksink.chunkbus.findings import CHECKSUM_MISMATCH, MANIFEST_MISSING
from chunksink.command_line.exits import Exit
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.catalog import Catalog, CurrentFamily
from chunksink.rebuild.forecast import SAMPLE
from chunksink.rebuild.receipts import Receipts
from chunksink.rebuild.state import State
from tests.chunksink.shell import Models, Shell
from tests.support.bus import FEBRUARY, source

NOT_CALLED = "http://127.0.0.1:9/v1"
"""An endpoint, for plans that do not call it."""
A, B, C = source("a.md", "a cat", "a mat"), source("b.md", "a boat"), source("c.md", "a cow")


@pytest.fixture
def moved(shell: Shell, models: Models) -> Shell:
    """An index, and chunks that have changed since: `a.md` edited, `b.md` removed, `d.md` new. One text is in the
    cache."""
    shell.begin("planned", "sync", p1=[A, B], p2=[C])
    models.take_texts()
    models.loaded.clear()
    shell.commit("p1", source("a.md", "a cat", "a rug", version="2"), source("d.md", "a dog"), at=FEBRUARY)
    return shell


def test_plan_json_has_counts_and_examples(moved: Shell, models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", "1")  # the model of the live index is local
    engines, texts = moved.files(), moved.texts("chroma")
    ended = moved("plan", "--json")
    assert ended.code == Exit.OK
    plan = ended.json
    families = {name: number for name, number in plan["families"].items() if number}
    assert families == {"added": 1, "changed": 1, "removed": 1, "unchanged": 1}
    assert plan["chunks"] == {"written": 3, "deleted": 1}
    assert {name: plan["embeddings"][name] for name in ("cached", "missing")} == {"cached": 1, "missing": 2}
    assert plan["embeddings"]["tokens"] > 0
    assert plan["examples"] == {"added": ["d.md"], "changed": ["a.md"], "removed": ["b.md"]}
    assert set(plan["sinks"]) == {"fts", "chroma"}
    assert all(sink["families"]["changed"] == 1 for sink in plan["sinks"].values())
    assert (plan["cost"], plan["rebuild_due"]) == (None, None)
    assert plan["seconds"] >= 0  # measured by the first sync
    assert (models.loaded, moved.files(), moved.texts("chroma")) == ([], engines, texts)


def test_plan_names_the_first_sources(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    quick_shell.commit("p2", *(source(f"{number:02}.md", f"text {number}") for number in range(25)))
    out = quick_shell("plan").out
    assert re.search(r"25 sources to add\n(  \d\d\.md\n){10}  \.\.\. and 15 more\n", out)
    assert len(quick_shell("plan", "--json").json["examples"]["added"]) == 20
    with chunksink.open() as index:
        assert "25 added" in repr(index.plan())


def test_plan_counts_held_and_superseded_sources(quick_shell: Shell) -> None:
    quick_shell.commit("p1", A)
    quick_shell.commit("p2", source("a.md", "a cheetah", version="2", at=FEBRUARY), B, at=FEBRUARY)
    quick_shell.commit("p3", C)
    quick_shell("sync")
    quick_shell.remove("p3")
    ended = quick_shell("plan", "--json")
    plan = ended.json
    assert (plan["families"]["superseded"], plan["families"]["held"]) == (1, 1)
    assert (ended.code, plan["missing_partitions"]) == (Exit.INVALID_INPUT, ["p3"])


@pytest.mark.parametrize("command", ["plan", "sync --dry-run"])
def test_plan_shows_invalid_new_partitions(command: str, quick_shell: Shell) -> None:
    quick_shell.synced(p1=[A])
    for key in ("p2", "p3"):
        quick_shell.commit(key, B)
    quick_shell.root.manifest_file("p2").unlink()
    quick_shell.cut_off("p3")
    ended = quick_shell(*command.split(), "--json")
    found = {(each["partition"], each["code"]) for each in ended.json["findings"]}
    assert {("p2", MANIFEST_MISSING), ("p3", CHECKSUM_MISMATCH)} <= found
    assert (ended.code, ended.json["errors"]) == (Exit.INVALID_INPUT, len(found))
    assert MANIFEST_MISSING in quick_shell(*command.split()).err


def test_sync_with_a_plan_executes_only_that_plan(moved: Shell) -> None:
    plan = moved("plan", "--json").json
    assert moved("plan", "--json").json == plan
    moved.commit("p3", source("e.md", "an emu"))
    before = moved.files()
    overtaken = moved("sync", "--plan", plan["hash"])
    assert (overtaken.code, overtaken.out, moved.files()) == (Exit.OTHER_PLAN, "", before)
    assert f"not {plan['hash']:.12}; nothing was written" in overtaken.err
    named = moved("plan", "--json").json["hash"]
    short = moved("sync", "--plan", named[:11])
    assert (short.code, f"'{named[:11]}' is too short" in short.err) == (Exit.USAGE, True)
    assert moved("sync", "--plan", named[:12]).code == Exit.OK
    again = moved("sync", "--plan", named)
    assert (again.code, again.out) == (Exit.OTHER_PLAN, "")  # after its execution, the plan is another one
    idle = moved("plan", "--json").json["hash"]
    moved.root.manifest_file("p2").unlink()  # a source that is held from now on also changes the plan
    assert moved("sync", "--plan", idle).code == Exit.OTHER_PLAN


def test_plan_before_the_first_sync_shows_its_cost(
    shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", "1000000")
    monkeypatch.setenv("CHUNKSINK_ENDPOINT", NOT_CALLED)
    shell.commit("p1", source("a.md", "a cat", "a mat", "a cat"), source("b.md", "a cat", "a boat"))
    ended = shell("plan")
    assert ended.code == Exit.OK
    assert ended.out.startswith("2 sources to add\n  a.md\n  b.md\n0 sources unchanged\n5 chunks to write: 0 vectors")
    assert "which costs " in ended.out
    assert (
        "fts: 2 sources to write, it has no build yet\nchroma: 2 sources to write, it has no build yet\n" in ended.out
    )
    assert ended.out.endswith("`chunksink sync` creates it\n")
    plan = shell("plan", "--json").json
    assert (plan["hash"], plan["families"]["added"]) == (None, 2)
    counts = {name: plan["embeddings"][name] for name in ("missing", "repeated", "cached")}
    assert counts == {"missing": 3, "repeated": 2, "cached": 0}
    assert (models.loaded, (shell.home / "fts").exists(), (shell.home / "chroma").exists()) == ([], False, False)
    monkeypatch.delenv("CHUNKSINK_ENDPOINT")
    assert shell("plan", "--json").json["cost"] is None
    report = shell("sync", "--json").json
    assert {name: report["families"][name] for name in plan["families"]} == plan["families"]
    assert report["chunks"] == plan["chunks"]
    assert (report["embeddings"]["computed"], report["embeddings"]["cached"]) == (3, 2)


@pytest.mark.parametrize("how", ["gone", "broken"])
def test_plan_with_an_unreadable_build_writes_all_of_it(how: str, quick_shell: Shell) -> None:
    """A plan changes nothing: the confirmed documents still count for the deletion brake."""
    shell = quick_shell
    shell.synced(p1=[A, B])
    file = Path(shell("endpoints", "--json").json["sinks"]["fts"]["path"])
    shutil.rmtree(file.parent) if how == "gone" else file.write_bytes(b"no database\n" * 1000)
    ended = shell("plan", "--json")
    fts = ended.json["sinks"]["fts"]
    assert (ended.code, fts["families"]["added"], ended.json["chunks"]) == (Exit.OK, 2, {"written": 3, "deleted": 0})
    assert ended.json["examples"]["added"] == ["a.md", "b.md"]
    assert ("`chunksink verify --repair`" if how == "broken" else "a sync writes all of it again") in fts["filled"]
    with State.existing(shell.home) as state:
        assert Receipts(state.db, shell.live().builds["fts"]).documents() == 3
    if how == "gone":
        assert shell("sync", "--plan", ended.json["hash"]).code == Exit.OK
    else:
        assert shell("sync").code == Exit.ENGINE
        assert shell("verify", "--repair").code == Exit.OK
    assert shell.texts() == ["a boat", "a cat", "a mat"]


def test_sync_with_a_plan_builds_no_first_index_and_no_new_sink(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a plan has no hash."""
    quick_shell.commit("p1", A, B)
    ended = quick_shell("sync", "--plan", "0" * 64)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert f"no index in {quick_shell.home} yet" in ended.err
    assert not (quick_shell.home / "fts").exists()
    assert quick_shell("sync").code == Exit.OK
    quick_shell.commit("p1", B)
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,jsonl")
    assert quick_shell("plan", "--json").json["hash"] is None
    assert quick_shell("sync", "--plan", "0" * 64).code == Exit.USAGE
    assert not (quick_shell.home / "jsonl").exists()
    assert quick_shell("sync").code == Exit.OK
    assert quick_shell.texts("jsonl") == quick_shell.texts() == ["a boat"]


@pytest.mark.parametrize("other", ["--watch", "--rebuild"])
def test_sync_with_a_plan_and_another_mode_is_a_usage_error(other: str, quick_shell: Shell) -> None:
    quick_shell.commit("p1", A)
    ended = quick_shell("sync", "--plan", "0" * 64, other)
    assert ended.code == Exit.USAGE
    assert "--watch and --rebuild" in ended.err


@pytest.mark.parametrize(("times", "code"), [(4, Exit.OK), (99, Exit.LOCKED)])
def test_plan_reads_rewritten_chunks_again(
    times: int, code: Exit, quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_shell.synced(p1=[A])
    rewritten, families = [0], Catalog.families

    def rewrite() -> None:
        text = "x" * rewritten[0]
        quick_shell.commit("p1", source("a.md", f"{text} of a cat", version=text, at=FEBRUARY))
        rewritten[0] += 1

    def found_and_rewritten(catalog: Catalog, keys: Sequence[str] | None = None) -> Iterator[CurrentFamily]:
        places = list(families(catalog, keys))
        if rewritten[0] <= times:
            rewrite()
        return iter(places)

    rewrite()
    monkeypatch.setattr(Catalog, "families", found_and_rewritten)
    ended = quick_shell("plan")
    assert ended.code == code
    assert ("1 source to change" in ended.out) == (code == Exit.OK)
    assert ("was rewritten meanwhile; run again" in ended.err) == (code != Exit.OK)


@pytest.fixture
def cached(moved: Shell, models: Models) -> Shell:
    """A home that has nothing but the cache."""
    assert moved("sync").code == Exit.OK
    for left in moved.home.iterdir():
        if not left.name.startswith("vectors.db"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    models.take_texts()
    return moved


def test_plan_before_the_first_index_counts_cached_vectors(cached: Shell, models: Models) -> None:
    found = cached("plan", "--json").json["embeddings"]
    assert (found["cached"], found["missing"]) == (4, 0)
    assert cached("sync").code == Exit.OK
    assert models.take_texts() == []


def test_plan_before_the_first_index_works_without_the_model(
    cached: Shell, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(settings: EncoderSettings, **_options: object) -> None:
        raise ModelUnavailable(f"{settings.model} is not here")

    monkeypatch.setattr("chunksink.embeddings.load.load_encoder", gone)
    ended = cached("plan", "--json")
    assert (ended.code, ended.json["embeddings"]["missing"]) == (Exit.OK, 4)


def test_sync_dry_run_prints_the_plan(moved: Shell) -> None:
    before = moved.files()
    assert moved("sync", "--dry-run", "--json").json == moved("plan", "--json").json
    assert moved("sync", "--dry-run").out == moved("plan").out
    assert moved.files() == before
    assert moved("sync", "--dry-run", "--watch").code == Exit.USAGE


# -- cost --------------------------------------------------------------------------------------------------------------

ENGLISH = (
    "It was a bright cold day in April, and the clocks were striking thirteen. Nobody on the third floor had wound "
    "them since the winter, and the caretaker, who was responsible for such matters, had long left for the coast."
)
CHINESE = "北京是中华人民共和国的首都，也是全国的政治和文化中心。这里每年都有许多来自世界各地的游客前来参观。"
RUSSIAN = "Быстрая коричневая лиса прыгает через ленивую собаку, потому что сегодня хорошая погода."


@pytest.mark.parametrize(
    ("text", "tokens", "within"),
    [(CHINESE, 49, 1.25), (ENGLISH, 46, 1.25), (RUSSIAN, 77, 2)],
)
def test_estimated_tokens_are_near_those_of_the_model(text: str, tokens: int, within: float, shell: Shell) -> None:
    """Independent of what else a line contains, and also if most lines are not read."""
    chunks = [f"{text} {number}" for number in range(2 * SAMPLE)]
    shell.commit("p1", source("a.md", *chunks, metadata={"title": "A", "keywords": ["much else"] * 50}))
    plan = shell("plan", "--json").json
    assert plan["embeddings"]["missing"] == 2 * SAMPLE
    expected = (tokens + 1) * 2 * SAMPLE
    assert expected / within < plan["embeddings"]["tokens"] < expected * within


@pytest.mark.parametrize(("price", "expected"), [("0.02", "0.000000040"), ("0", "0.00"), ("12345678901", "24,691.36")])
def test_cost_has_at_least_two_digits(price: str, expected: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", price)
    monkeypatch.setenv("CHUNKSINK_ENDPOINT", NOT_CALLED)
    shell.commit("p1", source("a.md", "a cat"))
    assert f"about 2 tokens to embed, which costs {expected}\n" in shell("plan").out


def test_estimated_seconds_include_loading_and_text_lengths(shell: Shell) -> None:
    shell.begin("timed", "sync", p1=[source("a.md", "a cat")])
    with State(shell.home) as state:
        assert {"model", "embedded", "fts", "chroma"} <= state.pace().keys()
        state.note_pace({"model": (1, 3.0), "embedded": (10**6, 10**4), "fts": (10**6, 1.0), "chroma": (10**6, 1.0)})
    long, short = ENGLISH * 20, "a dog"
    for text in (short, long):
        shell.commit("p1", source("a.md", text, version=text))
        seconds = shell("plan", "--json").json["seconds"]
        assert seconds == pytest.approx(3 + len(text) * 0.01, rel=0.02)
    shell.commit("p2", source("b.md", "a cat"))
    shell.commit("p1", source("a.md", "a cat"))
    plan = shell("plan", "--json").json
    assert (plan["families"]["added"], plan["embeddings"]["cached"], plan["seconds"]) == (1, 1, 0)
