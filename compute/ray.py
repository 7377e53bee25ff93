"""The engine on Ray: tasks validate chunks, and a pool of actors computes vectors.

The run first imports the segments of earlier runs. It then divides the texts that still have no vector into blocks,
each of a few seconds. If a worker dies, another computes its block again, except vectors that are in a segment already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from chunksink.chunkbus.storage import is_bucket, open_storage
from chunksink.chunkbus.validation import Progress
from chunksink.compute.cluster import Cluster, RayExecutor, first_line
from chunksink.compute.worker import BlockReceipt, Job, OpenEncoder, Worker, WorkerState, open_encoder_of_worker
from chunksink.rebuild.compute import MissingText
from chunksink.rebuild.embedder import DocumentEmbedder
from chunksink.rebuild.errors import ComputeError
from chunksink.settings.config import Config
from chunksink.settings.ray import RayOptions

BLOCK_SECONDS = 5.0
"""The target time for one block. This much work is lost if a worker dies."""
FIRST_BLOCK_BYTES = 2**16
MAX_BLOCK_BYTES = 2**24
MIN_VALIDATED_BYTES = 64 * 2**20
"""A smaller input is validated in this process, which is faster than starting Ray."""
TRIES = 3
"""A run fails after this many attempts at one block, or after this many failed worker starts without a result between
them."""
START_SECONDS = 600.0
"""How long to wait for a first worker, as a cluster may have to start a machine."""
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Block:
    """Texts that one worker embeds at once."""

    texts: tuple[MissingText, ...]
    size: int
    """Bytes of their chunks."""
    tries: int = 0

    @property
    def chunks(self) -> int:
        return sum(text.chunks for text in self.texts)

    def __str__(self) -> str:
        first = self.texts[0].place
        return f"{len(self.texts)} texts, from byte {first.place.offset} of partition {first.partition}"


class Blocks:
    """Cuts texts into blocks. Their size follows the measured speed of workers."""

    def __init__(self, missing: Iterator[MissingText]) -> None:
        self._missing = missing
        self._repeated: deque[Block] = deque()
        self._bytes = FIRST_BLOCK_BYTES
        self.ended = False
        """Whether all texts are in blocks."""

    def next(self) -> Block | None:
        """A block to repeat, else a new one; None if there is none now."""
        if self._repeated:
            return self._repeated.popleft()
        texts: list[MissingText] = []
        size = 0
        while size < self._bytes and not self.ended:
            text = next(self._missing, None)
            if text is None:
                self.ended = True
            else:
                texts.append(text)
                size += text.place.place.length
        return Block(tuple(texts), size) if texts else None

    def repeat(self, block: Block) -> None:
        self._repeated.append(block)

    def measured(self, block: Block, seconds: float) -> None:
        """Adapts the size to a block that took this long. It at most doubles, since a measurement may be wrong."""
        fitting = int(block.size * BLOCK_SECONDS / max(seconds, 0.01))
        self._bytes = min(max(fitting, FIRST_BLOCK_BYTES // 4), 2 * self._bytes, MAX_BLOCK_BYTES)


class RayCompute:
    """The engine of one run. Ray starts when it is first needed."""

    def __init__(self, config: Config, *, open_encoder: OpenEncoder = open_encoder_of_worker) -> None:
        options = config.ray or RayOptions()
        self.name = f"embed on {options.workers} Ray workers" if options.workers else "embed on Ray"
        self._config = config
        self._options = options
        self._open_encoder = open_encoder
        self._cluster = Cluster(options)

    def close(self) -> None:
        self._cluster.close()

    @contextmanager
    def workers(self, size: int) -> Iterator[Executor | None]:
        """Tasks on Ray for validation; None for a small input."""
        yield RayExecutor(self._cluster.connect()) if size >= MIN_VALIDATED_BYTES else None

    def embed(self, missing: Iterator[MissingText], embedder: DocumentEmbedder, on_chunks: Progress) -> None:
        """Embed these texts on workers. After a ComputeError, the vectors computed so far are in the cache."""
        config, gpus, segments = self._config, self._options.gpus_per_worker, self._config.segments
        embedder.import_segments(open_storage(segments))
        blocks = Blocks(missing)
        first = blocks.next()
        if first is None or blocks.ended:  # starting workers takes longer than one block
            return
        blocks.repeat(first)
        job = Job(
            config.chunks if is_bucket(config.chunks) else str(Path(config.chunks).absolute()),
            config.home_path.absolute(),
            segments,
            embedder.settings,
            config.model_cache_path,
            None if gpus else 1,
            self._open_encoder,
        )
        ray, room = self._cluster.connect(), self._cluster.slots()
        pool = _Pool(ray, job, self._options.workers or room, gpus)
        try:
            _Run(pool, blocks, embedder, segments, on_chunks).run()
        finally:
            pool.close()


class _Pool:
    """Workers, each of which has at most one call under way. One that has died is replaced."""

    def __init__(self, ray: Any, job: Job, count: int, gpus: float) -> None:
        self._ray = ray
        self._actor = ray.remote(Worker).options(num_cpus=1, num_gpus=gpus, max_restarts=0)
        self._job = job
        self._workers: set[Any] = set()
        self._calls: dict[Any, tuple[Any, Block | None]] = {}
        self.idle: list[Any] = []
        for _ in range(count):
            self._add()

    @property
    def under_way(self) -> int:
        """Number of blocks that workers compute."""
        return sum(block is not None for _, block in self._calls.values())

    def submit(self, block: Block) -> None:
        """Give the block to an idle worker."""
        worker = self.idle.pop()
        self._calls[worker.embed.remote([text.place for text in block.texts])] = worker, block

    def finished(self) -> Iterator[tuple[Block | None, WorkerState | BlockReceipt | Exception]]:
        """Calls that have ended, after a wait of up to a second: the block, if any, and the result or why the worker
        died."""
        ready, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=_LOOK_SECONDS)
        for call in ready:
            worker, block = self._calls.pop(call)
            try:
                result = self._ray.get(call)
            except self._ray.exceptions.RayTaskError:  # a bug; the worker did not die
                raise
            except self._ray.exceptions.RayError as error:
                self._workers.discard(worker)
                self._add()
                yield block, error
            else:
                self.idle.append(worker)
                yield block, result

    def close(self) -> None:
        for worker in self._workers:
            self._ray.kill(worker)

    def _add(self) -> None:
        worker = self._actor.remote(self._job)
        self._workers.add(worker)
        self._calls[worker.start.remote()] = worker, None


@dataclass(eq=False)
class _Run:
    """Lets workers compute the blocks, and adds their vectors to the cache."""

    pool: _Pool
    blocks: Blocks
    embedder: DocumentEmbedder
    segments: str
    on_chunks: Progress
    failed_starts: int = 0

    def run(self) -> None:
        waiting_since = monotonic()
        while True:
            while self.pool.idle and (block := self.blocks.next()) is not None:
                self.pool.submit(block)
            if self.pool.under_way:
                waiting_since = monotonic()
            elif self.pool.idle:
                return
            for block, result in self.pool.finished():
                if isinstance(result, WorkerState):
                    self._require_same_model(result)
                elif isinstance(result, BlockReceipt) and block is not None:
                    self._accept(block, result)
                elif block is not None:
                    self._repeat(block, f"a worker died: {first_line(result)}")
                else:
                    self._note_failed_start(result)
            if monotonic() - waiting_since > START_SECONDS:
                raise ComputeError(
                    f"Ray has started no worker in {START_SECONDS:.0f} s: see `ray status` for free processors and "
                    "GPUs, and lower --workers or --gpus-per-worker"
                )

    def _require_same_model(self, worker: WorkerState) -> None:
        name, expected = self.embedder.info.name, self.embedder.info.fingerprint
        if worker.problem:
            raise ComputeError(f"a worker on {worker.node} cannot load {name}: {worker.problem}")
        if worker.fingerprint != expected:
            raise ComputeError(
                f"a worker on {worker.node} has different files for {name}: their fingerprint is "
                f"{worker.fingerprint[:12]}, here it is {expected[:12]}. Install the same model files there"
            )

    def _note_failed_start(self, error: object) -> None:
        self.failed_starts += 1
        if self.failed_starts >= TRIES:
            raise ComputeError(f"{TRIES} workers died while loading the model. The last error: {first_line(error)}")

    def _accept(self, block: Block, receipt: BlockReceipt) -> None:
        self.failed_starts = 0
        if receipt.changed:
            return  # the run notices when it reads the partition itself, and starts over
        if receipt.failure:
            self._repeat(block, f"the worker on {receipt.node}: {receipt.failure}")
            return
        if receipt.segment is not None:
            imported = self.embedder.import_segments(open_storage(self.segments), [receipt.segment])
            for bad in imported.bad:
                raise ComputeError(
                    f"a worker on {receipt.node} wrote {bad.name} to {self.segments}, which this machine cannot use: "
                    f"{bad.reason}. `segments` in [ray] must name a folder or bucket that all machines share"
                )
        self.embedder.note_computed(receipt.texts, receipt.text_bytes, receipt.length, receipt.problems)
        self.blocks.measured(block, receipt.seconds)
        self.on_chunks(block.chunks)

    def _repeat(self, block: Block, reason: str) -> None:
        """Let a worker embed the texts of a block that have no vector yet."""
        self.embedder.import_segments(open_storage(self.segments))
        cached = self.embedder.cached([text.place.key for text in block.texts])
        rest = replace(
            block, texts=tuple(each for each in block.texts if each.place.key not in cached), tries=block.tries + 1
        )
        self.on_chunks(block.chunks - rest.chunks)
        if rest.texts and rest.tries >= TRIES:
            raise ComputeError(
                f"{rest} could not be embedded in {TRIES} attempts. The last one: {reason}. Everything else that was "
                "computed is kept for the next run"
            )
        if rest.texts:
            self.blocks.repeat(rest)
