"""`chunksink mcp`, called by a real client over the pipes of a real process."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from chunksink.search.answer import OWN_FIELDS
from tests.chunksink import shell as shells
from tests.chunksink.shell import Shell
from tests.journey.support import chunksink, command_line, environment, write
from tests.support.bus import source

ABOUT = {"language": "en", "year": 1999, "authors": ["Ann"], "tags": ["pets", "home"]}
PETS = source("pets.md", "The cat sleeps on the mat", "A cat and another cat", "Dogs bark at night", metadata=ABOUT)
FIELDS = ABOUT | {"chunk_index": 1, "path": "pets.md", "filename": "pets.md", "extension": "md", "file_type": "md"}
SEA = source("sea.md", "The vessel left the harbour", "A boat needs paint")
LONG = source("long.md", "The zebra", "stripes " * 2600)


def answers_of(folder: Path, *calls: tuple[str, dict[str, Any]], arguments: tuple[str, ...] = ()) -> list[Any]:
    """One session: the tools by name, then the result of each call."""
    # Slow to import; every process of the suite reads this file.
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def session() -> list[Any]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "chunksink", "mcp", *arguments],
            cwd=str(folder),
            env=environment(CHUNKSINK_SINKS="fts"),
        )
        async with stdio_client(server, sys.__stderr__) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            tools = await client.list_tools()
            answers: list[Any] = [{tool.name: tool for tool in tools.tools}]
            for name, arguments_of_call in calls:
                answers.append(await client.call_tool(name, arguments_of_call))
            return answers

    return asyncio.run(asyncio.wait_for(session(), 60))


def content_of(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "hit": ("search", {"query": "another cat", "mode": "keyword", "limit": 1}),
    "chunk": ("get_chunk", {"chunk_id": PETS[1]["chunk_id"], "context": 1}),
    "first": ("search", {"query": "a", "mode": "keyword", "limit": 1}),
    "second": ("search", {"query": "a", "mode": "keyword", "limit": 1, "offset": 1}),
    "'color' cannot be filtered": ("search", {"query": "cat", "filters": ["color=red"]}),
    "query is empty": ("search", {"query": "  "}),
    "no chunk 'nowhere'": ("get_chunk", {"chunk_id": "nowhere"}),
    # ignoring a misspelt filter would answer another question
    "'filter', 'top_k'": ("search", {"query": "cat", "filter": ["source_type=md"], "top_k": 1}),
    "'around'": ("get_chunk", {"chunk_id": "x", "around": 2}),
    "long": ("search", {"query": "zebra", "mode": "keyword", "limit": 1, "context": 1}),
    # language models often send an empty string instead of nothing, and one string instead of a list
    "loose": ("search", {"query": "cat", "mode": "", "sort": "", "filters": "path=pets.*"}),
    "unfiltered": ("search", {"query": "cat", "filters": ""}),
    "limit:": ("search", {"query": "cat", "limit": 51}),
    "mode:": ("search", {"query": "cat", "mode": "engine"}),
    "later": ("search", {"query": "cat", "mode": "keyword"}),
}
"""Calls of one session. Wrong calls have the reason for which they are refused as their name."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The tools by name, and the results of these calls."""
    folder = tmp_path_factory.mktemp("pets")
    write(folder / "chunks", "p1", PETS, SEA, LONG)
    assert chunksink(folder, "sync", CHUNKSINK_SINKS="fts").code == Exit.OK
    tools, *results = answers_of(folder, *CALLS.values())
    return {"tools": tools, **dict(zip(CALLS, results, strict=True))}


def test_search_then_get_chunk_returns_the_passages_around_a_hit(answers: dict[str, Any]) -> None:
    (hit,) = content_of(answers["hit"])["hits"]
    assert hit.pop("score") > 0
    named = {
        "chunk_id": PETS[1]["chunk_id"],
        "source_uri": "pets.md",
        "link": "pets.md",
        "text": "A cat and another cat",
    }
    assert hit == ABOUT | named, "nothing without a value, and nothing that the source says already"
    passage = content_of(answers["chunk"])
    assert {name: passage[name] for name in OWN_FIELDS if name in passage} == FIELDS
    assert passage["text"] == "A cat and another cat"
    assert [one["text"] for one in (*passage["before"], *passage["after"])] == [
        "The cat sleeps on the mat",
        "Dogs bark at night",
    ]


def test_cut_passage_says_so(answers: dict[str, Any]) -> None:
    for content in (content_of(answers["long"]), answers["long"].structured_content):
        (hit,) = content["hits"]
        (after,) = hit["after"]
        assert len(after["text"]) == 20_000
        assert ("cut" in hit, "20,799" in after.get("cut", "")) == (False, True)


def test_tools_are_read_only_and_describe_their_results(answers: dict[str, Any]) -> None:
    tools = answers["tools"]
    assert list(tools) == ["search", "get_chunk", "describe_index"]
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert tool.output_schema["type"] == "object"
        assert not tool.input_schema["additionalProperties"]
    offered = tools["search"].input_schema["properties"]
    assert "source_type" in offered["filters"]["description"]
    assert offered["mode"]["anyOf"][0]["enum"] == ["hybrid", "keyword", "semantic"]
    assert set(OWN_FIELDS) <= tools["get_chunk"].output_schema["properties"].keys()
    assert set(tools["search"].output_schema["properties"]) >= {"hits", "more", "notice", "unavailable"}


