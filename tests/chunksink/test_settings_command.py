"""`chunksink settings` against a real server."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from chunksink.sinks.conformance.samples import marker
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.meilisearch.index_settings import differences, load_index_settings
from tests.chunksink.shell import Shell
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer
from tests.support.bus import FEBRUARY, source

FILE = load_index_settings(ROOT / "meilisearch-settings.json")


@pytest.fixture
def live(meilisearch_server: MeilisearchServer, public_index: Any, shell: Shell) -> Iterator[MeilisearchSink]:
    """The live index of this home."""
    server, signed = meilisearch_server, marker()
    shell.home.mkdir()
    (shell.home / "home.id").write_text(signed.home_id, encoding="ascii")
    with closing(MeilisearchSink(server.url, server.key, settings=FILE, index=public_index.uid)) as sink:
        sink.create(signed, 8)
        sink.flip(None, signed.build_id)
        yield sink
        sink.drop(signed.build_id)


def own_file(**changes: Any) -> None:
    Path("meilisearch-settings.json").write_text(json.dumps(FILE | changes), encoding="utf-8")


def test_apply_to_the_index_of_another_home_is_refused(live: MeilisearchSink, shell: Shell) -> None:
    own_file(stopWords=["river"])
    ended = shell("settings", "apply", "--home", "elsewhere")
    assert (ended.code, "made by another home" in ended.err) == (Exit.USAGE, True)
    assert live.live_settings()["stopWords"] == []
    assert shell("settings", "apply").code == Exit.OK
    assert live.live_settings()["stopWords"] == ["river"]


def test_show_prints_the_live_settings(live: MeilisearchSink, shell: Shell) -> None:
    """Including settings that no file names. Settings with Meilisearch's default value are left out."""
    live.change_live_settings({"nonSeparatorTokens": ["#"], "searchCutoffMs": 150, "stopWords": None})
    shown = shell("settings", "show").json
    assert shown == FILE | {"nonSeparatorTokens": ["#"], "searchCutoffMs": 150}
    assert differences(shown, live.live_settings()) == []


@pytest.mark.usefixtures("live")
def test_show_with_output_writes_the_file(shell: Shell) -> None:
    file = Path("meilisearch-settings.json")
    command = ("settings", "show", "--output", str(file))
    ended = shell(*command)
    assert (ended.code, ended.out) == (Exit.OK, "meilisearch-settings.json has the settings of the live index\n")
    assert load_index_settings(file) == FILE
    file.write_text("{}")
    refused = shell(*command)
    assert (refused.code, "--force" in refused.err) == (Exit.USAGE, True)
    assert file.read_text() == "{}"
    file.rename("real.json")
    file.symlink_to("real.json")
    assert shell(*command, "--force").code == Exit.OK
    assert (file.is_symlink(), load_index_settings(Path("real.json"))) == (True, FILE)
    assert sorted(path.name for path in Path.cwd().iterdir()) == [".chunksink", file.name, "real.json"]


