"""LangChain: `index()` with a record manager and Chroma. Options are those of `index()`, such as cleanup=full."""

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


class Drawn(Embeddings):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return vectors(self._folder, texts)

    def embed_query(self, text: str) -> list[float]:
        return vectors(self._folder, [text])[0]


def prepare(folder: Path, options: Sequence[str]) -> Callable[[], int]:
    chosen: dict[str, Any] = dict(option.split("=") for option in options if "=" in option)
    chosen["force_update"] = "force_update" in options
    splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0)

    def work() -> int:
        store = Chroma("faults", Drawn(folder), persist_directory=str(folder / "store"))
        manager = SQLRecordManager("chroma/faults", db_url=f"sqlite:///{folder / 'records.sql'}")
        manager.create_schema()
        documents = [
            Document(file.read_text(), metadata={"source": file.name})
            for file in sorted((folder / "sources").iterdir())
        ]
        print(
            index(
                splitter.split_documents(documents),
                manager,
                store,
                source_id_key="source",
                key_encoder="sha256",
                **chosen,
            )
        )
        return 0

    return work
