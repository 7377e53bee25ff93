"""The index as tools of the Model Context Protocol, over standard input and output: `search`, `get_chunk` and
`describe_index`.

The tenant is fixed when the server starts. No call can name another one.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NotRequired, Protocol, cast

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from chunksink.search.access import Access
from chunksink.search.answer import Answer, SearchHit, SearchService, Surrounded, as_json, reference
from chunksink.search.errors import SearchError
from chunksink.search.facets import IN_EVERY_DOCUMENT
from chunksink.search.filters import FilterField, filter_fields, parse_filters, parse_sort
from chunksink.search.question import Mode, Question
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import SORTABLE
from chunksink.sinks.reader import FacetValue

_logger = logging.getLogger("chunksink.search")
_MAX_TEXT = 20_000
"""Characters of a passage in a list of hits."""
_MAX_VALUES = 20
"""Values of a field in the description of the index."""
_NOT_DESCRIBED = ("parent_id", "tenant_key", "schema_version", "path", "filename", "title")
"""Not offered as filters: they identify sources or tenants, or say nothing about the content."""
_WITHOUT_VALUES = ("chunk_index", "page_start", "page_end", "size_bytes", "modified_at_epoch")
"""Filters whose most frequent values say nothing about the content."""
_INSTRUCTIONS = (
    "Searches one index of documents. `describe_index` shows what it contains and which fields can be filtered. "
    "`search` finds the best sources for a question, each with its best passage; `same_text` lists other sources with "
    "the same text. `get_chunk` returns a passage by its chunk_id, with the passages around it."
)
_UNAVAILABLE = (
    "The index cannot be searched right now. If it was never built, run `chunksink sync`; "
    "otherwise `chunksink doctor` shows the reason."
)


class DescribedSearchService(SearchService, Protocol):
    """Can also list what the index contains."""

    def contents(self, fields: Sequence[str], access: Access, limit: int) -> Mapping[str, list[FacetValue]]: ...


class Reference(TypedDict):
    chunk_id: str
    parent_id: str
    title: str | None
    source_uri: str | None
    link: str | None
    locator: dict[str, Any]


class Passage(Reference):
    text: str
    cut: NotRequired[str]


class OwnFields(TypedDict, total=False):  # those of `answer.OWN_FIELDS`
    chunk_index: int
    language: str
    tags: list[str]
    authors: list[str]
    year: int
    content_truncated: bool
    path: str
    filename: str
    extension: str
    source_folder: str
    source_type: str
    file_type: str
    mime_type: str
    size_bytes: int
    modified_at_epoch: int


class PassageInContext(Passage, OwnFields, total=False):
    before: list[Passage]
    after: list[Passage]


class Hit(PassageInContext, total=False):
    score: float
    ranks: dict[str, int]
    fields: dict[str, Any]
    metadata: dict[str, Any]
    weak: bool
    snippet: str
    same_text: list[Reference]


class Found(TypedDict):
    query: str
    mode: str
    hits: list[Hit]
    more: bool
    unavailable: list[str]
    notice: str | None


class Value(TypedDict):
    value: str | int | float | bool
    sources: int


class DescribedField(TypedDict):
    field: str
    operators: list[str]
    values: list[Value]
    more: Annotated[bool, Field(description="Whether the field has values that are not listed.")]


class Contents(TypedDict):
    sources: int
    filters: list[DescribedField]


def mcp_server(
    service: DescribedSearchService,
    access: Access,
    known_errors: tuple[type[Exception], ...],
    version: str,
    default_mode: Mode = "hybrid",
    fields: FieldSet = NO_FIELDS,
) -> MCPServer:
    """`known_errors` mean that the index is not available. Any other exception, except search errors, is a bug.
    `default_mode` is the mode of a search that names none."""

    by_name = {name: one for name, one in filter_fields(fields).items() if name not in _NOT_DESCRIBED}

    @contextmanager
    def errors_for_assistants() -> Iterator[None]:
        try:
            yield
        except (SearchError, InvalidFilter) as error:
            raise ToolError(str(error)) from error
        except known_errors as error:  # its message may name servers and folders
            _logger.warning("%s", error)
            raise ToolError(_UNAVAILABLE) from error

    def search(
        query: Annotated[str, Field(description='A question, or words. "Words in quotes" are a phrase.')],
        limit: Annotated[int, Field(ge=1, le=100, description="The maximum number of sources to return.")] = 10,
        offset: Annotated[int, Field(ge=0, le=9_900, description="How many sources to skip, for the next page.")] = 0,
        mode: Annotated[
            Mode | None, Field(description="keyword finds words, semantic finds meaning, hybrid finds both.")
        ] = None,
        filters: Annotated[
            list[str] | None,
            Field(
                description='Conditions such as "source_type=md" or "year>=2020". All must hold; several values of one '
                "field are alternatives. "
                f"Fields: {', '.join(sorted(by_name))}."
            ),
        ] = None,
        context: Annotated[int, Field(ge=0, le=5, description="How many passages before and after each hit.")] = 0,
        sort: Annotated[
            str | None,
            Field(
                description="Sort by this field instead of by relevance; with - before it, highest value first. "
                "Returns documents with every word of the query, or all for an empty query. "
                f"Fields: {', '.join((*SORTABLE, *fields.sortable()))}."
            ),
        ] = None,
    ) -> Found:
        with errors_for_assistants():
            question = Question(
                query,
                mode=mode or default_mode,
                limit=limit,
                offset=offset,
                filters=parse_filters(filters or (), fields),
                context=context,
                sort=parse_sort(sort, fields),
            )
            answer = service.search(question, access)
        for leg, reason in answer.unavailable.items():
            _logger.warning("no answer from %s search: %s", leg, reason)
        if answer.not_reranked is not None:
            _logger.warning("the reranker failed: %s", answer.not_reranked)
        if not answer.answered:
            raise ToolError(_UNAVAILABLE)
        return _found(answer)

    def get_chunk(
        chunk_id: Annotated[str, Field(description="The chunk_id of a hit.")],
        context: Annotated[int, Field(ge=0, le=20, description="How many passages before and after it.")] = 1,
    ) -> PassageInContext:
        with errors_for_assistants():
            passage = service.get(chunk_id, access, context)
        if passage is None:
            raise ToolError(f"There is no chunk {chunk_id!r:.200}. Use the chunk_id of a hit of `search`.")
        return cast(PassageInContext, passage.as_json())

    def describe_index() -> Contents:
        with errors_for_assistants():
            values = service.contents(
                [*(one.field for one in by_name.values()), IN_EVERY_DOCUMENT], access, _MAX_VALUES + 1
            )
        return Contents(
            sources=sum(one.families for one in values.get(IN_EVERY_DOCUMENT, ())),
            filters=[_described(name, one, values[name]) for name, one in by_name.items() if values.get(name)],
        )

    tools: list[Tool] = [
        _strict(search, "Find the best sources for a question or for words."),
        _strict(get_chunk, "Get one passage by its chunk_id, with the passages around it."),
        _strict(describe_index, "Show how many sources the index has, and the fields and values to filter by."),
    ]
    return MCPServer("chunksink", instructions=_INSTRUCTIONS, version=version, log_level="WARNING", tools=tools)


class _StrictTool(Tool):
    """Refuses unknown arguments: if a misspelt filter were ignored, the hits would be wrong."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        known = self.parameters["properties"]
        unknown = [repr(name) for name in arguments if name not in known]
        if unknown:
            names = ", ".join(known) or "none"
            raise ToolError(f"{self.name} has no argument {', '.join(unknown):.200}. Its arguments: {names}")
        return await super().run(arguments, context, convert_result)


