"""`chunksink search` over a home: without an index, without its model, without one of its engines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from chunksink.chunkbus.layout import BusRoot
from chunksink.cli import run
from chunksink.embeddings import load
from chunksink.exits import Exit
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.local_engines import chroma, fts

MODEL = "hash"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("built")
    home = Home(folder / "home", BusRoot(folder / "chunks"), fts, chroma)
    commit(home.root, "p1", [*source("docs/a.md", "a cat", "a mat"), *source("docs/b.md", "a boat")])
    home.rebuild()
    return home


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> HashEncoder:
    """The model that made the index, in place of one that takes seconds to load."""
    encoder = HashEncoder(dimension=8)
    monkeypatch.setattr(load, "load_encoder", lambda _name, **_settings: encoder)
    return encoder


def answer(capsys: pytest.CaptureFixture[str], home: Path, *arguments: str) -> tuple[int, dict[str, object]]:
    code = run(["search", *arguments, "--home", str(home), "--json"])
    return code, json.loads(capsys.readouterr().out)


def sources(report: dict[str, object]) -> list[str]:
    hits = report["hits"]
    assert isinstance(hits, list)
    return [hit["source_uri"] for hit in hits]


@pytest.mark.usefixtures("loads")
def test_all_is_well(built: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference for the faults below: both legs answer."""
    code, report = answer(capsys, built.folder, "boat", "--limit", "1")
    assert (code, sources(report), report["unavailable"]) == (Exit.OK, ["docs/b.md"], {})


@pytest.mark.usefixtures("loads")
def test_an_explanation_can_be_followed(built: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Each share is its score between the two that it was scaled by, however small the scores are."""
    _, report = answer(capsys, built.folder, "boat cat", "--explain")
    hits: Any = report["hits"]
    shares = [share for hit in hits for share in hit["explain"]["shares"]]
    assert {share["leg"] for share in shares} == {"keyword", "semantic"}
    for share in shares:
        assert share["value"] == pytest.approx((share["score"] - share["low"]) / (share["high"] - share["low"]))
    line, share = hits[0]["explain"]["lines"][0], shares[0]
    assert f"score {share['score']:.4g} ({share['low']:.4g} counts as 0, {share['high']:.4g} as 1), gives 0.5 x" in line


@pytest.mark.usefixtures("loads")
def test_sources_of_the_same_text_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts, chroma)
    commit(
        home.root, "p1", [record for n in range(3) for record in source(f"v{n}/a.md", "a boat", "a cat", ids=f"v{n}")]
    )
    home.rebuild()
    hits: Any = answer(capsys, home.folder, "boat")[1]["hits"]
    (hit,) = [each for each in hits if each["text"] == "a boat"]
    assert run(["search", "boat", "--home", str(home.folder)]) == Exit.OK
    names = ", ".join(one["source_uri"] for one in hit["same_text"])
    assert f"also in 2 other sources: {names}\n" in capsys.readouterr().out
    assert len(sources(answer(capsys, home.folder, "boat", "--mode", "keyword", "--all-chunks")[1])) == 3


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_no_index_yet_says_what_to_run(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "cat", "--mode", mode, "--home", str(tmp_path / "home")]) == Exit.USAGE
    assert "build one with `chunksink sync`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_gone_leaves_the_words(built: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """No such model can be found: it was a folder that has moved."""
    code, report = answer(capsys, built.folder, "boat")
    assert (code, sources(report)) == (Exit.ENGINE, ["docs/b.md"])
    assert "the model hash that made the live index cannot be loaded" in str(report["unavailable"])
    code, report = answer(capsys, built.folder, "boat", "--mode", "semantic")
    assert (code, sources(report), list(report["unavailable"])) == (Exit.ENGINE, [], ["semantic"])  # type: ignore[call-overload]
    code, report = answer(capsys, built.folder, "boat", "--mode", "keyword")
    assert (code, sources(report), report["unavailable"]) == (Exit.OK, ["docs/b.md"], {})


def test_another_model_under_the_same_name_is_not_asked(
    built: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its vectors would be compared with those of a model that it is not."""
    other = HashEncoder(dimension=8, name="retrained")
    monkeypatch.setattr(load, "load_encoder", lambda _name, **_settings: other)
    code, report = answer(capsys, built.folder, "boat")
    assert (code, sources(report)) == (Exit.ENGINE, ["docs/b.md"])
    assert "is not the model any more" in str(report["unavailable"])
    assert other.asked == []


@pytest.mark.usefixtures("loads")
@pytest.mark.parametrize("damage", ["gone", "empty"])
def test_an_engine_that_lost_its_build_is_named(
    damage: str, built: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """First that of words, then that of vectors, which leaves the words."""
    home = tmp_path / "home"
    shutil.copytree(built.folder, home)
    shutil.move(home / "fts", tmp_path / "fts")
    assert run(["search", "boat", "--home", str(home)]) == Exit.ENGINE
    assert "run `chunksink sync`" in capsys.readouterr().err
    shutil.move(tmp_path / "fts", home / "fts")
    build = home / "chroma" / built.live().builds["chroma"]
    shutil.rmtree(build)
    if damage == "empty":
        build.mkdir()
    code, report = answer(capsys, home, "boat")
    assert (code, sources(report)) == (Exit.ENGINE, ["docs/b.md"])
    assert "chunksink sync" in str(report["unavailable"])
    assert run(["search", "boat", "--home", str(home)]) == Exit.ENGINE
    captured = capsys.readouterr()
    assert "without semantic search:" in captured.err
    assert "docs/b.md" in captured.out


def test_a_file_is_named_as_it_is_called(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home(tmp_path / "home", BusRoot(tmp_path / "chunks"), fts)
    commit(home.root, "p1", source("Verträge & mehr/Büro.md", "a boat"))
    home.rebuild()
    assert run(["search", "boat", "--mode", "keyword", "--home", str(home.folder)]) == Exit.OK
    assert "   Verträge & mehr/Büro.md" in capsys.readouterr().out
