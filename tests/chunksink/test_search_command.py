"""`chunksink search`: its options, and safe output on a terminal for any text and query."""

import os
import pty
import shutil
import subprocess
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chunksink import views
from chunksink.chunkbus.wording import printable
from chunksink.command_line.exits import Exit
from chunksink.embeddings import load
from chunksink.embeddings.errors import ModelUnavailable
from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.rebuild.state import State
from chunksink.search.legs import REMEDY
from chunksink.settings.config import Config
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.journey.support import Ended, command_line, environment
from tests.support.bus import source
from tests.support.rerank_server import rerank_server

GUIDE = source("guide.md", "the cat sleeps", "a cat and a dog", "nothing else", source_type="md", year=2021)
NOTES = source("notes.txt", "a cat in the notes", source_type="txt", year=2019)


@pytest.fixture
def built(quick_shell: Shell) -> Shell:
    return quick_shell.begin("searched", "sync", p1=[GUIDE, NOTES])


@pytest.fixture
def both(shell: Shell) -> Shell:
    """An index with keyword and semantic search."""
    return shell.begin("searched both ways", "sync", p1=[source("a.md", "a cat", "a mat"), source("b.md", "a boat")])


def sources(shell: Shell, *arguments: str) -> list[str]:
    ended = shell("search", *arguments, "--json")
    assert ended.code == Exit.OK
    return [hit["source_uri"] for hit in ended.json["hits"]]


def test_filters_of_one_field_are_alternatives_and_all_fields_must_match(built: Shell) -> None:
    year = ("--filter", "year>=2020")
    assert sources(built, "cat", *year) == ["guide.md"]
    assert sources(built, "cat", *year, "--filter", "source_type=txt", "--filter", "source_type=md") == ["guide.md"]


def test_search_with_context_and_explain_prints_both(built: Shell) -> None:
    ended = built("search", "dog", "--context", "1", "--explain")
    assert "| the cat sleeps" in ended.out
    assert "| nothing else" in ended.out
    assert "vector none: no sink of the live index has vectors" in ended.out
    assert f"generation {built.live().id}: fts " in ended.out
    explanation = built("search", "dog", "--explain", "--json").json["hits"][0]["explain"]
    assert explanation["shares"][0]["leg"] == "keyword"
    assert explanation["document"]["year"] == 2021


def test_explained_shares_can_be_recomputed(both: Shell) -> None:
    """The value of a share is the score on its scale from `low` to `high`, however small the scores are."""
    hits = both("search", "boat cat", "--explain", "--json").json["hits"]
    shares = [share for hit in hits for share in hit["explain"]["shares"]]
    assert {share["leg"] for share in shares} == {"keyword", "semantic"}
    for share in shares:
        assert share["value"] == pytest.approx((share["score"] - share["low"]) / (share["high"] - share["low"]))
    score, low, high, weight = (shares[0][name] for name in ("score", "low", "high", "weight"))
    line = f"score {score:.4g} ({low:.4g} counts as 0, {high:.4g} as 1), adds {weight:.3g} ×"
    assert line in both("search", "boat cat", "--explain").out


def test_hit_names_other_sources_of_the_same_text(shell: Shell) -> None:
    shell.synced(p1=(source(f"v{n}/a.md", "a boat", "a cat", ids=f"v{n}") for n in range(3)))
    (hit,) = [each for each in shell("search", "boat", "--json").json["hits"] if each["text"] == "a boat"]
    names = ", ".join(one["source_uri"] for one in hit["same_text"])
    assert f"also in 2 other sources: {names}\n" in shell("search", "boat").out
    assert len(sources(shell, "boat", "--mode", "keyword", "--all-chunks")) == 3


def test_hit_shows_the_unquoted_file_name(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("Verträge & mehr/Büro.md", "a boat")])
    assert "   Verträge & mehr/Büro.md" in quick_shell("search", "boat").out


def test_code_is_shown_in_lines(quick_shell: Shell) -> None:
    code = "import oars\n\n\nclass Boat:\n\tdef sail(self):\n\t\treturn 1\n"
    quick_shell.synced(p1=[source("src/boat.py", code, locator={"anchor": "L7"})])
    lines = ["   import oars", "   class Boat:", "       def sail(self):", "           return 1"]
    for words, expected in (("sail", lines[1:]), ("src", lines)):  # with a found word in the text, and without
        shown = quick_shell("search", words).out.splitlines()
        assert shown[1 : len(expected) + 1] == expected
        assert shown[len(expected) + 1].startswith("   src/boat.py#L7  (")