def _strict(function: Callable[..., Any], description: str) -> Tool:
    annotations = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    tool = _StrictTool.from_function(function, description=description, annotations=annotations, structured_output=True)
    tool.parameters["additionalProperties"] = False
    return tool


def _found(answer: Answer) -> Found:
    return Found(
        query=answer.query,
        mode=answer.mode,
        hits=[_hit(hit) for hit in answer.hits],
        more=answer.more,
        unavailable=list(answer.unavailable),
        notice=answer.notice,
    )


def _hit(hit: SearchHit) -> Hit:
    around = Surrounded(hit.document, hit.before, hit.after) if hit.before or hit.after else None
    fields = as_json(hit.document) if around is None else around.as_json()
    for passage in (fields, *fields.get("before", ()), *fields.get("after", ())):
        _shorten(passage)
    if "cut" in fields and hit.snippet:
        fields["snippet"] = "".join(piece.text for piece in hit.snippet)
    fields |= {"score": round(hit.score, 6), "ranks": hit.ranks, "weak": hit.weak}
    fields |= {"fields": dict(hit.fields), "metadata": hit.metadata}
    if hit.same_text:
        fields["same_text"] = [reference(document) for document in hit.same_text]
    return cast(Hit, fields)


def _shorten(passage: dict[str, Any]) -> None:
    """Cut a very long text: ten of these would fill an assistant's context window."""
    text = passage["text"]
    if len(text) > _MAX_TEXT:
        passage["text"] = text[:_MAX_TEXT]
        passage["cut"] = f"The passage has {len(text):,} characters. get_chunk returns all of them."


def _described(name: str, field: FilterField, values: Sequence[FacetValue]) -> DescribedField:
    shown = () if name in _WITHOUT_VALUES else values[:_MAX_VALUES]
    listed = [Value(value=one.value, sources=one.families) for one in shown]
    return DescribedField(field=name, operators=field.operators, values=listed, more=len(values) > len(listed))
