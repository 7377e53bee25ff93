"""`chunksink settings` against a real server."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chunksink.cli import run
from chunksink.exits import Exit
from chunksink.settings.config import ConfigError
from chunksink.settings.index_settings import differences, load_index_settings
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.errors import Refused
from chunksink.sinks.meilisearch import MeilisearchSink
from tests.chunksink.shell import Shell
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer
from tests.support.bus import FEBRUARY, source

FILE = load_index_settings(ROOT / "meilisearch-settings.json")


@pytest.fixture
def live(
    meilisearch_server: MeilisearchServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MeilisearchSink]:
    """A live index, and a configuration that leads to it."""
    server, index = meilisearch_server, f"s{uuid.uuid4().hex[:10]}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", server.url)
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", index)
    monkeypatch.setenv("MEILI_MASTER_KEY", server.key)
    sink = MeilisearchSink(server.url, server.key, settings=FILE, index=index)
    signed = marker()
    home = tmp_path / ".chunksink"
    home.mkdir()
    (home / "home.id").write_text(signed.home_id, encoding="ascii")
    sink.create(signed, 8)
    sink.flip(None, signed.build_id)
    yield sink
    sink.drop(signed.build_id)
    sink.close()


def own_file(**changes: Any) -> None:
    Path("meilisearch-settings.json").write_text(json.dumps(FILE | changes), encoding="utf-8")


def test_another_homes_index_is_left_alone(live: MeilisearchSink, capsys: pytest.CaptureFixture[str]) -> None:
    own_file(stopWords=["river"])
    assert run(["settings", "apply", "--home", "elsewhere"]) == Exit.USAGE
    assert "made by another home" in capsys.readouterr().err
    assert live.live_settings()["stopWords"] == []
    assert run(["settings", "apply"]) == Exit.OK
    assert live.live_settings()["stopWords"] == ["river"]


def test_what_is_shown_asks_for_what_is_live(live: MeilisearchSink, capsys: pytest.CaptureFixture[str]) -> None:
    """Also what no file has named; what is as it is by itself needs no name."""
    live.change_live_settings({"nonSeparatorTokens": ["#"], "searchCutoffMs": 150, "stopWords": None})
    assert run(["settings", "show"]) == Exit.OK
    shown = json.loads(capsys.readouterr().out)
    assert shown == FILE | {"nonSeparatorTokens": ["#"], "searchCutoffMs": 150}
    assert differences(shown, live.live_settings()) == []


@pytest.mark.usefixtures("live")
def test_what_is_shown_is_written_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("meilisearch-settings.json")
    command = ["settings", "show", "--output", str(file)]
    assert run(command) == Exit.OK
    assert load_index_settings(file) == FILE
    assert capsys.readouterr().out == "meilisearch-settings.json has the settings of the live index\n"
    file.write_text("{}")
    assert run(command) == Exit.USAGE
    assert "is there already: name another file, or write over it with --force" in capsys.readouterr().err
    assert file.read_text() == "{}"
    assert run([*command, "--force"]) == Exit.OK
    assert load_index_settings(file) == FILE
    assert sorted(path.name for path in Path.cwd().iterdir()) == [".chunksink", file.name], "nothing is left beside it"


@pytest.mark.usefixtures("live")
def test_a_link_to_the_file_stays_one() -> None:
    Path("real.json").touch()
    Path("meilisearch-settings.json").symlink_to("real.json")
    assert run(["settings", "show", "--output", "meilisearch-settings.json", "--force"]) == Exit.OK
    assert Path("meilisearch-settings.json").is_symlink()
    assert load_index_settings(Path("real.json")) == FILE


def test_the_file_stays_where_nothing_can_be_read(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    own_file(stopWords=["the"])
    assert run(["settings", "show", "--output", "meilisearch-settings.json", "--force"]) == Exit.ENGINE
    assert "no Meilisearch answers" in capsys.readouterr().err
    assert load_index_settings(Path("meilisearch-settings.json")) == FILE | {"stopWords": ["the"]}


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize("content", ["", "\n", "{ no JSON"])
def test_a_file_that_a_shell_emptied_is_shown_and_written_anew(
    content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("meilisearch-settings.json")
    file.write_text(content)
    assert run(["settings", "diff"]) == Exit.USAGE
    told = capsys.readouterr().err
    if "{" not in content:
        assert "as a shell leaves it of `chunksink settings show > meilisearch-settings.json`" in told
        assert "`chunksink settings show --output meilisearch-settings.json --force`" in told
    assert run(["settings", "show"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == FILE
    assert run(["settings", "show", "--output", str(file), "--force"]) == Exit.OK
    assert run(["settings", "diff"]) == Exit.OK


SCANTY: list[dict[str, Any]] = [
    {"stopWords": ["the"]},
    {"filterableAttributes": ["tags"], "displayedAttributes": ["text", "title"]},
    {"filterableAttributes": [{"attributePatterns": ["*"], "features": {"filter": {"equality": False}}}]},
]


@pytest.mark.parametrize("settings", SCANTY, ids=str)
def test_a_file_that_leaves_out_what_we_need(
    settings: dict[str, Any], quick_shell: Shell, meilisearch_server: MeilisearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_INDEX", f"s{uuid.uuid4().hex[:10]}")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    monkeypatch.setenv("MEILI_URL", meilisearch_server.url)
    monkeypatch.setenv("MEILI_MASTER_KEY", meilisearch_server.key)
    Path("meilisearch-settings.json").write_text(json.dumps(settings), encoding="utf-8")
    meta = {"year": 2021, "language": "en"}
    quick_shell.synced(p1=[source("a.md", "a cat", "another cat", tenant_id="acme", metadata=meta)])
    edited = source("a.md", "a cat", "one more cat", version="2", tenant_id="acme", metadata=meta)
    quick_shell.commit("p1", edited, at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    asked = ("--filter", "year>=2020", "--filter", "language=en", "--tenant", "acme", "--facet", "source_folder")
    found = quick_shell("search", "cat", *asked, "--all-chunks", "--json")
    assert found.code == Exit.OK, found.err
    assert {hit["text"] for hit in found.json["hits"]} == {"a cat", "one more cat"}
    assert quick_shell("settings", "diff").out == "the live index has the settings of the file\n"
    assert quick_shell("settings", "show", "--output", "meilisearch-settings.json", "--force").code == Exit.OK
    assert "nothing to do" in quick_shell("settings", "apply").out


def test_apply_sends_what_differs_and_then_nothing(live: MeilisearchSink, capsys: pytest.CaptureFixture[str]) -> None:
    own_file(stopWords=["the", "a"], synonyms={"boat": ["ship"]})
    assert run(["settings", "diff", "--json"]) == Exit.DRIFT
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "stopWords": {"live": [], "file": ["the", "a"]},
        "synonyms": {"live": {}, "file": {"boat": ["ship"]}},
    }
    builds, tasks = live.builds(), settings_tasks(live)
    assert run(["settings", "apply"]) == Exit.OK
    assert "2 settings changed" in capsys.readouterr().out
    sent = settings_tasks(live)
    assert sent == tasks + 2, "the settings, and the note of how the server returns them"
    assert live.builds() == builds, "the marker stayed"
    assert run(["settings", "apply"]) == Exit.OK
    assert "nothing to do" in capsys.readouterr().out
    assert settings_tasks(live) == sent
    assert run(["settings", "diff"]) == Exit.OK


def settings_tasks(sink: MeilisearchSink) -> int:
    return int(sink._connection.get("/tasks", types="settingsUpdate", limit=1)["total"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "no JSON object"),
        ('{"embedders": {}}', "the model decides"),
        ('{"synonyms": null, "stopWords": []}', "sets synonyms to null"),
        ("null", "no JSON object"),
        ('{"synonyms": 5}', "sets synonyms to 5: write an object"),
        ('{"synonyms": ["a"]}', r'sets synonyms to \["a"\]: write an object'),
        ('{"synonyms": {"boat": "ship"}}', "sets the synonyms of 'boat' to \"ship\": write a list of words"),
        ('{"synonyms": {"boat": [5]}}', r"sets the synonyms of 'boat' to \[5\]: write a list of words"),
        ('{"stopWords": "the"}', 'sets stopWords to "the": write a list'),
        ('{"typoTolerance": false}', "sets typoTolerance to false: write an object"),
        ('{"distinctAttribute": "id"}', "sets distinctAttribute to 'id': leave it out, or write 'parent_id'"),
    ],
)
def test_a_file_that_cannot_be_used(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(content)
    with pytest.raises(ConfigError, match=told):
        load_index_settings(tmp_path / "s.json")


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("changes", "told"),
    [({"bogus": 1}, "Unknown field `bogus`"), ({"rankingRules": ["bogus:up:down"]}, "ranking rule is invalid")],
)
def test_what_the_server_does_not_take_is_told_with_the_file(
    changes: dict[str, Any], told: str, live: MeilisearchSink, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, or by its task."""
    own_file(**changes)
    assert run(["settings", "apply"]) == Exit.ENGINE
    error = capsys.readouterr().err
    assert "the index settings meilisearch-settings.json cannot be applied: " in error
    assert told in error
    with pytest.raises(Refused, match=r"index settings own\.json cannot be applied: .*Correct the file"):
        MeilisearchSink(
            live._connection.where,
            live._connection._key,  # type: ignore[attr-defined]
            settings=FILE | changes,
            settings_file="own.json",
            index=live._indexes.public,  # type: ignore[attr-defined]
        ).create(marker(), 8)
