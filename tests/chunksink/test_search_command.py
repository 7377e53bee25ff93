"""`chunksink search` with its options, in a folder with an index."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from chunksink import views
from chunksink.exits import Exit
from chunksink.rebuild.state import State
from chunksink.settings.config import Config
from tests.chunksink.shell import Shell
from tests.support.bus import source

GUIDE = source("guide.md", "the cat sleeps", "a cat and a dog", "nothing else", source_type="md", year=2021)
NOTES = source("notes.txt", "a cat in the notes", source_type="txt", year=2019)


@pytest.fixture
def built(quick_shell: Shell) -> Shell:
    return quick_shell.begin("searched", "sync", p1=[GUIDE, NOTES])


def sources(shell: Shell, *arguments: str) -> list[str]:
    ended = shell("search", *arguments, "--json")
    assert ended.code == Exit.OK
    return [hit["source_uri"] for hit in ended.json["hits"]]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["source_type=md"], ["guide.md"]),
        (["year>=2020"], ["guide.md"]),
        (["year<2020"], ["notes.txt"]),
        (["source_type=md", "source_type=txt"], ["guide.md", "notes.txt"]),
        (["source_type=md", "year<2020"], []),
    ],
)
def test_filters(built: Shell, filters: list[str], found: list[str]) -> None:
    assert sorted(sources(built, "cat", *(part for one in filters for part in ("--filter", one)))) == found


def test_a_wrong_filter_is_said_with_the_known_fields(built: Shell) -> None:
    ended = built("search", "cat", "--filter", "colour=red")
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert "'colour' cannot be filtered; these can: authors" in ended.err


def test_context_and_explanation(built: Shell) -> None:
    ended = built("search", "dog", "--context", "1", "--explain")
    assert "| the cat sleeps" in ended.out
    assert "| nothing else" in ended.out
    assert "keyword: rank 1, score" in ended.out
    assert "one leg alone, as its engine gave it" in ended.out
    assert "number 2 of 3 of" in ended.out
    assert "vector none, as no sink of the live index holds vectors" in ended.out
    told = built("search", "dog", "--explain", "--json").json["hits"][0]["explain"]
    assert told["shares"][0]["leg"] == "keyword"
    assert told["document"]["year"] == 2021
    assert any(line.startswith("generation") for line in told["lines"])


def test_an_index_without_vectors_answers_by_words(built: Shell) -> None:
    """Nothing is missing: no sink was meant to hold any. Only who asks for meaning is told."""
    ended = built("search", "cat", "--json")
    assert (ended.code, ended.json["mode"], ended.json["unavailable"]) == (Exit.OK, "keyword", {})
    assert ended.json["notice"] is None
    assert built("search", "cat").err == ""
    both = built("search", "cat", "--mode", "hybrid")
    assert both.err.startswith("by words only: no build of this index is searched by meaning; ")
    assert built("search", "cat", "--mode", "hybrid", "--json").json["mode"] == "hybrid"
    semantic = built("search", "cat", "--mode", "semantic")
    assert semantic.code == Exit.USAGE
    assert "no build of this index answers semantic searches; ask with the mode hybrid or keyword" in semantic.err


SYNC = "where a sink for that is configured, `chunksink sync` builds it"


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("fts", "fts,chroma", "by words only: no build of this index is searched by meaning"),
        ("chroma", "fts,chroma", "by meaning only: no build of this index is searched by words"),
        ("fts", "jsonl,chroma", "no build of this index answers hybrid searches"),
    ],
)
def test_a_sink_that_has_no_build_yet_is_not_said_to_be_missing(
    before: str, now: str, told: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", before)
    shell.synced(p1=[GUIDE])
    monkeypatch.setenv("CHUNKSINK_SINKS", now)
    assert f"{told}; {SYNC}" in shell("search", "cat").err
    assert shell("sync").code == Exit.OK
    assert told not in shell("search", "cat").err


@pytest.mark.promise(11)
def test_a_sink_that_is_none_is_refused(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chorma")
    ended = built("search", "cat")
    assert (ended.code, ended.err[:32]) == (Exit.USAGE, "Error: there is no sink 'chorma'")


def test_a_variable_that_looks_like_a_slip_is_told(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TENNANTS", "required")
    monkeypatch.setenv("CHUNKSINK_OF_ANOTHER_PROGRAM", "x")
    ended = built("search", "cat")
    assert ended.code == Exit.OK
    assert ended.err.splitlines() == [
        "warning: no setting is called CHUNKSINK_TENNANTS, and it is ignored; CHUNKSINK_TENANTS is one"
    ]


def test_a_hit_says_whose_it_is_where_nobody_was_named(built: Shell) -> None:
    built.commit("p2", source("own.md", "a horse of acme", tenant_id="acme"), source("of-all.md", "a horse of all"))
    built("sync")
    told = built("search", "horse", "--mode", "keyword").out
    assert sorted(line.partition("; tenant ")[2] for line in told.splitlines() if "(keyword" in line) == ["", "acme)"]
    assert "; tenant" not in built("search", "horse", "--mode", "keyword", "--tenant", "acme").out


def test_a_required_tenant(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    built.commit("p2", source("own.md", "a cat of acme", tenant_id="acme"))
    assert built("sync").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_TENANTS", "required")
    told = "this index serves each tenant its own documents: say --tenant NAME"
    nobody = built("search", "cat")
    assert (nobody.code, nobody.out, nobody.err) == (Exit.USAGE, "", f"Error: {told}\n")
    for_machines = built("search", "cat", "--json")
    assert for_machines.code == Exit.USAGE
    assert for_machines.json == {"error": {"exit_code": Exit.USAGE, "message": told}}
    assert sources(built, "cat", "--tenant", "acme") == ["own.md"]


def test_a_sink_that_is_not_configured_any_more_is_not_asked(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not kept up to date."""
    shell.synced(p1=[GUIDE])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    hits = shell("search", "cat", "--json").json["hits"]
    assert [list(hit["ranks"]) for hit in hits] == [["keyword"]]
    assert shell("search", "cat").err == "", "it was left out on purpose"


