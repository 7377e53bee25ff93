"""A LlamaIndex retriever over a chunksink index.

with chunksink.open() as index:
    retriever = ChunksinkRetriever(index, similarity_top_k=5)
    nodes = retriever.retrieve("how do I return a borrowed tool")
"""

from functools import partial

from chunksink.chunkbus.errors import extra_needed
from chunksink.index import Index
from chunksink.retrievers.answers import hits_of, metadata_of, text_of
from chunksink.search.answer import SearchHit
from chunksink.search.errors import InvalidQuestion
from chunksink.search.filters import FilterArgument
from chunksink.search.question import Mode

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
    from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: {extra_needed('llamaindex')}", name=error.name) from error

_OPERATORS = {"==": "=", "in": "=", ">=": ">=", "<=": "<=", ">": ">", "<": "<"}
"""The operators of LlamaIndex's filters that are supported, as conditions write them."""
_SUPPORTED = f"MetadataFilters may use {', '.join(_OPERATORS)}, joined by AND, with at most one == or in for each key"


class ChunksinkRetriever(BaseRetriever):
    """The best chunks for a query. With `collapse` each source is returned once, by its best chunk."""

    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        mode: Mode | None = None,
        filters: FilterArgument | MetadataFilters = None,
        tenant: str | None = None,
        collapse: bool = False,
        context: int = 0,
    ) -> None:
        super().__init__()
        self._search = partial(
            index.search,
            limit=similarity_top_k,
            mode=mode,
            filters=_conditions(filters) if isinstance(filters, MetadataFilters) else filters,
            tenant=tenant,
            collapse=collapse,
            context=context,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self._search(query_bundle.query_str)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits_of(answer)]


def _conditions(filters: MetadataFilters) -> list[str]:
    """LlamaIndex's filters as conditions. Several == of one key are refused: as conditions they would be
    alternatives."""
    if filters.condition != FilterCondition.AND:
        raise InvalidQuestion(f"these filters are not joined by AND: {_SUPPORTED}")
    conditions: list[str] = []
    with_values: set[str] = set()
    for one in filters.filters:
        if not isinstance(one, MetadataFilter) or one.operator not in _OPERATORS:
            raise InvalidQuestion(f"{one!r:.200} is not supported: {_SUPPORTED}")
        operator = _OPERATORS[one.operator]
        values = one.value if one.operator == "in" else [one.value]
        if (
            not isinstance(values, list)
            or not values
            or any(value is None or isinstance(value, list) for value in values)
        ):
            raise InvalidQuestion(f"{one!r:.200} has no value to compare with: {_SUPPORTED}")
        if operator == "=" and one.key in with_values:
            raise InvalidQuestion(f"{one.key!r:.100} has several == or in: {_SUPPORTED}")
        with_values |= {one.key} if operator == "=" else set()
        conditions += [f"{one.key}{operator} {value}" for value in values]
    return conditions


def _node(hit: SearchHit) -> TextNode:
    metadata = metadata_of(hit, file_path="path", file_name="filename")
    if hit.document.headings:  # as one string, for models to read
        metadata["headings"] = " > ".join(hit.document.headings)
    return TextNode(
        id_=hit.document.id,
        text=text_of(hit),
        metadata=metadata,
        # The excluded metadata are for programs: a model that reads the node needs its title and place, not hashes.
        excluded_llm_metadata_keys=[name for name in metadata if name not in ("title", "headings", "source_uri")],
        excluded_embed_metadata_keys=list(metadata),
        relationships=_relations(hit),
    )


def _relations(hit: SearchHit) -> dict[NodeRelationship, RelatedNodeInfo]:
    ids = {
        NodeRelationship.SOURCE: hit.parent_id,
        NodeRelationship.PREVIOUS: hit.document.previous_id,
        NodeRelationship.NEXT: hit.document.next_id,
    }
    return {relation: RelatedNodeInfo(node_id=id) for relation, id in ids.items() if id}
