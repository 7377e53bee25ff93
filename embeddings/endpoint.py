"""An encoder that uses an OpenAI-compatible endpoint: `POST {url}/embeddings`.

This module turns texts into requests, and answers into vectors. `connection` makes a request. A batch that the endpoint
refuses is halved until the refused text is alone.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

import numpy as np

from chunksink.embeddings.connection import EndpointConnection, RequestLimits, checked_url
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo, Vectors
from chunksink.embeddings.errors import EndpointDenied, ModelUnsupported, TextRefused, WrongVectors
from chunksink.embeddings.fingerprint import fingerprint_of_endpoint
from chunksink.embeddings.settings import EncoderSettings
from chunksink.embeddings.tokens import WindowJoiner, edges

DEFAULT_MAX_CHARS = 24_000
"""Three characters for each of 8,000 tokens; most models accept 8,192. Many endpoints cut longer texts silently."""

_Answer = tuple[Vectors, dict[int, str]]


class EndpointEncoder(Encoder):
    """Encodes over HTTP. Usable from several threads."""

    def __init__(self, url: str, settings: EncoderSettings, limits: RequestLimits) -> None:
        """Requests one vector, to learn the dimension and to see that the endpoint works."""
        if settings.precision in ("bfloat16", "int8"):
            raise ModelUnsupported("an endpoint decides its precision itself; leave the precision at auto")
        self._settings = settings
        self._limits = limits
        self._url = checked_url(url)
        self._max_chars = settings.max_length or DEFAULT_MAX_CHARS
        self._passage_prompt = settings.passage_prompt or ""
        self._connection: EndpointConnection | None = None
        self._billed_tokens = 0
        self._lock = threading.Lock()
        try:
            connection = self._open()
            dimension = connection.start(self._checked_dimension(connection)).result()
        except BaseException:
            self.close()
            raise
        fingerprinted = {
            "query_prompt": settings.query_prompt or "",
            "passage_prompt": self._passage_prompt,
            "max_chars": self._max_chars,
            "long_texts": settings.long_texts,
        }
        if settings.embed_context:  # without context, the fingerprint is the same as in earlier versions
            fingerprinted["context"] = settings.embed_context
        self.info = ModelInfo(
            name=settings.model,
            fingerprint=fingerprint_of_endpoint(self._url, settings.model, dimension, fingerprinted),
            dimension=dimension,
            max_length=self._max_chars,
            length_unit="characters",
            precision="float32",
            requested="float32",
            long_texts=settings.long_texts,
            query_prompt=settings.query_prompt or "",
            passage_prompt=self._passage_prompt,
            source=self._url,
            device="endpoint",
            embed_context=settings.embed_context,
        )

    @property
    def billed_tokens(self) -> int:
        return self._billed_tokens

    def close(self) -> None:
        """Cancels running requests and closes the connections. The next use opens them again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> EndpointConnection:
        with self._lock:
            if self._connection is None:
                self._connection = EndpointConnection(self._url, self._settings, self._limits, self._add_bill)
            return self._connection

    def _add_bill(self, tokens: int) -> None:
        self._billed_tokens += tokens

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        """Yields batches in the order in which answers arrive."""
        with_contexts = list(zip(contexts or [""] * len(texts), texts, strict=True))
        cuts = [self._cut(context, text) for context, text in with_contexts]
        windows = WindowJoiner(
            [len(parts) for parts in cuts], [len(context) + len(text) for context, text in with_contexts]
        )
        problems: dict[int, str] = {}
        running: dict[Future[_Answer], list[int]] = {}
        connection = self._open()
        try:
            for positions, parts in self._batches(cuts, prompt):
                while len(running) >= 2 * self._limits.concurrency:
                    yield from _finished(running, windows, problems)
                running[connection.start(self._isolated(connection, parts))] = positions
            while running:
                yield from _finished(running, windows, problems)
        finally:
            for future in running:
                future.cancel()

    def _batches(self, cuts: list[list[str]], prompt: str) -> Iterator[tuple[list[int], list[str]]]:
        """For each request: the positions of the texts that its parts come from, and the parts."""
        positions: list[int] = []
        parts: list[str] = []
        chars = 0
        for position, cut in enumerate(cuts):
            for part in cut:
                full = len(parts) == self._limits.batch_texts or chars + len(part) > self._limits.batch_chars
                if parts and full:
                    yield positions, parts
                    positions, parts, chars = [], [], 0
                positions.append(position)
                parts.append(prompt + part)
                chars += len(part)
        if parts:
            yield positions, parts

    def _cut(self, context: str, text: str) -> list[str]:
        """The parts of a text, each after its context. If the text is cut, the context gets at most half of a part."""
        if len(context) + len(text) <= self._max_chars:
            return [context + text]
        context = context[: self._max_chars // 2]
        longest = self._max_chars - len(context)
        if self._settings.long_texts == "truncate" or not text:
            return [context + text[:longest]]
        return [context + text[start:stop] for start, stop in edges(len(text), longest)]

    async def _isolated(self, connection: EndpointConnection, parts: list[str]) -> _Answer:
        """Vectors of a batch, with a row of NaN and a reason for each text that the endpoint refuses."""
        try:
            vectors = await connection.ask(parts, self._limits.deadline_seconds)
        except TextRefused as exc:
            if len(parts) == 1:
                await self._checked_dimension(connection)  # raises if the endpoint refuses every text
                return np.full((1, self.info.dimension), np.nan, dtype=np.float32), {0: str(exc)}
        else:
            if vectors.shape[1] != self.info.dimension:
                raise WrongVectors(
                    f"the endpoint's model {self._settings.model} now returns {vectors.shape[1]} dimensions "
                    f"instead of {self.info.dimension}"
                )
            return vectors, {}
        middle = len(parts) // 2
        first, first_refused = await self._isolated(connection, parts[:middle])
        second, second_refused = await self._isolated(connection, parts[middle:])
        refused = first_refused | {middle + number: problem for number, problem in second_refused.items()}
        return np.concatenate([first, second]), refused

    async def _checked_dimension(self, connection: EndpointConnection) -> int:
        """The dimension of one word's vector; `EndpointDenied` if the endpoint refuses even that word."""
        question = [f"{self._passage_prompt}dimension"]
        try:
            found: int = (await connection.ask(question, self._limits.first_deadline_seconds)).shape[1]
        except TextRefused as exc:
            doubt = "are model and endpoint_dimensions right?"
            raise EndpointDenied(f"the endpoint {self._url} refuses even a single word; {doubt} {exc}") from exc
        asked = self._settings.endpoint_dimensions
        if not found or (asked and found != asked):
            expected = f" instead of the {asked} that endpoint_dimensions asks for" if asked else ""
            raise EndpointDenied(f"the endpoint's model {self._settings.model} returns {found} dimensions{expected}")
        return found


def _finished(
    running: dict[Future[_Answer], list[int]], windows: WindowJoiner, problems: dict[int, str]
) -> Iterator[EncodedBatch]:
    """Yields the batches that are ready, then raises the error of a failed request, if any."""
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in sorted(done, key=lambda each: each.exception() is not None):
        positions = running.pop(future)
        vectors, refused = future.result()
        problems |= {positions[number]: problem for number, problem in refused.items()}
        batch = windows.add(positions, vectors)
        if batch.positions:
            refused_here = [position for position in batch.positions if position in problems]
            yield replace(batch, problems={position: problems.pop(position) for position in refused_here})