def test_search_reads_on_after_an_offset(answers: dict[str, Any]) -> None:
    first, second = content_of(answers["first"]), content_of(answers["second"])
    assert (first["more"], second["more"]) == (True, False)
    assert first["hits"][0]["source_uri"] != second["hits"][0]["source_uri"]


def test_wrong_calls_are_tool_errors_and_the_session_continues(answers: dict[str, Any]) -> None:
    refused = {name: answers[name] for name in CALLS if " " in name or "'" in name or ":" in name}
    assert len(refused) == 7
    for reason, result in refused.items():
        assert (result.is_error, reason in result.content[0].text) == (True, True)
        assert ("\n" in result.content[0].text, "pydantic" in result.content[0].text) == (False, False)
    assert content_of(answers["later"])["hits"]


def test_loose_arguments_are_understood(answers: dict[str, Any]) -> None:
    for name in ("loose", "unfiltered"):
        assert [hit["source_uri"] for hit in content_of(answers[name])["hits"]] == ["pets.md"]


def test_without_an_index_the_error_has_the_remedy_and_no_folders(quick_shell: Shell) -> None:
    _, found = answers_of(quick_shell.folder, ("search", {"query": "cat"}))
    assert found.is_error
    assert "chunksink sync" in found.content[0].text
    assert str(quick_shell.folder) not in found.content[0].text


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_although_its_input_is_open(quick_shell: Shell, sign: signal.Signals) -> None:
    """Until then, each problem is one line of the log."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    requests = [("initialize", hello), ("tools/call", {"name": "search", "arguments": {"query": "cat"}})]
    with subprocess.Popen(
        command_line("mcp"),
        cwd=quick_shell.folder,
        env=environment(CHUNKSINK_SINKS="fts"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None and server.stdout is not None and server.stderr is not None
        try:
            for number, (method, parameters) in enumerate(requests):
                request = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
                print(json.dumps(request), file=server.stdin, flush=True)
                assert json.loads(server.stdout.readline())["id"] == number
            server.send_signal(sign)
            assert server.wait(30) == 128 + sign
        finally:
            server.kill()
        assert len(server.stderr.readlines()) == 1


@pytest.mark.promise(11)
def test_an_assistant_sees_one_tenant(quick_shell: Shell) -> None:
    acme = source("a.md", "the same secret", tenant_id="acme")
    other = source("a.md", "the same secret", ids="other", tenant_id="other")
    quick_shell.synced(p1=[acme, other])
    foreign = other[0]["chunk_id"]
    _, named, found, chunk = answers_of(
        quick_shell.folder,
        ("search", {"query": "secret", "mode": "keyword", "tenant": "other"}),
        ("search", {"query": "secret", "mode": "keyword"}),
        ("get_chunk", {"chunk_id": foreign}),
        arguments=("--tenant", "acme"),
    )
    assert named.is_error
    assert [hit["chunk_id"] for hit in content_of(found)["hits"]] == [acme[0]["chunk_id"]]
    assert chunk.is_error


@pytest.mark.promise(11)
def test_a_required_tenant_must_be_named(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TENANTS", "required")
    ended = quick_shell("mcp")
    assert ended.code == Exit.USAGE
    assert "--tenant NAME" in ended.err


def test_described_fields_can_be_filtered(quick_shell: Shell) -> None:
    shells.write(
        quick_shell,
        "chunksink.toml",
        '[fields.project]\n[fields.due]\ntype = "datetime"\n[fields.odd]\nfilter = false\n',
    )
    apollo = {"project": "apollo", "due": "2026-01-31", "odd": "x", "note": "kept", "year": 1999}
    quick_shell.synced(
        p1=[source("a.md", "a cat", source_type="md", metadata=apollo), source("b.txt", "a cat", source_type="txt")],
        p2=[source(f"{number}.md", "a dog", metadata={"language": f"x{number:02}"}) for number in range(21)],
    )
    tools, described, found, refused = answers_of(
        quick_shell.folder,
        ("describe_index", {}),
        ("search", {"query": "cat", "filters": ["project=apollo", "due>=2026-01"]}),
        ("search", {"query": "cat", "filters": ["odd=x"]}),
    )
    assert "project" in tools["search"].input_schema["properties"]["filters"]["description"]
    contents = content_of(described)
    assert contents["sources"] == 23
    shown = {one["field"]: (len(one["values"]), one["more"]) for one in contents["filters"]}
    assert (shown["language"], shown["source_type"], shown["chunk_index"]) == ((20, True), (2, False), (0, True))
    fields = {one["field"]: (one["operators"], one["values"]) for one in contents["filters"]}
    assert fields["source_type"][1] == [{"value": "md", "sources": 1}, {"value": "txt", "sources": 1}]
    assert ">=" in fields["year"][0]
    assert fields["year"][1] == [{"value": 1999, "sources": 1}]
    assert fields["chunk_index"][1] == []
    assert fields["path"] == (["="], [])
    assert "tenant_key" not in fields
    assert fields["project"] == (["="], [{"value": "apollo", "sources": 1}])
    assert fields["due"] == (["=", ">=", "<=", ">", "<"], [{"value": "2026-01-31T00:00:00Z", "sources": 1}])
    assert "odd" not in fields
    (hit,) = content_of(found)["hits"]
    assert hit["fields"] == {"project": "apollo", "due": "2026-01-31T00:00:00Z", "odd": "x"}
    assert hit["metadata"] == {"note": "kept"}
    assert refused.is_error
