"""What LangChain and LlamaIndex do with the same chunks: their own loops as their guides show them, timed from inside.

    .peers/bin/python -m bench.peers langchain unchanged BUS WORK_FOLDER
    .peers/bin/python -m bench.peers langchain edited FOLDER_OF_BUSES WORK_FOLDER --model FOLDER
    .peers/bin/python -m bench.peers langchain|llamaindex cold|fill|warm BUS WORK_FOLDER [--model FOLDER]

`make peers` makes that environment; chunksink itself needs none of it. One line of JSON says how many seconds it took
to get ready (imports, model) and to work: from reading the chunks to the last document in Chroma. Only `unchanged`
does not count the reading: its store is never written, so that the record manager alone is compared. `edited` stores
the first bus with drawn vectors and gets ready with the second one; the work is to follow all others.
`fill` makes the caches that `warm` reads. They store five fields of a chunk beside its text.
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
BATCH = 1000  # of LangChain's index(): better than its default of 100
SLICE = 5000  # Chroma takes no more than 5,461 at once, and LlamaIndex sends what it is given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["langchain", "llamaindex"])
    parser.add_argument("what", choices=["unchanged", "edited", "cold", "fill", "warm"])
    parser.add_argument("bus", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", help="a model's folder; without it vectors are drawn from hashes")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    work = langchain(asked) if asked.peer == "langchain" else llamaindex(asked)
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
    """What an answer is shown with."""
    return {
        "source": chunk["provenance"]["source_uri"],
        "document_id": chunk["document_id"],
        "chunk_index": chunk["chunk_index"],
        "title": chunk["metadata"]["title"],
        "language": chunk["metadata"]["language"],
    }


def drawn(text: str) -> list[float]:
    return [byte / 256 - 0.5 for byte in hashlib.shake_128(text.encode()).digest(DIMENSIONS)]


def langchain(asked: argparse.Namespace) -> Work:
    from langchain_chroma import Chroma
    from langchain_classic.embeddings import CacheBackedEmbeddings
    from langchain_classic.indexes import SQLRecordManager
    from langchain_classic.storage import LocalFileStore
    from langchain_community.embeddings import HuggingFaceEmbeddings
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
    from langchain_core.indexing import IndexingResult, index
    from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

    class Drawn(Embeddings):
        computed = 0

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.computed += len(texts)
            return [drawn(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return drawn(text)

    def documents(bus: Path = asked.bus) -> Iterator[Document]:
        return (Document(page_content=chunk["text"], metadata=metadata(chunk)) for chunk in chunks(bus))

    def run(store: VectorStore, records: Path, given: Any) -> IndexingResult:
        manager = SQLRecordManager("bench", db_url=f"sqlite:///{records}")
        manager.create_schema()
        named: dict[str, Any] = {"cleanup": "full", "source_id_key": "source", "key_encoder": "sha256"}
        return index(given, manager, store, batch_size=BATCH, **named)

    if asked.what == "unchanged":
        records, store = asked.folder / "records.db", InMemoryVectorStore(DeterministicFakeEmbedding(size=1))
        if not records.exists():
            run(store, records, documents())
        read = list(documents())

        def unchanged() -> int:
            done = run(store, records, read)
            assert done["num_skipped"] == len(read), done
            return len(read)

        return unchanged
    model: Any = HuggingFaceEmbeddings(model_name=asked.model) if asked.model else Drawn()
    if asked.what == "edited":
        records, place = asked.folder / "records.db", str(asked.folder / "chroma")
        first, second, *others = sorted(asked.bus.iterdir())
        run(Chroma("bench", Drawn(), persist_directory=place), records, documents(first))
        kept = Chroma("bench", model, persist_directory=place)
        run(kept, records, documents(second))
        return lambda: sum(int(run(kept, records, documents(bus))["num_added"]) for bus in others)
    cache = LocalFileStore(asked.folder / "cache")
    embeddings = CacheBackedEmbeddings.from_bytes_store(model, cache, namespace="bench", key_encoder="sha256")
    if asked.what == "fill":
        return lambda: len(embeddings.embed_documents([each.page_content for each in documents()]))

    def rebuild() -> int:
        store = Chroma("bench", embeddings, persist_directory=str(asked.folder / "chroma"))
        done = run(store, asked.folder / "records.db", documents())
        assert asked.what == "cold" or model.computed == 0
        return int(done["num_added"])

    return rebuild


def llamaindex(asked: argparse.Namespace) -> Work:
    import chromadb
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.schema import TextNode
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding
    from llama_index.vector_stores.chroma import ChromaVectorStore

    computed = []

    class Drawn(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            computed.append(text)
            return drawn(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return drawn(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return drawn(query)

    model = HuggingFaceEmbedding(asked.model) if asked.model else Drawn()
    kept = str(asked.folder / "cache")

    def nodes() -> Iterator[TextNode]:
        for chunk in chunks(asked.bus):
            yield TextNode(id_=chunk["chunk_id"], text=chunk["text"], metadata=metadata(chunk))

    def rebuild() -> int:
        store = None
        if asked.what != "fill":
            client = chromadb.PersistentClient(str(asked.folder / "chroma"))
            store = ChromaVectorStore(chroma_collection=client.create_collection("bench"))
        pipeline = IngestionPipeline(transformations=[model], vector_store=store)
        if asked.what == "warm":
            pipeline.load(kept)
        every, done = nodes(), 0
        while some := list(islice(every, SLICE)):
            done += len(pipeline.run(nodes=some))
        if asked.what == "fill":
            pipeline.persist(kept)
        assert asked.what != "warm" or not computed
        return done

    return rebuild


if __name__ == "__main__":
    main()
