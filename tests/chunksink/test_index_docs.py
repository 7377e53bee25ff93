"""Runs the snippets of docs/python.md in their order."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import chunksink
from tests.chunksink.shell import Shell
from tests.conftest import ROOT
from tests.engines.servers import MeilisearchServer
from tests.support.bus import source

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
OF_MEILISEARCH = [snippet for snippet in SNIPPETS if "MEILI_URL" in snippet]
OF_CHROMA = [snippet for snippet in SNIPPETS if "chromadb" in snippet]

TEXTS = ("how do I return a borrowed tool", "bring it back", "before noon")
META = {"language": "en", "year": 2024, "title": "Tools"}
ACME = source("tools.md", *TEXTS, tenant_id="acme", metadata=META, source={"source_type": "md"})
OTHER = source("other.md", TEXTS[0], ids="other", tenant_id="other", metadata=META, source={"source_type": "md"})


def test_snippets_of_the_page_run(quick_shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    Path("chunksink.toml").touch()
    quick_shell.commit("p1", ACME, OTHER)
    for name in ("a.md", "drafts/b.md"):
        (quick_shell.folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (quick_shell.folder / "notes" / name).write_text("before noon")
    namespace: dict[str, Any] = {}
    printed = []
    for snippet in SNIPPETS:
        if snippet not in OF_MEILISEARCH + OF_CHROMA:
            exec(snippet, namespace)
            printed.append(capsys.readouterr().out)
    synced, ingested, _types, progress, searched, chunks, refused, langchain, llamaindex, written = printed
    assert (synced, ingested, progress) == ("ok 0 4\n", "1 0 []\n", "")
    assert {hit.source_uri for hit in namespace["answer"]} == {"tools.md", "other.md"}
    assert "no engine answered" not in searched
    assert str(list(TEXTS)) in chunks
    assert "'colour'" in refused
    for found in (langchain, llamaindex):
        assert found.count("tools.md") > 0 < found.count("other.md")
    assert written == "1\n", "the wiki"
    namespace["index"].close()


def test_snippet_for_meilisearch_finds_only_its_tenant(
    quick_shell: Shell, meilisearch_server: MeilisearchServer, public_index: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = public_index.uid
    monkeypatch.setenv("CHUNKSINK_SINKS", "meilisearch")
    monkeypatch.setenv("CHUNKSINK_SINK_MEILISEARCH_VECTORS", "false")
    quick_shell.synced(p1=[ACME, OTHER])
    namespace: dict[str, Any] = {}
    (snippet,) = OF_MEILISEARCH
    exec(snippet.replace('"chunks"', repr(name)), namespace)
    theirs = namespace["tenant_key"]("other")
    for request, sources in ({"q": "tool"}, {"tools.md"}), ({"q": "tool", "filter": f"tenant_key = {theirs}"}, set()):
        found = httpx.post(
            f"{meilisearch_server.url}/indexes/{name}/search",
            json=request,
            headers={"Authorization": f"Bearer {namespace['token']}"},
        ).json()
        assert {hit["source_uri"] for hit in found["hits"]} == sources


def test_snippet_for_chroma_finds_the_text(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It uses the model of the live index, although another one is configured by then."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    shell.synced(p1=[ACME, OTHER])
    monkeypatch.setenv("CHUNKSINK_MODEL", "other")
    (snippet,) = OF_CHROMA
    with chunksink.open() as index:
        namespace: dict[str, Any] = {"index": index}
        exec(snippet, namespace)
        namespace["client"].close()
    assert namespace["found"]["documents"][0][:2] == [TEXTS[0]] * 2
    assert namespace["found"]["distances"][0][:2] == pytest.approx([0, 0], abs=1e-5)
    assert "tools.md" in capsys.readouterr().out


def names(heading: str) -> set[str]:
    """The names in the first column of a table of the page."""
    table = PAGE.partition(f"| {heading} | |\n")[2].partition("\n\n")[0]
    cells = " ".join(row.split("|")[1] for row in table.splitlines()[1:])
    return set(re.findall(r"`(?:answer\.)?(\w+)(?:\(\))?`", cells))


def test_tables_name_the_fields_of_the_code() -> None:
    from chunksink.search.answer import Answer, SearchHit

    hit = set(SearchHit.__dataclass_fields__) | {"ranks", "highlights", "metadata"}
    assert names("of a hit") == hit
    assert names("of an answer") <= set(Answer.__dataclass_fields__) | {"as_json"}
    assert {"facets", "unavailable", "answered", "notice"} <= names("of an answer")
