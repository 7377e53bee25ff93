"""Requests to an endpoint: sends a batch of texts, and returns vectors or raises one of our errors.

The key is read from an environment variable when it is needed, sent to this address only (redirects are not followed),
and removed from every message. A request is retried after temporary failures until the deadline, once after an unusable
answer, and never after a refusal.

Requests run in an event loop in a separate thread, where they can be cancelled at any moment. A request is cancelled
when its answer is no longer needed, and at its deadline even if the server is still sending.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec
import numpy as np
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_before_delay, wait_random_exponential

from chunksink.chunkbus.wording import counted
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import (
    EmbeddingsError,
    EndpointAddressInvalid,
    EndpointDenied,
    EndpointUnavailable,
    TextRefused,
)
from chunksink.embeddings.settings import EncoderSettings
from chunksink.settings.addresses import server_address
from chunksink.settings.errors import ConfigError
from chunksink.settings.secret import key_in

_T = TypeVar("_T")
_Client = TypeVar("_Client")

_TRANSIENT = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_CHECK = "check SSL_CERT_FILE, SSL_CERT_DIR, HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
_TEXT_REFUSED = frozenset((400, 413, 422))
_CANCEL_AGAIN_SECONDS = 1.0
"""Requests are cancelled again at this interval until they end: a library can swallow a cancellation."""
_BACKOFF = wait_random_exponential(multiplier=0.25, max=15.0)
_UNUSABLE_ANSWERS = 2
_MAX_ANSWER_BYTES = 64 * 2**20
"""Several times the largest answer: 64 vectors of 8,192 numbers with up to 25 characters."""
_SHOWN_CHARS = 300
"""How many characters of an endpoint's message are shown."""


class TransientFailure(Exception):
    """The endpoint cannot answer now. It may have asked to wait some seconds."""

    def __init__(self, what: str, asked_seconds: float = 0.0) -> None:
        super().__init__(what)
        self.asked_seconds = asked_seconds


class UnusableAnswer(TransientFailure):
    """The answer lacks the requested vectors. It may have cost money, so the request is repeated only once."""


class _Entry(msgspec.Struct):
    index: int
    embedding: list[float | None]


