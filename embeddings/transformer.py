"""The encoder for transformer models: the vectors of sentence-transformers, computed faster.

A `Runtime` computes a batch. Here is what makes it faster than `SentenceTransformer.encode` (bench/README.md):
- texts are tokenized in a separate thread, one block ahead of the model;
- batches hold texts of similar length and are small enough that a layer's output stays in the processor's cache;
- on a CPU each core computes its own batch, instead of all cores sharing each matrix.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Protocol
from weakref import WeakSet

import numpy as np

from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo, Vectors
from chunksink.embeddings.errors import EncoderOutOfMemory
from chunksink.embeddings.tokens import Arrays, Layout, TokenWindow, WindowJoiner, batches, cut, padded

_BLOCK_TEXTS = 512
_BLOCK_CHARS = 1_000_000
_FEW_TOKENS = 64
"""A call with at most this many tokens runs in a worker thread, where torch uses one core; in the caller's thread torch
would use all cores. On a busy machine with two cores, such a call took 8 to 15 ms instead of 20 to 41."""


class Runtime(Protocol):
    """A loaded model: from text to token ids, from token ids to vectors. Usable from several threads."""

    @property
    def workers(self) -> int:
        """How many batches to compute at the same time."""

    @property
    def token_budget(self) -> int:
        """The most tokens in a batch."""

    @property
    def width_step(self) -> int:
        """Batches are padded to a multiple of this many tokens."""

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text, uncut and without special tokens."""

    def vectors(self, arrays: Arrays, prompt_length: int) -> Vectors:
        """One row for each row of the input arrays. `prompt_length` includes the special tokens before the prompt; it
        is 0 without a prompt."""

    def preparing_threads(self, workers: int) -> AbstractContextManager[Callable[[], None]]:
        """A context manager for starting the worker threads. It yields a function that each new thread calls first."""

    def was_out_of_memory(self, error: Exception) -> bool:
        """Whether `vectors` failed for lack of memory, so that a smaller batch may succeed. Frees memory that libraries
        keep."""