def test_show_without_a_server_keeps_the_file(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_URL", "http://127.0.0.1:9")
    own_file(stopWords=["the"])
    ended = shell("settings", "show", "--output", "meilisearch-settings.json", "--force")
    assert (ended.code, "http://127.0.0.1:9" in ended.err) == (Exit.ENGINE, True)
    assert load_index_settings(Path("meilisearch-settings.json")) == FILE | {"stopWords": ["the"]}


@pytest.mark.parametrize("command", ["show", "diff", "apply"])
def test_meilisearch_that_is_not_configured_is_named(command: str, shell: Shell) -> None:
    (shell.folder / "chunksink.toml").write_text('sinks = ["fts"]\n')
    ended = shell("settings", command)
    assert (ended.code, 'sinks = ["fts", "meilisearch"]' in ended.err) == (Exit.USAGE, True)


def test_invalid_option_is_reported_with_its_file(shell: Shell) -> None:
    (shell.folder / "chunksink.toml").write_text('[sink.meilisearch]\nindx = "x"\n')
    ended = shell("settings", "diff")
    assert (ended.code, "chunksink.toml: [sink.meilisearch]" in ended.err) == (Exit.USAGE, True)


@pytest.mark.usefixtures("live")
def test_emptied_file_is_restored_with_show(shell: Shell) -> None:
    file = Path("meilisearch-settings.json")
    file.write_text("\n")
    refused = shell("settings", "diff")
    assert refused.code == Exit.USAGE
    assert "`chunksink settings show --output meilisearch-settings.json --force`" in refused.err
    assert shell("settings", "show").json == FILE
    assert shell("settings", "show", "--output", str(file), "--force").code == Exit.OK
    assert shell("settings", "diff").code == Exit.OK


@pytest.mark.usefixtures("public_index")
def test_file_without_required_settings_is_completed(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    scanty = {"filterableAttributes": ["tags"], "displayedAttributes": ["text", "title"]}
    Path("meilisearch-settings.json").write_text(json.dumps(scanty), encoding="utf-8")
    meta = {"year": 2021, "language": "en"}
    quick_shell.synced(p1=[source("a.md", "a cat", "another cat", tenant_id="acme", metadata=meta)])
    edited = source("a.md", "a cat", "one more cat", version="2", tenant_id="acme", metadata=meta)
    quick_shell.commit("p1", edited, at=FEBRUARY)
    assert quick_shell("sync").code == Exit.OK
    options = ("--filter", "year>=2020", "--filter", "language=en", "--tenant", "acme", "--facet", "source_folder")
    found = quick_shell("search", "cat", *options, "--all-chunks", "--json")
    assert found.code == Exit.OK, found.err
    assert {hit["text"] for hit in found.json["hits"]} == {"a cat", "one more cat"}
    assert quick_shell("settings", "diff").out == "the live index has the settings of the file\n"
    assert quick_shell("settings", "show", "--output", "meilisearch-settings.json", "--force").code == Exit.OK
    assert "nothing to do" in quick_shell("settings", "apply").out


def test_apply_sends_what_differs_and_then_nothing(live: MeilisearchSink, shell: Shell) -> None:
    own_file(stopWords=["the", "a"], synonyms={"boat": ["ship"]})
    found = shell("settings", "diff", "--json")
    assert found.code == Exit.DRIFT
    assert found.json == {
        "stopWords": {"live": [], "file": ["the", "a"]},
        "synonyms": {"live": {}, "file": {"boat": ["ship"]}},
    }
    builds, tasks = live.builds(), settings_tasks(live)
    assert "2 settings changed" in shell("settings", "apply").out
    sent = settings_tasks(live)
    assert sent == tasks + 2, "the settings, and the note of how the server returns them"
    assert live.builds() == builds, "the marker stayed"
    assert "nothing to do" in shell("settings", "apply").out
    assert settings_tasks(live) == sent
    assert shell("settings", "diff").code == Exit.OK


def test_diff_when_the_file_has_unknown_or_missing_names_warns(live: MeilisearchSink, shell: Shell) -> None:
    live.change_live_settings({"dictionary": ["x.y"]})
    own_file(stopWord=["the"])
    ended = shell("settings", "diff")
    unknown, reset = ended.err.splitlines()
    assert "stopWord (did you mean stopWords?)" in unknown
    assert "dictionary" in reset
    refused = shell("settings", "apply")
    assert (refused.code, "stopWord (did you mean stopWords?)" in refused.err) == (Exit.ENGINE, True)
    assert live.live_settings()["dictionary"] == ["x.y"]


def settings_tasks(sink: MeilisearchSink) -> int:
    return int(sink._connection.get("/tasks", types="settingsUpdate", limit=1)["total"])  # type: ignore[attr-defined]


@pytest.mark.usefixtures("live")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"bogus": 1}, "Unknown field `bogus`"), ({"rankingRules": ["bogus:up:down"]}, "ranking rule is invalid")],
)
def test_settings_that_the_server_refuses_name_the_file(changes: dict[str, Any], expected: str, shell: Shell) -> None:
    """The server refuses them in its answer or in the task."""
    own_file(**changes)
    ended = shell("settings", "apply")
    assert (ended.code, expected in ended.err) == (Exit.ENGINE, True)
    assert "the index settings meilisearch-settings.json cannot be applied: " in ended.err