class _Answer(msgspec.Struct):
    data: list[_Entry]
    usage: Any = None


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Sizes and times of requests to an endpoint."""

    batch_texts: int = 64
    batch_chars: int = 200_000
    concurrency: int = 4
    timeout_seconds: float = 60.0
    """For one attempt."""
    deadline_seconds: float = 180.0
    """For one request, including retries."""
    first_deadline_seconds: float = 20.0
    """For a request with one word, which shows whether the endpoint works."""


class EndpointConnection:
    """An open connection. `ask` is called by the coroutines that `start` runs."""

    def __init__(
        self, url: str, settings: EncoderSettings, limits: RequestLimits, on_billed: Callable[[int], object]
    ) -> None:
        """`on_billed` gets the number of tokens that an answer charges for."""
        self._url = url
        self._settings = settings
        self._limits = limits
        self._on_billed = on_billed
        self._address = f"{checked_url(url)}/embeddings"
        self._client = client_for(self._address, httpx.AsyncClient, timeout=None)  # we have our own deadlines
        self._turns = asyncio.Semaphore(limits.concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chunksink-endpoint", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Runs a coroutine. Cancelling the future cancels its requests."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancels running requests. Call it once."""
        self.start(self._end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            done, _ = await asyncio.wait(others, timeout=_CANCEL_AGAIN_SECONDS)
            for task in done:
                _ = task.cancelled() or task.exception()  # asyncio prints exceptions that nobody reads
        await self._client.aclose()

    async def ask(self, parts: list[str], seconds: float) -> Vectors:
        """One request, including retries."""
        body: dict[str, Any] = {"model": self._settings.model, "input": parts, "encoding_format": "float"}
        if self._settings.endpoint_dimensions:
            body["dimensions"] = self._settings.endpoint_dimensions
        # A lone surrogate cannot be encoded; a question mark takes its place.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        retrying = _retrying(seconds)
        async with self._turns:
            until = asyncio.get_running_loop().time() + seconds
            try:
                return await retrying(self._try, content, len(parts), until)
            except TransientFailure as error:
                tries = retrying.statistics["attempt_number"]
                failed = f"failed {tries} times. The last failure" if tries > 1 else "failed"
                is_long = error.asked_seconds > max(0.0, until - asyncio.get_running_loop().time())
                wait = f"; it asks to wait {error.asked_seconds:,.0f} s, past the deadline" if is_long else ""
                raise EndpointUnavailable(f"the endpoint {self._url} {failed}: {error}{wait}") from None

    async def _try(self, content: bytes, expected: int, until: float) -> Vectors:
        key = key_of(self._settings.endpoint_key_variable, "option endpoint_key_variable", EndpointDenied)
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        until = min(until, asyncio.get_running_loop().time() + self._limits.timeout_seconds)
        failure: Exception | None = None
        try:
            posted = self._client.stream("POST", self._address, content=content, headers=headers)
            async with asyncio.timeout_at(until), posted as response:
                body = await _body_of(response)
        except (httpx.RequestError, TimeoutError) as error:
            failure = error
        if failure is not None:  # raised here, not above: the client's error may contain the key, and would be chained
            raise self._no_answer(failure, key)
        if response.status_code == 200:
            try:
                vectors, billed = vectors_in(body, expected)
            except (ValueError, RecursionError) as error:
                answer = message_of(body, key) or "it is empty"
                raise UnusableAnswer(f"unusable answer ({error}): {answer}") from None
            self._on_billed(billed)
            return vectors
        message = message_of(body, key)
        if response.status_code in _TRANSIENT:
            what = f"status {response.status_code}: {message}".removesuffix(": ")
            raise TransientFailure(what, _retry_after(response))
        if response.status_code in _TEXT_REFUSED:
            raise TextRefused(f"the endpoint refused the text (status {response.status_code}): {message}")
        hint = {401: "; is the key right?", 403: "; is the key right?", 404: "; are URL and model right?"}
        answer = str(response.status_code)
        if elsewhere := response.headers.get("location"):
            answer += f" with a redirect, which is not followed: {_without(key, elsewhere)[:_SHOWN_CHARS]}"
        answer += f": {message}" if message else ""
        raise EndpointDenied(f"the endpoint {self._url} answered {answer}{hint.get(response.status_code, '')}")

    def _no_answer(self, failure: Exception, key: str | None) -> Exception:
        if reason := _certificate_problem(failure):
            return EndpointDenied(
                f"the certificate of {self._url} is not trusted ({reason}); if the server is yours, set "
                "SSL_CERT_FILE to the file of your certificate authorities"
            )
        what = str(failure) or ("no answer in time" if isinstance(failure, TimeoutError) else "no complete answer")
        if isinstance(failure, httpx.ConnectError):
            what += "; is it running, and is the setting `endpoint` its address?"
        return TransientFailure(_without(key, f"{type(failure).__name__}: {what}"))


def key_of(variable: str | None, option: str, refusal: type[EmbeddingsError]) -> str | None:
    """The key in an environment variable; None if `variable` is None. `option` is its setting, for messages."""
    try:
        return key_in(variable, option, needed=True) if variable is not None else None
    except ConfigError as error:
        raise refusal(str(error)) from error


def client_for(url: str, kind: Callable[..., _Client], *, timeout: float | None) -> _Client:
    """A client with the proxies of the environment. Certificates are read only for https, since that takes 50 ms."""
    encrypted = urlsplit(url).scheme == "https"
    try:
        return kind(follow_redirects=False, timeout=timeout, verify=encrypted)
    except (OSError, ImportError) as error:  # unreadable certificates, or no package for a SOCKS proxy
        reason = getattr(error, "strerror", None) or error
        raise EndpointDenied(f"no connection is possible ({reason}): {_CHECK}") from error
    except (ValueError, httpx.InvalidURL):  # the message may contain part of a password
        raise EndpointDenied(f"the proxy address is invalid: {_CHECK}") from None


def checked_url(url: str, what: str = "the endpoint's URL", example: str = "http://127.0.0.1:11434/v1") -> str:
    """The URL without a final slash. Errors do not repeat the URL, since it may contain a secret."""
    if server_address(url) is None:
        raise EndpointAddressInvalid(
            f"{what} must look like {example}, without user, password or parameters; put a key into an environment "
            "variable"
        )
    return url.rstrip("/")


def message_of(body: bytes, key: str | None) -> str:
    """The endpoint's message, without the key, shortened. In this order, since a shortened key would not be found."""
    return " ".join(_without(key, body.decode("utf-8", "replace")).split())[:_SHOWN_CHARS]


async def _body_of(response: httpx.Response) -> bytes:
    """The decompressed body. UnusableAnswer if it is too large: a small compressed one could fill the memory."""
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > _MAX_ANSWER_BYTES:
            raise UnusableAnswer(f"the answer is larger than {_MAX_ANSWER_BYTES:,} bytes")
    return bytes(body)


def _certificate_problem(error: BaseException | None) -> str | None:
    """Why the server's certificate is not trusted, if that caused the error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _retry_after(response: httpx.Response) -> float:
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return 0.0
    return max(seconds, 0.0) if math.isfinite(seconds) else 0.0


def _without(key: str | None, message: str) -> str:
    """The message without the key, even if the key is escaped as in Python or JSON."""
    if key:
        quoted = json.dumps(key)[1:-1]
        for form in sorted({key, repr(key)[1:-1], quoted, quoted.replace("/", r"\/")}, key=len, reverse=True):
            message = message.replace(form, "[key]")
    return message


def _retrying(seconds: float) -> AsyncRetrying:
    """Retries while a coroutine function raises `TransientFailure`, then raises the last one. The returned object
    counts unusable answers, so each request needs a new one."""
    unusable = 0

    def may_retry(error: BaseException) -> bool:
        nonlocal unusable
        unusable += isinstance(error, UnusableAnswer)
        return isinstance(error, TransientFailure) and unusable < _UNUSABLE_ANSWERS

    return AsyncRetrying(retry=retry_if_exception(may_retry), wait=_wait, stop=stop_before_delay(seconds), reraise=True)


def _wait(state: RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome else None
    asked_seconds = failure.asked_seconds if isinstance(failure, TransientFailure) else 0.0
    return max(asked_seconds, _BACKOFF(state))


def vectors_in(content: bytes, expected: int) -> tuple[Vectors, int]:
    """The vectors of an answer, in the order of the request, and the number of tokens that it charges for.

    ValueError if they are not the requested ones. `TextRefused` if some are missing: smaller requests then show which
    texts have none.
    """
    try:
        answer = msgspec.json.decode(content, type=_Answer)
    except msgspec.DecodeError:
        answer = msgspec.convert(json.loads(content), type=_Answer)  # accepts the NaN that some servers write
    vectors = {entry.index: entry.embedding for entry in answer.data}
    problem = f"asked for {counted(expected, 'vector')}, got {len(answer.data):,}"
    if len(answer.data) < expected and (answer.data or expected == 1):
        raise TextRefused(f"the endpoint left texts out: {problem}")
    if len(answer.data) != expected:
        raise ValueError(problem)
    if vectors.keys() != set(range(expected)):
        raise ValueError(f"expected the indexes 0 to {expected - 1:,}, each exactly once")
    billed = answer.usage.get("total_tokens") if isinstance(answer.usage, dict) else None
    rows = np.array([vectors[number] for number in range(expected)], dtype=np.float32)
    return rows, billed if isinstance(billed, int) else 0
