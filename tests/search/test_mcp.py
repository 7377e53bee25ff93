"""What `search` of the MCP server returns: only as much as an assistant's context window can take."""

import json
from pathlib import Path
from typing import Any

import pytest

from chunksink.search.access import Access
from chunksink.search.legs import Legs
from tests.search.page.support import LegAnswers, degraded
from tests.search.support import family, legs_over


def assistant(legs: Legs) -> Any:
    from chunksink.search.mcp import mcp_server  # slow to import; few tests need it

    return mcp_server(LegAnswers(legs), Access(), (), "1.2.3")


async def test_search_limits_the_whole_answer(tmp_path: Path) -> None:
    """The best hits come first, then the passages around them."""
    texts = [[f"boat {number} {part} " + "x" * 3000 for part in range(3)] for number in range(50)]
    with legs_over(tmp_path, [family(f"{number}.md", *three) for number, three in enumerate(texts)]) as legs:
        answers = {}
        for limit in (5, 50):
            arguments = {"query": "boat", "mode": "keyword", "limit": limit, "context": 5}
            answers[limit] = await assistant(legs).call_tool("search", arguments)
    few, many = (json.loads(answer.content[0].text)["hits"] for answer in answers.values())
    assert len(answers[50].content[0].text) < 85_000
    assert [len(hit.get("before", ())) + len(hit.get("after", ())) for hit in few] == [2] * 5
    assert not any("cut" in hit for hit in few)
    assert len(many) == 50
    assert not any("before" in hit or "after" in hit for hit in many)
    assert all("cut" in hit for hit in many)
    assert (len(many[0]["text"]), many[-1]["text"]) == (len(texts[0][0]), "")


async def test_search_leaves_out_long_metadata(tmp_path: Path) -> None:
    short = {"column": "x" * 900}
    long = {f"column_{number}": "x" * 900 for number in range(3)}
    families = family("1.md", "a boat", metadata=short), family("2.md", "a blue boat", metadata=long)
    with legs_over(tmp_path, families) as legs:
        answer: Any = await assistant(legs).call_tool("search", {"query": "boat", "mode": "keyword"})
    hits = {hit["source_uri"]: hit for hit in json.loads(answer.content[0].text)["hits"]}
    assert {name: ("metadata" in hit, "cut" in hit) for name, hit in hits.items()} == {
        "1.md": (True, False),
        "2.md": (False, True),
    }
    assert hits["2.md"]["text"] == "a blue boat"


async def test_search_without_the_model_names_another_mode(tmp_path: Path) -> None:
    with legs_over(tmp_path, [family("a.md", "a boat")]) as legs:
        server = assistant(degraded(legs))
        answer: Any = await server.call_tool("search", {"query": "boat"})
        found = answer.structured_content
        assert (bool(found["hits"]), found["unavailable"], bool(found["notice"])) == (True, ["semantic"], True)
        with pytest.raises(Exception, match="mode keyword"):
            await server.call_tool("search", {"query": "boat", "mode": "semantic"})


async def test_search_shortens_very_long_texts(tmp_path: Path) -> None:
    book = ("A boat, and another. " * 5000) + "A lighthouse."
    with legs_over(tmp_path, [family("book.md", book, book)]) as legs:
        server = assistant(legs)
        arguments = {"query": "lighthouse", "mode": "keyword", "context": 1}
        found: Any = await server.call_tool("search", arguments)
        (hit,) = json.loads(found.content[0].text)["hits"]
        whole: Any = await server.call_tool("get_chunk", {"chunk_id": hit["chunk_id"]})
    (after,) = hit["after"]
    for passage in (hit, after):
        assert passage["text"] == book[:20_000]
        assert "105,013" in passage["cut"]
    assert "lighthouse" in hit["snippet"]
    assert json.loads(whole.content[0].text)["text"] == book
