"""The index as tools of the Model Context Protocol, over standard input and output: `search`, `get_chunk` and
`describe_index`.

The tenant is fixed when the server starts. No call can name another one.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NotRequired, Protocol, cast

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field, ValidationError
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from chunksink.search.access import Access
from chunksink.search.answer import OWN_FIELDS, Answer, SearchHit, SearchService, Surrounded, reference
from chunksink.search.errors import SearchError
from chunksink.search.facets import IN_EVERY_DOCUMENT
from chunksink.search.filters import FilterField, filter_fields, parse_filters, parse_sort
from chunksink.search.question import SEMANTIC, Mode, Question
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fields import SORTABLE
from chunksink.sinks.reader import FacetValue

_logger = logging.getLogger("chunksink.search")
_MAX_ANSWER = 60_000
"""Characters of the hits, except snippets, or of the passages around a chunk. More would fill an assistant's context
window."""
_MAX_TEXT = 20_000
"""Characters of one passage among them."""
_MAX_METADATA = 2_000
"""Characters of the custom fields and the metadata of a hit."""
_MAX_COPIES = 10
"""Other sources with the same text."""
_MAX_VALUES = 20
"""Values of a field in the description of the index."""
_NOT_DESCRIBED = ("parent_id", "tenant_key", "schema_version", "filename", "title")
"""Not offered as filters: they identify sources or tenants, or say nothing about the content."""
_WITHOUT_VALUES = ("chunk_index", "page_start", "page_end", "path", "size_bytes", "modified_at_epoch")
"""Filters whose most frequent values say nothing about the content."""
_SHOWN = ("language", "tags", "authors", "year")
"""The `OWN_FIELDS` of hits. `get_chunk` returns all."""
_POSITIONS = ("char_start", "char_end", "start_offset", "end_offset")
_OF_INGEST = ("code_language", "kind", "overlap_chars", "table_header")
"""Metadata that our own ingest adds. Only its chunks have `overlap_chars`."""
_INSTRUCTIONS = (
    "Searches one index of documents. `describe_index` shows what it contains and which fields can be filtered. "
    "`search` finds the best sources for a question. `get_chunk` returns a passage with the passages around it."
)
_SEARCH = (
    "Find the best sources for a question or for words, each with its best passage. Cite a passage by its title and "
    "its `link`, or else its `source_uri`; `locator` is its place there. `weak` marks a hit that is hardly related to "
    "the query, `cut` a shortened passage, `same_text` lists other sources with the same text. `notice` explains the "
    "answer; `unavailable` names searches that failed, so hits may be missing. If `more` is true, the next page has "
    "further sources."
)
_UNAVAILABLE = (
    "The index cannot be searched right now. If it was never built, run `chunksink sync`; "
    "otherwise `chunksink doctor` shows the reason."
)
_NOT_SEMANTIC = "Semantic search is not available now. Use the mode keyword."
_LEFT_OUT = "Some passages around it do not fit into this answer. `get_chunk` returns those around any chunk_id."
_Mode = Literal["hybrid", "keyword", "semantic"]  # few indexes have a sink for the mode `engine`
_EMPTY_IS_ABSENT = BeforeValidator(lambda value: None if value == "" else value)  # as many models send it
_ONE_IS_A_LIST = BeforeValidator(lambda value: [value] if isinstance(value, str) and value else value or None)


class DescribedSearchService(SearchService, Protocol):
    """Can also list what the index contains."""

    def contents(self, fields: Sequence[str], access: Access, limit: int) -> Mapping[str, list[FacetValue]]: ...


class Reference(TypedDict):  # here and below, fields without a value are left out
    chunk_id: str
    title: NotRequired[str]
    source_uri: NotRequired[str]
    link: NotRequired[str]
    locator: NotRequired[dict[str, Any]]


class Neighbour(TypedDict):
    chunk_id: str
    locator: NotRequired[dict[str, Any]]
    text: str
    cut: NotRequired[str]


class Passage(Reference):
    text: str
    cut: NotRequired[str]
    before: NotRequired[list[Neighbour]]
    after: NotRequired[list[Neighbour]]


class Chunk(Passage, total=False):  # with `OWN_FIELDS`
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


class Hit(Passage, total=False):
    language: str
    tags: list[str]
    authors: list[str]
    year: int
    fields: dict[str, Any]
    metadata: dict[str, Any]
    score: float
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
        query: Annotated[
            str,
            Field(
                description='A question, words, or a file name or path. "Words in quotes" are a phrase, such as '
                '"def parse_rule" for a definition.'
            ),
        ],
        limit: Annotated[int, Field(ge=1, le=50, description="The maximum number of sources to return.")] = 10,
        offset: Annotated[int, Field(ge=0, le=9_900, description="How many sources to skip, for the next page.")] = 0,
        mode: Annotated[
            _Mode | None,
            _EMPTY_IS_ABSENT,
            Field(description="keyword finds words, semantic finds meaning, hybrid finds both."),
        ] = None,
        filters: Annotated[
            list[str] | None,
            _ONE_IS_A_LIST,
            Field(
                description='Conditions such as "year>=2020" or, with a pattern, "path=handbook/*". All must hold; '
                "several values of one field are alternatives. "
                f"Fields: {', '.join(sorted(by_name))}."
            ),
        ] = None,
        context: Annotated[int, Field(ge=0, le=5, description="How many passages before and after each hit.")] = 0,
        sort: Annotated[
            str | None,
            _EMPTY_IS_ABSENT,
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
            raise ToolError(_NOT_SEMANTIC if answer.mode == SEMANTIC else _UNAVAILABLE)
        return _found(answer)

    def get_chunk(
        chunk_id: Annotated[str, Field(description="The chunk_id of a hit.")],
        context: Annotated[int, Field(ge=0, le=20, description="How many passages before and after it.")] = 1,
    ) -> Chunk:
        with errors_for_assistants():
            passage = service.get(chunk_id, access, context)
        if passage is None:
            raise ToolError(f"There is no chunk {chunk_id!r:.200}. Use the chunk_id of a hit of `search`.")
        return _chunk(passage)

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
        _strict(search, _SEARCH),
        _strict(get_chunk, "Get one passage by its chunk_id, with the passages around it."),
        _strict(describe_index, "Show how many sources the index has, and the fields and values to filter by."),
    ]
    return MCPServer("chunksink", instructions=_INSTRUCTIONS, version=version, log_level="WARNING", tools=tools)


class _StrictTool(Tool):
    """Refuses unknown arguments: if a misspelt filter were ignored, the hits would be wrong. Its answers and errors are
    short."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        known = self.parameters["properties"]
        unknown = [repr(name) for name in arguments if name not in known]
        if unknown:
            names = ", ".join(known) or "none"
            raise ToolError(f"{self.name} has no argument {', '.join(unknown):.200}. Its arguments: {names}")
        try:
            result = await super().run(arguments, context, convert_result)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError) or isinstance(error, UnexpectedToolError):
                raise
            problems = "; ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.__cause__.errors())
            raise ToolError(f"{self.name} cannot be called like this: {problems}") from error.__cause__
        if convert_result:  # the library indents the text
            text = json.dumps(result.structured_content, ensure_ascii=False, separators=(",", ":"))
            result.content = [TextContent(type="text", text=text)]
        return result


