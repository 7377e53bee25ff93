"""CocoIndex: an app from files to LanceDB, run by its command. Options are those of `cocoindex update`."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated

import cocoindex as coco
import numpy as np
from cocoindex.cli import cli
from cocoindex.connectors import lancedb, localfs
from cocoindex.ops.text import RecursiveSplitter
from cocoindex.resources.chunk import Chunk
from cocoindex.resources.file import FileLike, PatternFilePathMatcher
from cocoindex.resources.id import IdGenerator
from cocoindex.resources.schema import VectorSchema
from numpy.typing import NDArray

from bench.faults.vectors import DIMENSIONS, vectors


class HashEmbedder:
    def __init__(self, model: str) -> None:
        self._model = model

    @coco.fn(memo=True, version=1, logic_tracking="self")
    async def embed(self, text: str) -> NDArray[np.float32]:
        return np.array(vectors([text])[0], dtype=np.float32)

    async def __coco_vector_schema__(self) -> VectorSchema:
        return VectorSchema(dtype=np.dtype(np.float32), size=DIMENSIONS)

    def __coco_memo_key__(self) -> object:
        return self._model


STORE = coco.ContextKey[lancedb.LanceAsyncConnection]("faults_store")
EMBEDDER = coco.ContextKey[HashEmbedder]("faults_embedder", detect_change=True)


@dataclass
class Row:
    id: int
    source: str
    text: str
    embedding: Annotated[NDArray[np.float32], EMBEDDER]


@coco.lifespan
async def lifespan(builder: coco.EnvironmentBuilder) -> AsyncIterator[None]:
    builder.provide(STORE, await lancedb.connect_async("store"))
    builder.provide(EMBEDDER, HashEmbedder(Path("model").read_text()))
    yield


@coco.fn
async def process_chunk(chunk: Chunk, path: PurePath, ids: IdGenerator, table: lancedb.TableTarget[Row]) -> None:
    vector = await coco.use_context(EMBEDDER).embed(chunk.text)
    table.declare_row(row=Row(await ids.next_id(chunk.text), path.name, chunk.text, vector))


@coco.fn(memo=True)
async def process_file(file: FileLike, table: lancedb.TableTarget[Row]) -> None:
    text = await file.read_text()
    chunks = RecursiveSplitter().split(text, chunk_size=400, chunk_overlap=0, language="markdown")
    await coco.map(process_chunk, chunks, file.file_path.path, IdGenerator(), table)


@coco.fn
async def app_main(sources: Path) -> None:
    schema = await lancedb.TableSchema.from_class(Row, primary_key=["id"])
    table = await lancedb.mount_table_target(STORE, table_name="faults", table_schema=schema)
    files = localfs.walk_dir(sources, path_matcher=PatternFilePathMatcher(included_patterns=["*.md"]))
    await coco.mount_each(process_file, files.items(), table)


app = coco.App(coco.AppConfig(name="faults"), app_main, sources=Path("sources"))


def prepare(options: Sequence[str]) -> Callable[[], int]:
    os.environ["COCOINDEX_DB"] = "cocoindex.db"
    return lambda: cli(["update", "--force", *options, __name__])