def test_link_to_a_file_shows_the_words_of_its_fragment(quick_shell: Shell) -> None:
    of_both = {"title": "a", "headings": ["電池の充電"], "mime_type": "text/markdown"}
    named = {"電池.md": "a cat", "https://example.org/a.md": "another cat"}
    quick_shell.synced(p1=[source(name, text, **of_both) for name, text in named.items()])
    out = quick_shell("search", "cat").out
    assert "   電池.md#電池の充電  (" in out
    assert "   https://example.org/a.md#%E9%9B%BB" in out


def test_search_without_vectors_is_a_keyword_search(built: Shell) -> None:
    """That is no failure, because no sink was configured to have vectors. Only --mode hybrid and semantic report it."""
    ended = built("search", "cat", "--json")
    assert (ended.code, ended.json["mode"], ended.json["unavailable"]) == (Exit.OK, "keyword", {})
    assert ended.json["notice"] is None
    assert built("search", "cat").err == ""
    both = built("search", "cat", "--mode", "hybrid")
    assert both.err.startswith("Found by words only: ")
    assert built("search", "cat", "--mode", "hybrid", "--json").json["mode"] == "hybrid"
    semantic = built("search", "cat", "--mode", "semantic")
    assert semantic.code == Exit.USAGE


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("chroma", "fts,chroma", "Found by meaning only"),
        ("fts", "fts,chroma", "Found by words only"),
        ("fts", "jsonl,chroma", "this index has no sink for hybrid searches"),
    ],
)
def test_search_with_an_unbuilt_sink_prints_a_notice(
    before: str, now: str, expected: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", before)
    shell.synced(p1=[GUIDE])
    monkeypatch.setenv("CHUNKSINK_SINKS", now)
    notice = shell("search", "cat").err
    assert expected in notice
    assert REMEDY in notice
    assert shell("sync").code == Exit.OK
    assert expected not in shell("search", "cat").err


def test_search_with_an_unknown_sink_is_a_usage_error(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts,chorma")
    ended = built("search", "cat")
    assert (ended.code, "CHUNKSINK_SINKS" in ended.err, "chroma?" in ended.err) == (Exit.USAGE, True, True)


def test_search_warns_of_misspelt_variables(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TENNANTS", "required")
    monkeypatch.setenv("CHUNKSINK_OF_ANOTHER_PROGRAM", "x")
    ended = built("search", "cat")
    assert ended.code == Exit.OK
    [warning] = ended.err.splitlines()
    assert "CHUNKSINK_TENNANTS" in warning and "CHUNKSINK_TENANTS" in warning


def test_hit_shows_its_tenant_unless_one_is_named(built: Shell) -> None:
    built.commit("p2", source("own.md", "a horse of acme", tenant_id="acme"), source("of-all.md", "a horse of all"))
    built("sync")
    printed = built("search", "horse", "--mode", "keyword").out
    assert sorted(line.partition("; tenant ")[2] for line in printed.splitlines() if "(keyword" in line) == [
        "",
        "acme)",
    ]
    assert "; tenant" not in built("search", "horse", "--mode", "keyword", "--tenant", "acme").out


@pytest.mark.promise(11)
def test_search_without_a_required_tenant_is_a_usage_error(built: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    built.commit("p2", source("own.md", "a cat of acme", tenant_id="acme"))
    assert built("sync").code == Exit.OK
    monkeypatch.setenv("CHUNKSINK_TENANTS", "required")
    message = "this index requires a tenant: add --tenant NAME"
    nobody = built("search", "cat", "--json")
    assert (nobody.code, nobody.err) == (Exit.USAGE, f"Error: {message}\n")
    assert nobody.json == {"error": {"exit_code": Exit.USAGE, "message": message}}
    assert sources(built, "cat", "--tenant", "acme") == ["own.md"]


def test_search_does_not_use_former_sinks(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """A former sink is not updated any more."""
    shell.synced(p1=[GUIDE])
    monkeypatch.setenv("CHUNKSINK_SINKS", "fts")
    hits = shell("search", "cat", "--json").json["hits"]
    assert [list(hit["ranks"]) for hit in hits] == [["keyword"]]
    assert shell("search", "cat").err == "", "it was left out on purpose"


@pytest.mark.parametrize("mode", ["keyword", "engine", "hybrid"])
def test_search_without_a_reachable_engine_has_the_engine_exit_code(
    shell: Shell, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of the only engine does not answer. That differs from a search without hits."""
    shell.synced(p1=[GUIDE])
    live = replace(shell.live(), builds={"meilisearch": "b1"})
    monkeypatch.setattr(State, "live", lambda _state: live)
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    ended = shell("search", "cat", "--mode", mode)
    assert (ended.code, ended.out) == (Exit.ENGINE, "")
    leg = "keyword" if mode == "hybrid" else mode
    assert f"no answer from {leg} search: Meilisearch does not answer at http://127.0.0.1:9" in ended.err
    answer = shell("search", "cat", "--mode", mode, "--json")
    assert (answer.code, answer.json["hits"], leg in answer.json["unavailable"]) == (Exit.ENGINE, [], True)


def by_words(ended: Ended) -> str:
    """Why semantic search failed, in an answer with the keyword hits."""
    assert (ended.code, [hit["source_uri"] for hit in ended.json["hits"]]) == (Exit.ENGINE, ["b.md"])
    reason: str = ended.json["unavailable"]["semantic"]
    return reason


def test_search_without_the_model_answers_by_keywords(both: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: object, **_options: object) -> None:
        raise ModelUnavailable("it is not here")

    monkeypatch.setattr(load, "load_encoder", fails)
    assert "that made the live index cannot be loaded" in by_words(both("search", "boat", "--json"))
    semantic = both("search", "boat", "--mode", "semantic", "--json")
    assert (semantic.code, semantic.json["hits"], list(semantic.json["unavailable"])) == (Exit.ENGINE, [], ["semantic"])
    assert sources(both, "boat", "--mode", "keyword") == ["b.md"]


def test_search_with_another_model_of_that_name_answers_by_keywords(both: Shell, models: Models) -> None:
    """Vectors of two different models cannot be compared."""
    other = models.known[DEFAULT_MODEL] = HashEncoder(dimension=8, name="retrained")
    assert "than the model of the live index" in by_words(both("search", "boat", "--json"))
    assert other.asked == []


@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_search_names_the_engine_without_its_build(damage: str, both: Shell) -> None:
    """First the keyword engine fails, then the vector store, and keyword search still answers."""
    words, aside = both.home / "fts", both.folder / "aside"
    words.rename(aside)
    ended = both("search", "boat")
    assert (ended.code, "run `chunksink sync`" in ended.err) == (Exit.ENGINE, True)
    aside.rename(words)
    build = both.home / "chroma" / both.live().builds["chroma"]
    shutil.rmtree(build)
    if damage == "empty":
        build.mkdir()
    assert "chunksink sync" in by_words(both("search", "boat", "--json"))
    ended = both("search", "boat")
    assert (ended.code, "without semantic search:" in ended.err, "b.md" in ended.out) == (Exit.ENGINE, True, True)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["cat", "--filter", "colour=red"], "colour"),
        (["cat", "--tenant", ""], "tenant"),
        (["x" * 10_001], "10,001"),
        (["cat", "--offset", "10000"], "10005"),
    ],
)
def test_search_with_invalid_arguments_is_a_usage_error(built: Shell, wrong: list[str], named: str) -> None:
    ended = built("search", *wrong)
    assert (ended.code, ended.out) == (Exit.USAGE, "")
    assert named in ended.err


def test_hits_after_an_offset_are_numbered_from_it(built: Shell) -> None:
    built.commit("p2", *(source(f"{n}.md", f"a cat {n}") for n in range(7)))
    assert built("sync").code == Exit.OK
    out = built("search", "cat", "--offset", "5", "--limit", "2", "--explain").out
    assert [line.partition(".")[0] for line in out.splitlines() if line[:1].isdigit()] == ["6", "7"]
    assert built("search", "cat", "--offset", "50").out == "nothing more found\n"
    assert built("search", "zyzzyva").out == "nothing found\n"


def test_several_words_are_one_query_and_may_begin_with_a_hyphen(built: Shell) -> None:
    assert len(built("search", "--json", "--", "-cat").json["hits"]) == 2
    answer = built("search", "cat", "the", "notes", "--limit", "1", "--json").json
    assert (answer["query"], answer["hits"][0]["source_uri"]) == ("cat the notes", "notes.txt")
    assert built("search").code == Exit.USAGE
    assert sources(built, '"the', 'notes"') == ["notes.txt"]


@pytest.mark.parametrize(
    ("sinks", "mode", "opened"),
    [
        ("fts,chroma", "keyword", ["fts"]),
        ("chroma,fts", "keyword", ["chroma", "fts"]),
        ("fts,chroma,jsonl", "semantic", ["fts", "chroma"]),
    ],
)
def test_search_opens_only_the_sinks_it_needs(
    shell: Shell, sinks: str, mode: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keyword sink is always needed, because it finds quoted phrases."""
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


# -- on a terminal -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["\x1b[31mred\x1b[0m cat", "a\u202ecat cat"])
def test_output_contains_no_control_characters(built: Shell, query: str) -> None:
    built.commit("p2", source("\x1b[2Jevil.md", f"{query} and more", title="\x1b[31mtitle"))
    assert built("sync").code == Exit.OK
    ended = built("search", "cat", "--context", "1", "--explain", "--facet", "source_type")
    assert "\x1b[2J" not in ended.out
    assert "\x1b[31m" not in ended.out
    assert "\u202e" not in ended.out


@pytest.mark.parametrize("char", "\n\x1b\x9b\u061c\u200e\u200f\u2028\u202a\u202e\u2066\u2069\ufff9", ids=ascii)
def test_printable_escapes_control_and_direction_characters(char: str) -> None:
    assert printable(f"a{char}b") == f"a{ascii(char)[1:-1]}b"


@pytest.mark.parametrize("word", ["x" * 5000, "long words " * 500, "語" * 5000])
def test_long_texts_are_cut(built: Shell, word: str) -> None:
    giant = source("own.md", f"{word} cat {word}", word, source_type="long", title=word, headings=[word])
    built.commit("p2", giant)
    assert built("sync").code == Exit.OK
    out = built("search", "cat", "--filter", "source_type=long", "--context", "1").out
    assert max(map(len, out.splitlines())) < 900
    assert "own.md#…  (keyword 1)" in out
    assert " cat " in out


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """Both outputs of a command on a terminal."""
    master, slave = pty.openpty()
    inherited = {name: value for name, value in environment().items() if name != "NO_COLOR"}
    with subprocess.Popen(
        command_line(*arguments), cwd=folder, env=inherited | variables, stdin=slave, stdout=slave, stderr=slave
    ):
        os.close(slave)
        written = b""
        with suppress(OSError):  # the error of a terminal whose other end is closed
            while part := os.read(master, 65536):
                written += part
    os.close(master)
    return written.decode()


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_follow_the_environment(built: Shell, variables: dict[str, str], coloured: bool) -> None:
    arguments = ("search", "cat", "--mode", "hybrid")  # prints a warning with this index
    written = on_a_terminal(built.folder, *arguments, CHUNKSINK_SINKS="fts", **variables)
    assert "a cat in the notes" in written.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert ("\x1b" in written) is coloured


def test_configured_reranker_decides_the_order(both: Shell) -> None:
    """If the reranker does not answer, the search answers without it."""
    with rerank_server() as server:
        (both.folder / "chunksink.toml").write_text(f'[rerank]\nurl = "{server.url}"\ntop = 3\ndeadline = 20\n')
        ended = both("search", "boat cat", "--explain", "--json")
        scores = [hit["explain"]["rerank"]["score"] for hit in ended.json["hits"][:3]]
        assert scores == sorted(scores, reverse=True)
        assert both("search", "boat cat", "--explain").out.count("rerank: the reranker's score ") == len(scores)
    ended = both("search", "boat cat", "--json")
    assert ended.code == Exit.OK
    assert ended.json["hits"]
    assert server.url in ended.json["not_reranked"]
    (both.folder / "chunksink.toml").write_text("[rerank]\ntop = 1000\n")
    assert both("search", "boat cat").code == Exit.USAGE
