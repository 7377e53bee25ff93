"""LangChain: `index()` with a record manager and Chroma. Options: the cleanup mode, then perhaps force_update."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_chroma import Chroma
from langchain_classic.indexes import SQLRecordManager
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import index
from langchain_text_splitters import RecursiveCharacterTextSplitter

from bench.faults.vectors import vectors


class HashEmbeddings(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return vectors(texts)

    def embed_query(self, text: str) -> list[float]:
        return vectors([text])[0]


def prepare(options: Sequence[str]) -> Callable[[], int]:
    mode, *others = options
    chosen: dict[str, Any] = {"cleanup": mode, "force_update": "force_update" in others}

    def work() -> int:
        store = Chroma("faults", HashEmbeddings(), persist_directory="store")
        manager = SQLRecordManager("chroma/faults", db_url="sqlite:///records.sql")
        manager.create_schema()
        files = sorted(Path("sources").iterdir())
        documents = [Document(file.read_text(), metadata={"source": file.name}) for file in files]
        splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0)
        chunks = splitter.split_documents(documents)
        print(index(chunks, manager, store, source_id_key="source", key_encoder="sha256", **chosen))
        return 0

    return work
