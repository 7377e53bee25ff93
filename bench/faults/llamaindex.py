"""LlamaIndex: an `IngestionPipeline` with a document store, kept on disk, and Chroma. The option is a strategy."""

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


class Drawn(BaseEmbedding):
    folder: Path

    def _get_text_embedding(self, text: str) -> list[float]:
        return vectors(self.folder, [text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return vectors(self.folder, texts)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vectors(self.folder, [query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vectors(self.folder, [query])[0]


def prepare(folder: Path, options: Sequence[str]) -> Callable[[], int]:
    kept = folder / "pipeline_storage"

    def work() -> int:
        client = chromadb.PersistentClient(str(folder / "store"))
        pipeline = IngestionPipeline(
            transformations=[MarkdownNodeParser(), Drawn(folder=folder)],
            docstore=SimpleDocumentStore(),
            docstore_strategy=DocstoreStrategy(options[0]),
            vector_store=ChromaVectorStore(chroma_collection=client.get_or_create_collection("faults")),
        )
        if kept.exists():
            pipeline.load(str(kept))
        documents = [
            Document(text=file.read_text(), doc_id=file.name, metadata={"source": file.name})
            for file in sorted((folder / "sources").iterdir())
        ]
        print(len(pipeline.run(documents=documents)), "nodes")
        pipeline.persist(str(kept))
        return 0

    return work
