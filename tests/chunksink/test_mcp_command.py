"""`chunksink mcp`, asked by a real client of the protocol over the pipes of a real process."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from chunksink.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import source

PETS = source("pets.md", "The cat sleeps on the mat", "A cat and another cat", "Dogs bark at night")
SEA = source("sea.md", "The vessel left the harbour", "A boat needs paint")


def asked(folder: Path, *calls: tuple[str, dict[str, Any]], arguments: tuple[str, ...] = ()) -> list[Any]:
    """The answers of one session: the tools' schemas by name, then the result of each call."""
    # Slow to import; every process of the suite reads this file.
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def session() -> list[Any]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "chunksink", "mcp", *arguments],
            cwd=str(folder),
            env={**os.environ, "CHUNKSINK_SINKS": "fts"},
        )
        async with stdio_client(server, sys.__stderr__) as (read, write), ClientSession(read, write) as client:
            await client.initialize()
            tools = await client.list_tools()
            answers: list[Any] = [{tool.name: tool.input_schema for tool in tools.tools}]
            for name, given in calls:
                answers.append(await client.call_tool(name, given))
            return answers

    return asyncio.run(asyncio.wait_for(session(), 60))


def said(result: Any) -> Any:
    assert not result.is_error, result.content
    return json.loads(result.content[0].text)


@pytest.fixture
def filled(quick_shell: Shell) -> Shell:
    return quick_shell.begin("pets", "sync", p1=[PETS, SEA])


def test_search_and_read_on(filled: Shell) -> None:
    tools, found = asked(filled.folder, ("search", {"query": "another cat", "mode": "keyword", "limit": 1}))
    assert list(tools) == ["search", "get_chunk"]
    (hit,) = said(found)["hits"]
    assert (hit["text"], hit["source_uri"]) == ("A cat and another cat", "pets.md")
    _, chunk = asked(filled.folder, ("get_chunk", {"chunk_id": hit["chunk_id"], "context": 1}))
    told = said(chunk)
    assert told["text"] == "A cat and another cat"
    assert [one["text"] for one in (*told["before"], *told["after"])] == [
        "The cat sleeps on the mat",
        "Dogs bark at night",
    ]


def test_what_cannot_be_asked_is_told_to_the_assistant(filled: Shell) -> None:
    """An error of the tool, with the remedy, and the session goes on."""
    told = {
        "'color' cannot be filtered; these can: authors": ("search", {"query": "cat", "filters": ["color=red"]}),
        "the query is empty": ("search", {"query": "  "}),
        "there is no chunk 'nowhere'": ("get_chunk", {"chunk_id": "nowhere"}),
    }
    _, *wrong, fine = asked(filled.folder, *told.values(), ("search", {"query": "cat", "mode": "keyword"}))
    for reason, result in zip(told, wrong, strict=True):
        assert (result.is_error, reason in result.content[0].text) == (True, True)
    assert said(fine)["hits"]


def test_an_argument_that_is_none_is_refused_with_those_that_are(filled: Shell) -> None:
    """A misspelt filter that was dropped would answer another question."""
    tools, search, chunk = asked(
        filled.folder,
        ("search", {"query": "cat", "filter": ["source_type=md"], "top_k": 1}),
        ("get_chunk", {"chunk_id": "x", "around": 2}),
    )
    assert [schema["additionalProperties"] for schema in tools.values()] == [False, False]
    assert search.is_error and chunk.is_error
    told = "search takes no 'filter', 'top_k'; it takes query, limit, mode, filters, context"
    assert told in search.content[0].text
    assert "get_chunk takes no 'around'; it takes chunk_id, context" in chunk.content[0].text


def test_without_an_index_it_says_what_to_run(quick_shell: Shell) -> None:
    _, found = asked(quick_shell.folder, ("search", {"query": "cat"}))
    assert found.is_error
    assert "chunksink sync" in found.content[0].text


@pytest.mark.promise(11)
def test_an_assistant_sees_one_tenant(quick_shell: Shell) -> None:
    acme = source("a.md", "the same secret", tenant_id="acme")
    other = source("a.md", "the same secret", ids="other", tenant_id="other")
    quick_shell.synced(p1=[acme, other])
    foreign = other[0]["chunk_id"]
    _, named, found, chunk = asked(
        quick_shell.folder,
        ("search", {"query": "secret", "mode": "keyword", "tenant": "other"}),
        ("search", {"query": "secret", "mode": "keyword"}),
        ("get_chunk", {"chunk_id": foreign}),
        arguments=("--tenant", "acme"),
    )
    assert named.is_error
    assert [hit["chunk_id"] for hit in said(found)["hits"]] == [acme[0]["chunk_id"]]
    assert chunk.is_error


@pytest.mark.promise(11)
def test_a_required_tenant_must_be_named(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNKSINK_TENANTS", "required")
    ended = quick_shell("mcp")
    assert ended.code == Exit.USAGE
    assert "--tenant NAME" in ended.err
