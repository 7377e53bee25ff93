"""A LangChain retriever over a chunksink index.

with chunksink.open() as index:
    retriever = ChunksinkRetriever(index=index, k=5)
    documents = retriever.invoke("how do I return a borrowed tool")
"""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from search.question import Mode
from search.retrievers.source import metadata_of, text_of


class ChunksinkRetriever(BaseRetriever):
    """The best chunks for a query, each source once unless `collapse` is False."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Any
    """An open index: `chunksink.open()`."""
    k: int = 10
    mode: Mode = "hybrid"
    filters: Any = None
    tenant: str | None = None
    collapse: bool = True
    context: int = 0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        del run_manager
        answer = self.index.search(
            query,
            limit=given.get("k", self.k),
            mode=given.get("mode", self.mode),
            filters=given.get("filters", self.filters),
            tenant=self.tenant,  # never from a single call: who builds the chain decides whose documents it sees
            collapse=self.collapse,
            context=self.context,
        )
        return [
            Document(id=hit.document.id, page_content=text_of(hit), metadata=metadata_of(hit)) for hit in answer.hits
        ]
