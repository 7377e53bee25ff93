"""An encoder behind any OpenAI-compatible endpoint: `POST {url}/embeddings`.

The key is read from an environment variable when it is needed, sent to this address only (redirects are not
followed), and taken out of every message. What the endpoint cannot do now is retried with backoff until the
deadline; what it refuses is never retried: a refused batch is halved until the refused text stands alone.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import orjson

from embeddings.encoder import EncodedBatch, LongTexts, ModelInfo, Precision, Vectors
from embeddings.errors import EndpointDenied, EndpointUnavailable, TextRefused, WrongVectors
from embeddings.fingerprint import fingerprint_of_endpoint
from embeddings.retry import Backoff
from embeddings.tokens import Windows, edges

if TYPE_CHECKING:
    import httpx

_TRANSIENT = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_ABOUT_THE_TEXT = frozenset((400, 413, 422))


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Where an endpoint is and how to speak to it."""

    url: str
    """Up to and without `/embeddings`, as `http://127.0.0.1:11434/v1`."""
    model: str
    key_variable: str | None = None
    """Name of the environment variable that holds the key; None sends no key."""
    dimensions: int | None = None
    """Asked of models that can shorten their vectors; otherwise the model's own."""
    max_chars: int | None = None
    """Texts longer than this are cut or embedded in windows; None leaves long texts to the endpoint."""
    long_texts: LongTexts = "windows"
    query_prompt: str = ""
    passage_prompt: str = ""
    batch_texts: int = 64
    batch_chars: int = 200_000
    concurrency: int = 4
    timeout_seconds: float = 60.0
    """For one try."""
    deadline_seconds: float = 180.0
    """For one batch with all its tries."""
    first_deadline_seconds: float = 20.0
    """For the first question, which tells whether anyone is there."""


