"""The index as tools of the Model Context Protocol: `search` and `get_chunk`, over standard input and output.

Whose documents are served is fixed when the server starts; no call can name another tenant.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from chunksink.search.access import Access
from chunksink.search.answer import Answer, Answers, SearchHit, Surrounded, as_json, reference
from chunksink.search.filters import parse_filters
from chunksink.search.question import Mode, Question

_MOST_TEXT = 20_000
"""Characters of a passage among hits."""
_HOW = (
    "Searches documents. `search` gives the best sources for a question, each by its best passage; other "
    "sources of the same text are its `same_text`. `get_chunk` gives a passage by its chunk_id, with the passages "
    "around it."
)


def mcp_server(
    answers: Answers,
    access: Access,
    known_errors: tuple[type[Exception], ...],
    version: str,
    usual_mode: Mode = "hybrid",
) -> MCPServer:
    """`known_errors` have messages for whoever asks; any other one is a bug. `usual_mode` is that of who names none."""

    @contextmanager
    def errors_for_assistants() -> Iterator[None]:
        try:
            yield
        except known_errors as error:
            raise ToolError(str(error)) from error

    def search(
        query: Annotated[str, Field(description="A question, or words; words in quotes are a phrase.")],
        limit: Annotated[int, Field(ge=1, le=100, description="At most so many sources.")] = 10,
        mode: Annotated[
            Mode | None, Field(description="keyword finds words, semantic finds meaning, hybrid both.")
        ] = None,
        filters: Annotated[
            list[str] | None, Field(description='Conditions such as "source_type=md" or "year>=2020"; all must hold.')
        ] = None,
        context: Annotated[int, Field(ge=0, le=5, description="So many passages before and after each hit.")] = 0,
    ) -> dict[str, Any]:
        if not query.strip():
            raise ToolError("the query is empty: ask a question, or give words to look for")
        with errors_for_assistants():
            conditions = parse_filters(filters or ())
            question = Question(query, mode=mode or usual_mode, limit=limit, filters=conditions, context=context)
            answer = answers.search(question, access)
        if not answer.answered:
            raise ToolError(f"the index cannot be asked now: {answer.outage}")
        return _answer(answer)

    def get_chunk(
        chunk_id: Annotated[str, Field(description="As `search` gives it.")],
        context: Annotated[int, Field(ge=0, le=20, description="So many passages before and after it.")] = 1,
    ) -> dict[str, Any]:
        with errors_for_assistants():
            found = answers.get(chunk_id, access, context)
        if found is None:
            raise ToolError(f"there is no chunk {chunk_id!r:.200}: take the chunk_id of a hit of `search`")
        return found.as_json()

    tools: list[Tool] = [
        _strict(search, "Find the best sources for a question or for words."),
        _strict(get_chunk, "Get one passage by its chunk_id, with the passages around it."),
    ]
    return MCPServer("chunksink", instructions=_HOW, version=version, log_level="WARNING", tools=tools)


class _StrictTool(Tool):
    """Refuses arguments that it does not know: a misspelt filter that is dropped answers another question."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        known = self.parameters["properties"]
        unknown = [repr(name) for name in arguments if name not in known]
        if unknown:
            raise ToolError(f"{self.name} takes no {', '.join(unknown):.200}; it takes {', '.join(known)}")
        return await super().run(arguments, context, convert_result)


def _strict(ask: Callable[..., dict[str, Any]], description: str) -> Tool:
    tool = _StrictTool.from_function(ask, description=description)
    tool.parameters["additionalProperties"] = False
    return tool


def _answer(answer: Answer) -> dict[str, Any]:
    told: dict[str, Any] = {"query": answer.query, "mode": answer.mode, "hits": [_hit(hit) for hit in answer.hits]}
    if answer.unavailable:
        told["unavailable"] = dict(answer.unavailable)
    if answer.notice:
        told["notice"] = answer.notice
    return told


def _hit(hit: SearchHit) -> dict[str, Any]:
    around = Surrounded(hit.document, hit.before, hit.after) if hit.before or hit.after else None
    told = as_json(hit.document) if around is None else around.as_json()
    for one in (told, *told.get("before", ()), *told.get("after", ())):
        _cut(one)
    if "cut" in told and hit.snippet:
        told["snippet"] = "".join(piece.text for piece in hit.snippet)
    told |= {"score": round(hit.score, 6), "ranks": hit.ranks}
    if hit.same_text:
        told["same_text"] = [reference(document) for document in hit.same_text]
    return told


def _cut(told: dict[str, Any]) -> None:
    """Somebody's whole book: an assistant that takes ten hits would read nothing else."""
    text = told["text"]
    if len(text) > _MOST_TEXT:
        told["text"] = text[:_MOST_TEXT]
        told["cut"] = f"the passage has {len(text):,} characters, get_chunk gives all of them"
