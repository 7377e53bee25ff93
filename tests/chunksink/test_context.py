"""The commands that show the context of a chunk, and those that use it to find a vector."""

import pytest

from chunksink.command_line.exits import Exit
from chunksink.embeddings.resolve import DEFAULT_MODEL
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import source


@pytest.fixture
def synced(shell: Shell, models: Models) -> Shell:
    models.known[DEFAULT_MODEL] = HashEncoder(dimension=8, name=DEFAULT_MODEL, embed_context="title, headings")
    return shell.synced(p1=[titled("Animals")])


def titled(title: str) -> list[dict[str, object]]:
    return source("a.md", "an okapi", metadata={"title": title, "headings": [title, "Okapi"]})


def test_context_and_its_vector_are_shown(synced: Shell) -> None:
    why = synced("why", "a.md", "--json").json
    ref = why["cached_vector"]["ref"]
    assert why["context"] == "Animals\nOkapi"
    assert ref.partition("/")[2] == why["vector_key"].removeprefix("sha256:")
    assert synced("cache", "show", ref, "--json").json["ref"] == ref
    explained = synced("search", "okapi", "--explain").out
    assert ref in explained.replace("\n", "").replace(" ", "")
    assert "Animals > Okapi" in explained
    assert "Animals > Okapi" in synced("why", "a.md").out


def test_renamed_title_is_planned_and_its_old_vector_collected(synced: Shell, models: Models) -> None:
    assert synced("cache", "gc", "--json").json["rows"] == 0
    models.take_texts()
    synced.commit("p1", titled("Beasts"))
    assert synced("plan", "--json").json["embeddings"]["missing"] == 1
    assert synced("sync").code == Exit.OK
    assert models.take_texts() == ["Beasts\nOkapi\n\nan okapi"]
    assert synced("verify", "--deep").code == Exit.OK
    collected = synced("cache", "gc", "--json").json
    assert (collected["rows"], collected["kept_rows"]) == (1, 1)


def test_forget_drops_the_vectors_of_every_context(synced: Shell) -> None:
    synced.commit("p1", titled("Beasts"))
    assert synced("sync").code == Exit.OK
    assert synced("forget", "a.md", "--json").json["vectors"] == 2


def test_first_plan_counts_a_vector_for_each_context(shell: Shell) -> None:
    shell.commit("p1", titled("Animals"), source("b.md", "an okapi", "an okapi", metadata={"title": "Beasts"}))
    plan = shell("plan", "--json").json["embeddings"]
    assert (plan["missing"], plan["repeated"]) == (2, 1)
