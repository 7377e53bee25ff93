"""`chunksink eval` over a home with real engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.embeddings import load
from chunksink.exits import Exit
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts

TEXTS = {"pets": "the cat sleeps", "sea": "a boat at sea", "law": "a levy on boats", "more": "cat and boat"}
QUERIES = '{"_id": "1", "text": "cat"}\n{"_id": "2", "text": "levy"}\n{"_id": "3", "text": "never judged"}\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("built")
    home = Home(folder / "home", BusRoot(folder / "chunks"), fts, chroma)
    records = [one for name, text in TEXTS.items() for one in source(f"docs/{name}.md", text)]
    commit(home.root, "p1", records)
    home.rebuild()
    return home


@pytest.fixture(autouse=True)
def loads(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = HashEncoder(dimension=8)
    monkeypatch.setattr(load, "load_encoder", lambda _name, **_settings: encoder)


class Shell:
    def __init__(self, home: Home, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._home, self._folder, self._capsys = home, folder, capsys

    def __call__(self, qrels: str, *arguments: str, queries: str = QUERIES) -> tuple[int, str, str]:
        (self._folder / "queries.jsonl").write_text(queries)
        (self._folder / "qrels.tsv").write_text(qrels)
        files = ("--queries", str(self._folder / "queries.jsonl"), "--qrels", str(self._folder / "qrels.tsv"))
        places = ("--home", str(self._home.folder), "--chunks", str(self._home.root.path))
        code = run(["eval", *files, *places, *arguments])
        return code, *self._capsys.readouterr()


@pytest.fixture
def shell(built: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(built, tmp_path, capsys)


def qrels(**names: str) -> str:
    return f"query-id\tcorpus-id\tscore\n1\t{names['pets']}\t1\n2\t{names['law']}\t2\n2\t{names['sea']}\t1\n"


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("document_id", {name: f"docs/{name}.md@1" for name in TEXTS}),
        ("source_uri", {name: f"docs/{name}.md" for name in TEXTS}),
        ("filename", {name: name for name in TEXTS}),
    ],
)
def test_keyword_figures_by_hand(shell: Shell, field: str, names: dict[str, str]) -> None:
    """`cat` finds the longer text first or second; `levy` finds law, and never the sea."""
    code, out, _ = shell(qrels(**names), "--mode", "keyword", "--json")
    report = json.loads(out)
    assert (code, report["queries"], report["queries_not_judged"]) == (Exit.OK, 2, 1)
    assert (report["id"], report["judged_but_missing"]) == (field, [])
    figures = {name: one["mean"] for name, one in report["modes"]["keyword"].items()}
    levy = 2 / (2 + 1 / 1.584962500721156)
    assert figures["recall@100"] == pytest.approx((1 + 0.5) / 2)
    assert figures["nDCG@10"] in (pytest.approx((1 + levy) / 2), pytest.approx((0.6309297535714575 + levy) / 2))
    assert figures["MRR@10"] in (1, 0.75)


def test_chunks_are_named_one_by_one(shell: Shell, built: Home) -> None:
    ids = [json.loads(line)["chunk_id"] for line in built.root.chunks_file("p1").read_text().splitlines()]
    code, out, _ = shell(f"1 0 {ids[0]} 1\n", "--mode", "keyword", "--json")
    report = json.loads(out)
    assert (code, report["id"], report["modes"]["keyword"]["recall@100"]["mean"]) == (Exit.OK, "chunk_id", 1)


def test_without_a_mode_all_are_shown(shell: Shell) -> None:
    names = {name: f"docs/{name}.md" for name in TEXTS}
    code, out, error = shell(qrels(**names) + "2\tdocs/never.md\t1\n9\tdocs/law.md\t1\n")
    assert code == Exit.OK
    assert [line.split()[0] for line in out.splitlines()[-3:]] == ["keyword", "semantic", "hybrid"]
    assert "2 judged queries, documents named by source_uri" in out
    assert "1 without a relevant document" in out
    assert "1 judged, but not in the file of queries" in out
    assert "1 judged, but no document has the name: docs/never.md" in error


def test_a_given_field_is_taken(shell: Shell) -> None:
    code, _, error = shell(qrels(**{name: name for name in TEXTS}), "--id", "document_id")
    assert code == Exit.USAGE
    assert "none of the 3 judged names is the document_id of a document" in error


@pytest.mark.parametrize(
    ("judged", "said"),
    [("1\tpets\n", "line 1: "), ("7\tpets\t1\n", "belong together"), ("1\tpets\t0\n", "belong together")],
)
def test_what_cannot_be_measured_is_said(shell: Shell, judged: str, said: str) -> None:
    code, out, error = shell(judged)
    assert (code, out) == (Exit.USAGE, "")
    assert said in error


def test_a_copy_is_found_with_what_it_is_a_copy_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A search shows both as one hit."""
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, chroma)
    commit(home.root, "p1", [*source("docs/pets.md", "a cat"), *source("docs/twin.md", "a cat")])
    home.rebuild()
    judged = "1\tpets\t1\n1\ttwin\t1\n"
    code, out, _ = Shell(home, tmp_path, capsys)(judged, "--mode", "keyword", "--id", "filename", "--json")
    assert (code, json.loads(out)["modes"]["keyword"]["recall@100"]["mean"]) == (Exit.OK, 1.0)