@pytest.mark.parametrize("mode", ["keyword", "engine", "hybrid"])
def test_where_no_engine_can_be_asked_nothing_is_said_to_be_found(
    shell: Shell, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens at the address of the only engine: that is another thing than a search without hits."""
    shell.synced(p1=[GUIDE])
    live = replace(shell.live(), builds={"meilisearch": "b1"})
    monkeypatch.setattr(State, "live", lambda _state: live)
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    ended = shell("search", "cat", "--mode", mode)
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    leg = "keyword" if mode == "hybrid" else mode
    assert f"no answer of {leg} search: no Meilisearch answers at http://127.0.0.1:9" in ended.err
    told = shell("search", "cat", "--mode", mode, "--json")
    assert (told.code, told.json["hits"], leg in told.json["unavailable"]) == (Exit.ENGINE, [], True)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["cat", "--tenant", ""], "an empty tenant is nobody"),
        (["x" * 10_001], "the query has 10,001 characters, at most 10,000"),
        (["cat", "--offset", "10000"], "hits 10001 to 10005 were asked for: they end at 10000"),
    ],
)
def test_what_cannot_be_asked_is_refused(built: Shell, wrong: list[str], said: str) -> None:
    ended = built("search", *wrong)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert said in ended.err


def test_hits_of_a_later_page_have_the_numbers_of_their_places(built: Shell) -> None:
    built.commit("p2", *(source(f"{n}.md", f"a cat {n}") for n in range(7)))
    assert built("sync").code == Exit.OK
    out = built("search", "cat", "--offset", "5", "--limit", "2", "--explain").out
    assert [line.partition(".")[0] for line in out.splitlines() if line[:1].isdigit()] == ["6", "7"]
    assert built("search", "cat", "--offset", "50").out == "nothing more found\n"
    assert built("search", "zyzzyva").out == "nothing found\n"


def test_a_query_that_begins_with_a_hyphen(built: Shell) -> None:
    hits = built("search", "--json", "--", "-cat").json["hits"]
    assert sorted(hit["source_uri"] for hit in hits) == ["guide.md", "notes.txt"]


def test_several_words_are_one_query(built: Shell) -> None:
    told = built("search", "cat", "the", "notes", "--limit", "1", "--json").json
    assert (told["query"], told["hits"][0]["source_uri"]) == ("cat the notes", "notes.txt")
    assert built("search").code == Exit.USAGE
    assert sources(built, '"the', 'notes"') == ["notes.txt"]


@pytest.mark.parametrize(
    ("sinks", "mode", "opened"),
    [
        ("fts,chroma", "keyword", ["fts"]),
        ("chroma,fts", "keyword", ["chroma", "fts"]),
        ("fts,chroma", "hybrid", ["fts", "chroma"]),
        ("chroma,fts", "semantic", ["chroma", "fts"]),
        ("fts,chroma,jsonl", "semantic", ["fts", "chroma"]),
    ],
)
def test_no_more_sinks_are_opened_than_answer(
    shell: Shell, sinks: str, mode: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of words in any case: it tells what holds what stands in quotes, too."""
    monkeypatch.setenv("CHUNKSINK_SINKS", sinks)
    shell.synced(p1=[NOTES, GUIDE])
    seen: list[str] = []
    real = views.open_one_sink

    def noting(config: Config, stack: ExitStack, name: str) -> Any:
        seen.append(name)
        return real(config, stack, name)

    monkeypatch.setattr(views, "open_one_sink", noting)
    assert sources(shell, '"the notes"', "--mode", mode) == ["notes.txt"]
    assert seen == opened
