"""A LangChain retriever over a chunksink index.

    with chunksink.open() as index:
        retriever = ChunksinkRetriever(index=index, k=5)
        documents = retriever.invoke("how do I return a borrowed tool")

The constructor and each call refuse misspelt arguments: a misspelt `tenant`, if ignored, would show everyone's
documents.
"""

from collections.abc import Mapping
from typing import Any

from chunksink.chunkbus.errors import extra_needed
from chunksink.retrievers.answers import hits_of, metadata_of, text_of
from chunksink.search.errors import InvalidQuestion
from chunksink.search.question import Mode

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from pydantic import ConfigDict
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}: {extra_needed('langchain')}", name=error.name) from error

_CALL_ARGUMENTS = ("k", "mode", "filters", "tenant")


class ChunksinkRetriever(BaseRetriever):
    """The best `k` chunks for a query. With `collapse` each source is returned once, by its best chunk."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Any
    """An open index: `chunksink.open()`."""
    k: int = 10
    mode: Mode | None = None
    filters: Any = None
    tenant: str | None = None
    collapse: bool = False
    context: int = 0

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        del run_manager
        _refuse_unknown(arguments)
        answer = self.index.search(
            query,
            limit=arguments.get("k", self.k),
            mode=arguments.get("mode", self.mode),
            filters=arguments.get("filters", self.filters),
            tenant=self._tenant(arguments),
            collapse=self.collapse,
            context=self.context,
        )
        return [
            Document(id=hit.document.id, page_content=text_of(hit), metadata=metadata_of(hit, source="source_uri"))
            for hit in hits_of(answer)
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **arguments: Any
    ) -> list[Document]:
        """Overridden because LangChain's method takes no further arguments."""
        synchronous = run_manager.get_sync()
        return await run_in_executor(None, self._get_relevant_documents, query, run_manager=synchronous, **arguments)

    def _tenant(self, arguments: Mapping[str, Any]) -> str | None:
        """The tenant of this call. A retriever with a tenant refuses calls that name another one."""
        if "tenant" not in arguments:
            return self.tenant
        tenant: str | None = arguments["tenant"]
        if tenant is None:  # a caller that lost its tenant must not see every tenant
            raise InvalidQuestion("tenant=None is not a tenant: name the tenant, or leave the argument out")
        if self.tenant is not None and tenant != self.tenant:
            raise InvalidQuestion(
                f"this retriever is for another tenant, not for {tenant!r:.100}: make one for that tenant"
            )
        return tenant


def _refuse_unknown(arguments: Mapping[str, Any]) -> None:
    unknown = sorted(arguments.keys() - {*_CALL_ARGUMENTS, "verbose"})  # LangChain's `invoke` passes `verbose` on
    if unknown:
        raise TypeError(
            f"a call of ChunksinkRetriever takes no {', '.join(unknown):.200}; it takes {', '.join(_CALL_ARGUMENTS)}. "
            "Pass all other arguments to its constructor"
        )