class EndpointEncoder:
    """Encodes over HTTP. Usable from several threads."""

    def __init__(self, settings: EndpointSettings, *, client: httpx.Client | None = None) -> None:
        """Asks the endpoint for one vector to learn the dimension, unless the settings name it."""
        parts = urlsplit(settings.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise EndpointDenied("the endpoint's URL must begin with http:// or https:// and name a host")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise EndpointDenied(
                "the endpoint's URL must not carry a user, a password or parameters; "
                "put the key into an environment variable"
            )
        self._settings = settings
        self._url = settings.url.rstrip("/")
        self._client = client
        self._client_lock = threading.Lock()
        dimension = settings.dimensions or self._first_answer().shape[1]
        meaning = {
            "query_prompt": settings.query_prompt,
            "passage_prompt": settings.passage_prompt,
            "max_chars": settings.max_chars,
            "long_texts": settings.long_texts if settings.max_chars else None,
        }
        self.info = ModelInfo(
            name=settings.model,
            fingerprint=fingerprint_of_endpoint(self._url, settings.model, dimension, meaning),
            dimension=dimension,
            max_length=settings.max_chars,
            length_unit="characters",
            precision="float32",
            requested="float32",
            long_texts=settings.long_texts,
            query_prompt=settings.query_prompt,
            passage_prompt=settings.passage_prompt,
            source=self._url,
            device="endpoint",
        )

    @property
    def fingerprint(self) -> str:
        return self.info.fingerprint

    @property
    def dimension(self) -> int:
        return self.info.dimension

    @property
    def max_length(self) -> int | None:
        return self.info.max_length

    @property
    def precision(self) -> Precision:
        return self.info.precision

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of passages, in order; `TextRefused` if the endpoint refuses one of them."""
        return self._gathered(texts, self.info.passage_prompt)

    def encode_query(self, text: str) -> Vectors:
        """The vector of one query."""
        vector: Vectors = self._gathered([text], self.info.query_prompt)[0]
        return vector

    def encode_batches(self, texts: Sequence[str]) -> Iterator[EncodedBatch]:
        """Vectors of passages as answers come in; refused texts are named in `problems`."""
        return self._run(texts, self.info.passage_prompt)

    def close(self) -> None:
        """Closes the connections; the encoder opens them again when it is used again."""
        with self._client_lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _gathered(self, texts: Sequence[str], prompt: str) -> Vectors:
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        for batch in self._run(texts, prompt):
            for problem in batch.problems.values():
                raise TextRefused(problem)
            out[batch.positions] = batch.vectors
        return out

    def _run(self, texts: Sequence[str], prompt: str) -> Iterator[EncodedBatch]:
        windows: list[int] = []
        together = Windows(windows)
        problems: dict[int, str] = {}
        running: dict[Future[tuple[Vectors, dict[int, str]]], list[int]] = {}
        with ThreadPoolExecutor(self._settings.concurrency, "chunksink-endpoint") as pool:
            try:
                for positions, parts in self._batches(texts, prompt, windows):
                    while len(running) >= 2 * self._settings.concurrency:
                        yield from self._finished(running, together, problems, texts)
                    running[pool.submit(self._isolated, parts)] = positions
                while running:
                    yield from self._finished(running, together, problems, texts)
            finally:
                for future in running:
                    future.cancel()

    def _finished(
        self,
        running: dict[Future[tuple[Vectors, dict[int, str]]], list[int]],
        together: Windows,
        problems: dict[int, str],
        texts: Sequence[str],
    ) -> Iterator[EncodedBatch]:
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            positions = running.pop(future)
            vectors, refused = future.result()
            problems |= {positions[number]: problem for number, problem in refused.items()}
            complete = list(together.add(positions, vectors))
            if complete:
                ready = [position for position, _ in complete]
                yield EncodedBatch(
                    ready,
                    np.array([vector for _, vector in complete], dtype=np.float32),
                    [len(texts[position]) for position in ready],
                    {position: problems.pop(position) for position in ready if position in problems},
                )

    def _batches(self, texts: Sequence[str], prompt: str, windows: list[int]) -> Iterator[tuple[list[int], list[str]]]:
        """Requests to send: whose text each part is, and the parts. Fills in the number of windows of each text."""
        positions: list[int] = []
        parts: list[str] = []
        chars = 0
        for position, text in enumerate(texts):
            cut = self._cut(text)
            windows.append(len(cut))
            for part in cut:
                full = len(parts) == self._settings.batch_texts or chars + len(part) > self._settings.batch_chars
                if parts and full:
                    yield positions, parts
                    positions, parts, chars = [], [], 0
                positions.append(position)
                parts.append(prompt + part)
                chars += len(part)
        if parts:
            yield positions, parts

    def _cut(self, text: str) -> list[str]:
        longest = self._settings.max_chars
        if longest is None or len(text) <= longest:
            return [text]
        if self._settings.long_texts == "truncate":
            return [text[:longest]]
        return [text[start:stop] for start, stop in edges(len(text), longest)]

    def _isolated(self, parts: list[str]) -> tuple[Vectors, dict[int, str]]:
        """Vectors of a batch; a row of NaN, and why, for each text that the endpoint refuses."""
        try:
            return self._request(parts, self.dimension), {}
        except TextRefused as exc:
            if len(parts) == 1:
                return np.full((1, self.dimension), np.nan, dtype=np.float32), {0: str(exc)}
        middle = len(parts) // 2
        first, first_refused = self._isolated(parts[:middle])
        second, second_refused = self._isolated(parts[middle:])
        refused = first_refused | {middle + number: problem for number, problem in second_refused.items()}
        return np.concatenate([first, second]), refused

    def _first_answer(self) -> Vectors:
        return self._request(["dimension"], seconds=self._settings.first_deadline_seconds)

    def _request(self, parts: list[str], dimension: int | None = None, seconds: float | None = None) -> Vectors:
        """One batch with all its tries."""
        import httpx

        body: dict[str, Any] = {"model": self._settings.model, "input": parts, "encoding_format": "float"}
        if self._settings.dimensions:
            body["dimensions"] = self._settings.dimensions
        backoff = Backoff(seconds or self._settings.deadline_seconds)
        key = self._key()
        # A lone surrogate has no UTF-8; the endpoint gets the replacement character, as models here do.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        while True:
            asked: float | None = None
            cause: Exception | None = None
            try:
                response = self._open_client().post(
                    f"{self._url}/embeddings",
                    content=content,
                    headers={"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {}),
                    timeout=max(0.1, min(self._settings.timeout_seconds, backoff.remaining)),
                )
            except httpx.TransportError as exc:
                failure, cause = f"{type(exc).__name__}: {exc}", exc
            else:
                if response.status_code == 200:
                    vectors = _vectors(response.content, len(parts))
                    if vectors is not None:
                        return self._checked(vectors, dimension)
                    failure = "an answer that cannot be read"
                elif response.status_code in _TRANSIENT:
                    failure, asked = f"status {response.status_code}", _retry_after(response)
                else:
                    raise self._refusal(response, key)
            if not backoff.pause(asked):
                raise EndpointUnavailable(
                    _without(key, f"the endpoint {self._url} failed {backoff.tries} times, at last with {failure}")
                ) from cause

    def _refusal(self, response: httpx.Response, key: str | None) -> TextRefused | EndpointDenied:
        said = _without(key, response.text[:300].strip())
        if response.status_code in _ABOUT_THE_TEXT:
            return TextRefused(f"the endpoint refused the text (status {response.status_code}): {said}")
        hint = {401: "; is the key right?", 403: "; is the key right?", 404: "; are URL and model right?"}
        return EndpointDenied(
            f"the endpoint {self._url} answered {response.status_code}{hint.get(response.status_code, '')} {said}"
        )

    def _checked(self, vectors: Vectors, dimension: int | None) -> Vectors:
        if dimension is not None and vectors.shape[1] != dimension:
            raise WrongVectors(
                f"the endpoint's model {self._settings.model} now returns {vectors.shape[1]} dimensions "
                f"instead of {dimension}"
            )
        return vectors

    def _key(self) -> str | None:
        variable = self._settings.key_variable
        if variable is None:
            return None
        key = os.environ.get(variable, "").strip()
        if not key:
            raise EndpointDenied(f"the environment variable {variable} holds no key for the endpoint")
        return key

    def _open_client(self) -> httpx.Client:
        import httpx

        with self._client_lock:
            if self._client is None:
                self._client = httpx.Client(follow_redirects=False)
            return self._client


def _vectors(content: bytes, expected: int) -> Vectors | None:
    """The vectors of an answer in the order of the request, or None if it is no such answer."""
    try:
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = json.loads(content)  # takes the NaN that some servers write
        entries = sorted(answer["data"], key=lambda entry: entry["index"])
        if [entry["index"] for entry in entries] != list(range(expected)):
            return None
        vectors = np.array([entry["embedding"] for entry in entries], dtype=np.float32)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return vectors if vectors.ndim == 2 else None


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(max(float(response.headers.get("retry-after", "")), 0.0), 3600.0)
    except ValueError:
        return None


def _without(key: str | None, message: str) -> str:
    return message.replace(key, "[key]") if key else message