def _strict(function: Callable[..., Any], description: str) -> Tool:
    annotations = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
    tool = _StrictTool.from_function(function, description=description, annotations=annotations, structured_output=True)
    tool.parameters["additionalProperties"] = False
    return tool


def _found(answer: Answer) -> Found:
    outages = [f"{leg.capitalize()} search is not available, so hits may be missing." for leg in answer.unavailable]
    return Found(
        query=answer.query,
        mode=answer.mode,
        hits=_hits(answer),
        more=answer.more,
        unavailable=list(answer.unavailable),
        notice=" ".join((*outages, answer.notice or "")).strip() or None,
    )


def _hits(answer: Answer) -> list[Hit]:
    """The texts of the first hits come before those of later ones, and these before the passages around them."""
    left = _MAX_ANSWER
    shown = []
    for hit in answer.hits:
        fields = _hit(hit)
        left -= _fit(fields, left)
        if "cut" in fields and hit.snippet:
            fields["snippet"] = "".join(piece.text for piece in hit.snippet)
        shown.append(fields)
    for fields, hit in zip(shown, answer.hits, strict=True):
        left -= _add_neighbours(fields, hit, left)
    return cast(list[Hit], shown)


def _hit(hit: SearchHit) -> dict[str, Any]:
    stored = hit.document.as_dict()
    added = _OF_INGEST if "overlap_chars" in hit.metadata else ()
    metadata = {name: value for name, value in hit.metadata.items() if name not in added}
    own: dict[str, Any] = {"fields": dict(hit.fields), "metadata": metadata}
    if len(json.dumps(own, ensure_ascii=False)) > _MAX_METADATA:
        own = {"cut": "Its metadata is left out, because it is long."}
    fields = {
        **{name: stored.get(name) for name in _SHOWN},
        **own,
        "score": float(f"{hit.score:.4g}"),
        "weak": hit.weak,
        "same_text": [_reference(document) for document in hit.same_text[:_MAX_COPIES]],
    }
    return _reference(hit.document) | _with_value(fields) | {"text": hit.document.text}


def _chunk(found: Surrounded) -> Chunk:
    stored = found.document.as_dict()
    fields = _reference(found.document) | {"text": found.document.text}
    fields |= {name: stored[name] for name in OWN_FIELDS if name in stored}
    _add_neighbours(fields, found, _MAX_ANSWER)
    return cast(Chunk, fields)


def _reference(document: Document) -> dict[str, Any]:
    fields = reference(document)
    del fields["parent_id"]
    fields["locator"] = {name: value for name, value in fields["locator"].items() if name not in _POSITIONS}
    return _with_value(fields)


def _with_value(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _add_neighbours(fields: dict[str, Any], found: SearchHit | Surrounded, left: int) -> int:
    """Add the passages before and after, nearest first, as far as they fit. Returns their characters. Title and source
    are those of the passage between them."""
    size = 0
    for side, nearest_first in (("before", found.before[::-1]), ("after", found.after)):
        for document in nearest_first:
            if size >= left:
                fields.setdefault("cut", _LEFT_OUT)
                return size
            about = _reference(document)
            passage = {name: about[name] for name in ("chunk_id", "locator") if name in about} | {"text": document.text}
            size += _fit(passage, left - size)
            passages = fields.setdefault(side, [])
            passages.insert(0 if side == "before" else len(passages), passage)
    return size


def _fit(passage: dict[str, Any], left: int) -> int:
    """Cut the text if the passage is longer than allowed. Returns the characters of the passage."""
    text = passage.pop("text")
    size = len(json.dumps(passage, ensure_ascii=False))
    passage["text"] = text[: max(0, min(_MAX_TEXT, left - size))]
    if len(passage["text"]) < len(text):
        passage["cut"] = f"The passage has {len(text):,} characters. `get_chunk` returns all of them."
    return size + len(passage["text"])


def _described(name: str, field: FilterField, values: Sequence[FacetValue]) -> DescribedField:
    shown = () if name in _WITHOUT_VALUES else values[:_MAX_VALUES]
    listed = [Value(value=one.value, sources=one.families) for one in shown]
    return DescribedField(field=name, operators=field.operators, values=listed, more=len(values) > len(listed))