class TransformerEncoder(Encoder):
    """Encodes with a loaded model. `load_encoder` makes one; usable from several threads."""

    def __init__(
        self,
        runtime: Runtime,
        info: ModelInfo,
        layout: Layout,
        *,
        token_budget: int | None = None,
        workers: int | None = None,
    ) -> None:
        self.info = info
        self._runtime = runtime
        self._layout = layout
        self._budget = token_budget or runtime.token_budget
        self._step = runtime.width_step
        self._workers = workers or runtime.workers
        self._pool_lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        _loaded.add(self)

    def close(self) -> None:
        """Ends the threads; the encoder starts them again when it is used again."""
        with self._pool_lock:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
                self._pool = None

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        """Within each block of texts, the longest come first."""
        blocks = list(_blocks(texts))
        if not blocks:
            return
        tokenized = self._tokenize(texts, prompt, contexts, blocks[0])
        tokens = sum(len(piece.ids) for piece in tokenized.pieces)
        if len(blocks) > 1 or tokens > self._budget:
            yield from self._run_ahead(texts, prompt, contexts, tokenized, blocks[1:])
            return
        for batch in batches(tokenized.pieces, self._budget, self._step):  # a query or two, a short document
            if tokens <= _FEW_TOKENS:
                vectors = self._threads().submit(self._compute, batch, tokenized.prompt_length).result()
            else:
                vectors = self._compute(batch, tokenized.prompt_length)
            yield tokenized.windows.add([piece.position for piece in batch], vectors)

    def _run_ahead(
        self,
        texts: Sequence[str],
        prompt: str,
        contexts: Sequence[str],
        tokenized: _TokenizedBlock,
        following: Sequence[slice],
    ) -> Iterator[EncodedBatch]:
        """Computes the first block, which is tokenized, and those that follow."""
        pool = self._threads()
        running: dict[Future[Vectors], tuple[WindowJoiner, list[TokenWindow]]] = {}
        with ThreadPoolExecutor(1, thread_name_prefix="chunksink-tokenize") as tokenizing:
            try:
                for block in [*following, None]:
                    coming = (
                        None if block is None else tokenizing.submit(self._tokenize, texts, prompt, contexts, block)
                    )
                    for batch in batches(tokenized.pieces, self._budget, self._step):
                        while len(running) >= 2 * self._workers:
                            yield from _finished(running)
                        running[pool.submit(self._compute, batch, tokenized.prompt_length)] = (tokenized.windows, batch)
                    if coming is not None:
                        tokenized = coming.result()
                while running:
                    yield from _finished(running)
            finally:
                for future in running:
                    future.cancel()

    def _tokenize(self, texts: Sequence[str], prompt: str, contexts: Sequence[str], block: slice) -> _TokenizedBlock:
        token_ids, room = self._runtime.token_ids, self._layout.room
        heads = [prompt + context for context in contexts[block]] or [prompt] * len(texts[block])
        bodies = token_ids([head + _encodable(text) for head, text in zip(heads, texts[block], strict=True)])
        prompt_ids = token_ids([prompt])[0] if prompt else []
        pieces: list[TokenWindow] = []
        counts: list[int] = []
        for position, (head, body) in enumerate(zip(heads, bodies, strict=True)):
            prompt_tokens = _common(prompt_ids, body)
            head_tokens = _common(token_ids([head])[0], body) if head != prompt and len(body) > room else prompt_tokens
            inputs = cut(body, prompt_tokens, self._layout, self.info.long_texts, head_tokens - prompt_tokens)
            counts.append(len(inputs))
            pieces += [TokenWindow(position, ids) for ids in inputs]
        special = self._layout.max_length - self._layout.room
        windows = WindowJoiner(counts, [len(body) + special for body in bodies], block.start)
        return _TokenizedBlock(pieces, windows, len(self._layout.prefix) + len(prompt_ids) if prompt else 0)

    def _compute(self, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        """The vectors of a batch. A batch that does not fit into memory is halved."""
        try:
            return self._forward(batch, prompt_length)
        except (RuntimeError, MemoryError) as exc:
            if not self._runtime.was_out_of_memory(exc):
                raise
            if len(batch) == 1:
                raise EncoderOutOfMemory(
                    f"a single text of {len(batch[0].ids)} tokens does not fit into memory"
                ) from exc
        middle = len(batch) // 2
        self._budget = min(self._budget, middle * len(batch[0].ids))
        return np.concatenate([self._compute(half, prompt_length) for half in (batch[:middle], batch[middle:])])

    def _forward(self, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        return self._runtime.vectors(padded(batch, self._layout, self._step), prompt_length)

    def _threads(self) -> ThreadPoolExecutor:
        """A running thread for each worker."""
        with self._pool_lock:
            if self._pool is None:
                with self._runtime.preparing_threads(self._workers) as prepare:
                    pool = ThreadPoolExecutor(self._workers, "chunksink-encode", initializer=prepare)
                    ready = threading.Barrier(self._workers + 1)
                    try:
                        for _ in range(self._workers):
                            pool.submit(ready.wait)
                        ready.wait()
                    except BaseException:  # a thread could not be started
                        ready.abort()
                        pool.shutdown()
                        raise
                self._pool = pool
            return self._pool


_loaded: WeakSet[TransformerEncoder] = WeakSet()
_of_parent: list[TransformerEncoder] = []
"""Never freed in a forked process: OpenVINO would wait for its threads, which exist in the parent only."""
os.register_at_fork(after_in_child=lambda: _of_parent.extend(_loaded))


@dataclass(frozen=True, slots=True)
class _TokenizedBlock:
    """Some consecutive texts, tokenized and cut."""

    pieces: list[TokenWindow]
    windows: WindowJoiner
    prompt_length: int


def _finished(running: dict[Future[Vectors], tuple[WindowJoiner, list[TokenWindow]]]) -> Iterator[EncodedBatch]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        windows, batch = running.pop(future)
        ready = windows.add([piece.position for piece in batch], future.result())
        if ready.positions:
            yield ready


def _blocks(texts: Sequence[str]) -> Iterator[slice]:
    """Blocks of texts that are tokenized and sorted together."""
    start = chars = 0
    for position, text in enumerate(texts):
        if position > start and (position - start >= _BLOCK_TEXTS or chars + len(text) > _BLOCK_CHARS):
            yield slice(start, position)
            start, chars = position, 0
        chars += len(text)
    if start < len(texts):
        yield slice(start, len(texts))


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no tokenizer accepts."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def _common(head: Sequence[int], body: Sequence[int]) -> int:
    """How many tokens both begin with."""
    return sum(takewhile(bool, map(eq, head, body)))
