"""LangChain and LlamaIndex with the same chunks. Each runs its own loop, as its guide shows it, and is timed within its
process.

    .peers/bin/python -m bench.peers langchain unchanged BUS WORK_FOLDER
    .peers/bin/python -m bench.peers langchain edited FOLDER_OF_BUSES WORK_FOLDER --model FOLDER
    .peers/bin/python -m bench.peers langchain|llamaindex cold|fill|warm BUS WORK_FOLDER [--model FOLDER]

`make peers` creates that environment. chunksink itself does not need it. The output is one line of JSON: the seconds of
the start (imports, model) and those of the work, from reading the chunks to the last document in Chroma. `unchanged`
reads the chunks beforehand and writes nothing to its store, so that only the record manager is timed. `edited` stores
the first bus with generated vectors, and the second one as part of the start; the work is to store all others. `fill`
creates the caches that `warm` reads. The loops store five fields of a chunk besides its text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
warnings.simplefilter("ignore")

DIMENSIONS = 384
BATCH = 1000  # of LangChain's index(): faster than its default of 100
SLICE = 5000  # Chroma accepts at most 5,461 at once, and LlamaIndex does not split them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["langchain", "llamaindex"])
    parser.add_argument("what", choices=["unchanged", "edited", "cold", "fill", "warm"])
    parser.add_argument("bus", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="a model's folder; without it vectors are generated from hashes")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    work = langchain(arguments) if arguments.peer == "langchain" else llamaindex(arguments)
    ready = time.perf_counter()
    chunks = work()
    print(json.dumps({"ready": ready - started, "seconds": time.perf_counter() - ready, "chunks": chunks}))


Work = Callable[[], int]
"""Returns the number of chunks."""


def chunks(bus: Path) -> Iterator[dict[str, Any]]:
    import orjson

    for file in sorted((bus / "canonical").glob("*.jsonl")):
        with file.open("rb") as lines:
            yield from map(orjson.loads, lines)


def metadata(chunk: dict[str, Any]) -> dict[str, Any]:
    """The fields that are shown with a hit."""
    return {
        "source": chunk["provenance"]["source_uri"],
        "document_id": chunk["document_id"],
        "chunk_index": chunk["chunk_index"],
        "title": chunk["metadata"]["title"],
        "language": chunk["metadata"]["language"],
    }


def drawn(text: str) -> list[float]:
    return [byte / 256 - 0.5 for byte in hashlib.shake_128(text.encode()).digest(DIMENSIONS)]


def langchain(arguments: argparse.Namespace) -> Work:
    from langchain_chroma import Chroma
    from langchain_classic.embeddings import CacheBackedEmbeddings
    from langchain_classic.indexes import SQLRecordManager
    from langchain_classic.storage import LocalFileStore
    from langchain_community.embeddings import HuggingFaceEmbeddings
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
    from langchain_core.indexing import IndexingResult, index
    from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

    class HashEmbeddings(Embeddings):
        computed = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.computed += len(texts)
            return [drawn(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return drawn(text)

    def documents(bus: Path = arguments.bus) -> Iterator[Document]:
        return (Document(page_content=chunk["text"], metadata=metadata(chunk)) for chunk in chunks(bus))

    def run(store: VectorStore, records: Path, given: Any) -> IndexingResult:
        manager = SQLRecordManager("bench", db_url=f"sqlite:///{records}")
        manager.create_schema()
        named: dict[str, Any] = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
        return index(given, manager, store, batch_size=BATCH, **named)

    if arguments.what == "unchanged":
        records, store = arguments.folder / "records.db", InMemoryVectorStore(DeterministicFakeEmbedding(size=1))
        if not records.exists():
            run(store, records, documents())
        read = list(documents())

        def unchanged() -> int:
            done = run(store, records, read)
            assert done["num_skipped"] == len(read), done
            return len(read)

        return unchanged
    model: Any = HuggingFaceEmbeddings(model_name=arguments.model) if arguments.model else HashEmbeddings()
    if arguments.what == "edited":
        records, place = arguments.folder / "records.db", str(arguments.folder / "chroma")
        first, second, *others = sorted(arguments.bus.iterdir())
        run(Chroma("bench", HashEmbeddings(), persist_directory=place), records, documents(first))
        kept = Chroma("bench", model, persist_directory=place)
        run(kept, records, documents(second))
        return lambda: sum(int(run(kept, records, documents(bus))["num_added"]) for bus in others)
    cache = LocalFileStore(arguments.folder / "cache")
    embeddings = CacheBackedEmbeddings.from_bytes_store(model, cache, namespace="bench", key_encoder="sha256")
    if arguments.what == "fill":
        return lambda: len(embeddings.embed_documents([each.page_content for each in documents()]))

    def rebuild() -> int:
        store = Chroma("bench", embeddings, persist_directory=str(arguments.folder / "chroma"))
        done = run(store, arguments.folder / "records.db", documents())
        assert arguments.what == "cold" or model.computed == 0
        return int(done["num_added"])

    return rebuild


def llamaindex(arguments: argparse.Namespace) -> Work:
    import chromadb
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    computed = []

    class HashEmbeddings(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            computed.append(text)
            return drawn(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return drawn(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return drawn(query)

    model = HuggingFaceEmbedding(arguments.model) if arguments.model else HashEmbeddings()
    kept = str(arguments.folder / "cache")

    def nodes() -> Iterator[TextNode]:
        for chunk in chunks(arguments.bus):
            yield TextNode(id_=chunk["chunk_id"], text=chunk["text"], metadata=metadata(chunk))

    def rebuild() -> int:
        store = None
        if arguments.what != "fill":
            client = chromadb.PersistentClient(str(arguments.folder / "chroma"))
            store = ChromaVectorStore(chroma_collection=client.create_collection("bench"))
        pipeline = IngestionPipeline(transformations=[model], vector_store=store)
        if arguments.what == "warm":
            pipeline.load(kept)
        every, done = nodes(), 0
        while some := list(islice(every, SLICE)):
            done += len(pipeline.run(nodes=some))
        if arguments.what == "fill":
            pipeline.persist(kept)
        assert arguments.what != "warm" or not computed
        return done

    return rebuild


if __name__ == "__main__":
    main()
