"""LlamaIndex: an `IngestionPipeline` with a document store on disk, and Chroma. The option is the strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import chromadb
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.schema import Document
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.vector_stores.chroma import ChromaVectorStore

from bench.faults.vectors import vectors


class HashEmbeddings(BaseEmbedding):
    def _get_text_embedding(self, text: str) -> list[float]:
        return vectors([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return vectors(texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vectors([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vectors([query])[0]


def prepare(options: Sequence[str]) -> Callable[[], int]:
    def work() -> int:
        collection = chromadb.PersistentClient("store").get_or_create_collection("faults")
        pipeline = IngestionPipeline(
            transformations=[MarkdownNodeParser(), HashEmbeddings()],
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy(options[0]),
            vector_store=ChromaVectorStore(chroma_collection=collection),
        )
        if Path("pipeline_storage").exists():
            pipeline.load("pipeline_storage")
        files = sorted(Path("sources").iterdir())
        documents = [
            Document(text=each.read_text(), doc_id=each.name, metadata={"source": each.name}) for each in files
        ]
        print(len(pipeline.run(documents=documents)), "nodes")
        pipeline.persist("pipeline_storage")
        return 0

    return work
