"""`rebuild --require-eval` shows the new generation only if its answers are not worse."""

import json
import os
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import chunksink
from chunksink.command_line.exits import Exit
from chunksink.embeddings.encoder import EncodedBatch
from chunksink.errors import WorseAnswers
from tests.chunksink.shell import Models, Shell, write
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import FEBRUARY, source

TEXTS = {f"docs/{name}.md": f"{name} is alone" for name in ("ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen")}
EVAL = "eval --queries queries.tsv --qrels qrels.txt --mode semantic --mode keyword --save answers.json"


class Forgetful(HashEncoder):
    """A model whose vector of a query is unrelated to its vector of the same text."""

    def __init__(self) -> None:
        super().__init__(dimension=12, name="worse")
        self.info = replace(self.info, query_prompt="query: ")

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        return super()._run([prompt + text for text in texts], "", contexts)


@pytest.fixture
def judged(shell: Shell, models: Models) -> Shell:
    """Judgements in which a query finds the source of exactly its text."""
    models.known["worse"] = Forgetful()
    write(shell, "queries.tsv", "".join(f"q{number}\t{text}\n" for number, text in enumerate(TEXTS.values())))
    write(shell, "qrels.txt", "".join(f"q{number} 0 {name} 1\n" for number, name in enumerate(TEXTS)))
    name = "gate in meilisearch" if "MEILI_URL" in os.environ else "gate"
    return shell.begin(name, "sync", EVAL, p1=[source(name, text) for name, text in TEXTS.items()])


def test_rebuild_with_a_worse_model_keeps_the_live_generation(judged: Shell) -> None:
    before = judged.live()
    ended = judged("rebuild", "--model", "worse", "--require-eval", "answers.json", "--json")
    assert (ended.code, ended.json["error"]["exit_code"]) == (Exit.WORSE, Exit.WORSE)
    evaluation = ended.json["evaluation"]
    assert evaluation["dropped"] == ["semantic"]
    assert evaluation["modes"]["keyword"]["difference"]["mean"] == 0
    assert len(evaluation["modes"]["semantic"]["lost"]) == 5
    assert judged.live() == before
    found = judged("search", "ant is alone", "--mode", "semantic", "--json")
    assert (found.code, found.json["hits"][0]["source_uri"]) == (Exit.OK, "docs/ant.md")
    assert judged("sync").code == Exit.OK
    assert judged("verify").code == Exit.OK


def test_refused_generation_is_shown_by_a_rebuild_without_the_check(judged: Shell) -> None:
    assert judged("rebuild", "--model", "worse", "--require-eval", "answers.json").code == Exit.WORSE
    ended = judged("rebuild", "--model", "worse", "--json")
    assert (ended.code, ended.json["chunks"]["written"]) == (Exit.OK, 0)
    assert judged.live().model.name == "worse"


@pytest.mark.parametrize("sinks", [("--sink", "fts"), ()])
def test_rebuild_with_the_same_model_flips_and_reports_the_comparison(judged: Shell, sinks: tuple[str, ...]) -> None:
    before = judged.live()
    judged.commit("p2", source("docs/new.md", "something else"), at=FEBRUARY)
    ended = judged("rebuild", "--require-eval", "answers.json", *sinks, "--json")
    assert ended.code == Exit.OK
    assert judged.live() != before
    semantic = ended.json["evaluation"]["modes"]["semantic"]
    assert (semantic["before"], semantic["after"], ended.json["evaluation"]["dropped"]) == (1.0, 1.0, [])


def test_limit_without_a_result_is_refused(quick_shell: Shell) -> None:
    assert quick_shell("rebuild", "--fail-if-drop", "0.2").code == Exit.USAGE


def test_limit_that_is_no_number_is_refused(judged: Shell) -> None:
    before = judged.live()
    ended = judged("rebuild", "--model", "worse", "--require-eval", "answers.json", "--fail-if-drop", "nan")
    assert (ended.code, judged.live()) == (Exit.USAGE, before)


def test_drop_within_the_limit_flips(judged: Shell) -> None:
    ended = judged("rebuild", "--model", "worse", "--require-eval", "answers.json", "--fail-if-drop", "1")
    assert (ended.code, judged.live().model.name) == (Exit.OK, "worse")


def test_rebuild_without_a_live_generation_reports_its_own_figures(judged: Shell) -> None:
    ended = judged("rebuild", "--home", "other", "--require-eval", "answers.json", "--json")
    assert ended.code == Exit.OK
    assert ended.json["evaluation"]["modes"]["semantic"] == {"before": None, "after": 1.0}


def test_python_raises_worse_answers(judged: Shell, models: Models) -> None:
    write(judged, "chunksink.toml", 'model = "worse"\n')
    with chunksink.open(judged.folder) as index, pytest.raises(WorseAnswers) as caught:
        index.rebuild(require_eval=Path("answers.json"))
    assert caught.value.evaluation["dropped"] == ["semantic"]


def test_rebuild_that_cannot_be_measured_keeps_the_live_generation(judged: Shell) -> None:
    """The chunks have none of the judged sources."""
    saved = json.loads((judged.folder / "answers.json").read_text())
    never = {query: {"docs/never.md": 1} for query in saved["judged"]["queries"]}
    write(judged, "other.json", json.dumps(saved | {"judged": saved["judged"] | {"judgements": never}}))
    write(judged, "half.json", json.dumps(saved | {"judged": saved["judged"] | {"judgements": {}}}))
    before = judged.live()
    for name in ("other.json", "half.json", "queries.tsv"):
        assert judged("rebuild", "--require-eval", name).code == Exit.USAGE
    assert judged.live() == before


@pytest.mark.usefixtures("public_index")
def test_worse_model_in_meilisearch_is_refused(judged: Shell) -> None:
    """The new index of the server is measured before it gets the public name."""
    before = judged.live()
    assert "meilisearch" in before.builds
    ended = judged("rebuild", "--model", "worse", "--require-eval", "answers.json", "--json")
    assert (ended.code, ended.json["evaluation"]["dropped"]) == (Exit.WORSE, ["semantic"])
    assert judged.live() == before
    found = judged("search", "ant is alone", "--mode", "keyword", "--json")
    assert (found.code, found.json["hits"][0]["source_uri"]) == (Exit.OK, "docs/ant.md")
