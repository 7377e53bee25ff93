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
from chunksink.search.filters import FilterArgument
from chunksink.search.question import Mode

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: {extra_needed('llamaindex')}", name=error.name) from error


class ChunksinkRetriever(BaseRetriever):
    """The best chunks for a query, each source once unless `collapse` is False."""

    def __init__(
        self,
        index: Index,
        *,
        similarity_top_k: int = 10,
        mode: Mode | None = None,
        filters: FilterArgument = None,
        tenant: str | None = None,
        collapse: bool = True,
        context: int = 0,
    ) -> None:
        super().__init__()
        self._search = partial(
            index.search,
            limit=similarity_top_k,
            mode=mode,
            filters=filters,
            tenant=tenant,
            collapse=collapse,
            context=context,
        )

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self._search(query_bundle.query_str)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in hits_of(answer)]


def _node(hit: SearchHit) -> TextNode:
    metadata = metadata_of(hit)
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
