"""One endpoint on the network: a batch of texts goes out, vectors or one of our errors come back.

The key is read from an environment variable when it is needed, sent to this address only (redirects are not
followed), and taken out of every message. What the endpoint cannot do now is tried again until the deadline; what
it refuses is never asked again.

Requests run in an event loop in a thread of its own, because there a request can be broken off at any moment: at
its deadline, even if the server sends a byte every second, and when nobody waits for its answer any more.
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
import numpy as np
import orjson
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_before_delay, wait_random_exponential

from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EndpointDenied, EndpointMisnamed, EndpointUnavailable, TextRefused
from chunksink.embeddings.settings import EncoderSettings
from chunksink.settings.addresses import server_address
from chunksink.settings.config import ConfigError
from chunksink.settings.secret import key_in

_T = TypeVar("_T")
_Client = TypeVar("_Client")

_TRANSIENT = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_PROXIES = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY"
_ABOUT_THE_TEXT = frozenset((400, 413, 422))
_CANCELLED_AGAIN_SECONDS = 1.0
"""A cancellation can be swallowed on its way down, and its request would be waited for."""
_GROWING = wait_random_exponential(multiplier=0.25, max=15.0)
_ODD_ANSWERS = 2
_SHOWN_CHARS = 300
"""How many characters of an endpoint's message are shown."""


class OddAnswer(Exception):
    """The answer is not a list of vectors. Without a message, the answer itself is shown."""


class WrongCount(OddAnswer):
    """Another number of vectors than of texts."""

    def __init__(self, asked: int, got: int) -> None:
        super().__init__(f"asked for {asked:,} vector{'s' * (asked != 1)}, got {got:,}")
        self.got = got


class MayPass(Exception):
    """The endpoint cannot answer now; it may have asked to wait some seconds."""

    def __init__(self, what: str, asked: float | None = None) -> None:
        super().__init__(what)
        self.asked = asked


class Odd(MayPass):
    """An answer without usable vectors, which may cost money: tried once more only."""


class NoVector(Odd):
    """No vector for the only text of a request. If that happens twice, the text is refused."""


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Sizes and times of requests to an endpoint."""

    batch_texts: int = 64
    batch_chars: int = 200_000
    concurrency: int = 4
    timeout_seconds: float = 60.0
    """For one try."""
    deadline_seconds: float = 180.0
    """For one request with all its tries."""
    first_deadline_seconds: float = 20.0
    """For the first request, which shows whether the endpoint can be reached."""


class EndpointConnection:
    """An open connection. `ask` is for the coroutines that `start` runs."""

    def __init__(self, url: str, settings: EncoderSettings, limits: RequestLimits) -> None:
        self._url = url
        self._settings = settings
        self._limits = limits
        self._address = f"{checked_url(url)}/embeddings"
        self._client = client_for(self._address, httpx.AsyncClient, timeout=None)  # deadlines are ours
        self._turns = asyncio.Semaphore(limits.concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chunksink-endpoint", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Runs it; cancelling the future breaks off its requests."""
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
            done, _ = await asyncio.wait(others, timeout=_CANCELLED_AGAIN_SECONDS)
            for task in done:
                _ = task.cancelled() or task.exception()  # looked at, or asyncio would print it
        await self._client.aclose()

    async def ask(self, parts: list[str], seconds: float) -> Vectors:
        """One request with all its tries."""
        body: dict[str, Any] = {"model": self._settings.model, "input": parts, "encoding_format": "float"}
        if self._settings.endpoint_dimensions:
            body["dimensions"] = self._settings.endpoint_dimensions
        # A lone surrogate has no UTF-8; the endpoint gets a question mark in its place.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        retrying = _patience(seconds)
        async with self._turns:
            until = asyncio.get_running_loop().time() + seconds
            try:
                return await retrying(self._try, content, len(parts), until)
            except MayPass as exc:
                if isinstance(exc, NoVector):
                    raise TextRefused(str(exc)) from None
                tries = retrying.statistics["attempt_number"]
                failed = f"failed {tries} times, at last with" if tries > 1 else "failed once, with"
                asked = exc.asked or 0.0
                is_long = asked > max(0.0, until - asyncio.get_running_loop().time())
                wait = f"; it asks to wait {asked:,.0f} s, which is too long" if is_long else ""
                nobody = isinstance(exc.__cause__, httpx.ConnectError)
                remedy = "; is it running, and is the setting `endpoint` its address?" if nobody else ""
                message = f"the endpoint {self._url} {failed} {exc}{wait}{remedy}"
                raise EndpointUnavailable(message) from exc.__cause__

    async def _try(self, content: bytes, expected: int, until: float) -> Vectors:
        key = self._key()
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
        until = min(until, asyncio.get_running_loop().time() + self._limits.timeout_seconds)
        failure: Exception | None = None
        try:
            async with asyncio.timeout_at(until):
                response = await self._client.post(self._address, content=content, headers=headers)
        except (httpx.RequestError, TimeoutError) as exc:
            failure = exc
        if failure is not None:
            if reason := _distrust(failure):
                raise EndpointDenied(
                    f"the certificate of {self._url} is not trusted ({reason}); if the server is yours, set "
                    "SSL_CERT_FILE to the file of your certificate authorities"
                )
            # A server can make the client's own error repeat the key; then that error is not shown.
            words = str(failure) or ("no answer in time" if isinstance(failure, TimeoutError) else "it broke off")
            message = f"{type(failure).__name__}: {words}"
            silent = _without(key, shown := f"{failure} {failure!r}") != shown
            raise MayPass(_without(key, message)) from (None if silent else failure)
        if response.status_code == 200:
            try:
                return vectors_in(response.content, expected)
            except OddAnswer as odd:
                raise _complaint(odd, expected, _message_of(response, key)) from None
        message = _message_of(response, key)
        if response.status_code in _TRANSIENT:
            raise MayPass(f"status {response.status_code}: {message}".removesuffix(": "), _retry_after(response))
        if response.status_code in _ABOUT_THE_TEXT:
            raise TextRefused(f"the endpoint refused the text (status {response.status_code}): {message}")
        hint = {401: "; is the key right?", 403: "; is the key right?", 404: "; are URL and model right?"}
        answer = f"{response.status_code}{hint.get(response.status_code, '')}"
        if elsewhere := response.headers.get("location"):
            answer += f" and names another address, which is not asked: {_without(key, elsewhere)[:_SHOWN_CHARS]}"
        raise EndpointDenied(f"the endpoint {self._url} answered {answer} {message}")

    def _key(self) -> str | None:
        variable = self._settings.endpoint_key_variable
        if variable is None:
            return None
        try:
            return key_in(variable, "option endpoint_key_variable", needed=True)
        except ConfigError as error:
            raise EndpointDenied(str(error)) from error


def client_for(url: str, kind: Callable[..., _Client], *, timeout: float | None) -> _Client:
    """A client as the environment wants it. To read all certificates takes some 50 ms: only where they are needed."""
    encrypted = urlsplit(url).scheme == "https"
    try:
        return kind(follow_redirects=False, timeout=timeout, verify=encrypted)
    except OSError as error:
        message = f"the certificates of this machine cannot be read ({error.strerror or error})"
        raise EndpointDenied(f"{message}: check SSL_CERT_FILE and SSL_CERT_DIR") from error
    except ImportError as error:
        raise EndpointDenied(f"the proxy cannot be used: {error}; check {_PROXIES}") from error
    except (ValueError, httpx.InvalidURL):  # its message may contain a part of a password
        raise EndpointDenied(f"the address of the proxy cannot be read: check {_PROXIES}") from None


def checked_url(url: str) -> str:
    """The URL as we use it. No error repeats it, since it may contain a secret."""
    if server_address(url) is None:
        raise EndpointMisnamed(
            "the endpoint's URL must look like http://127.0.0.1:11434/v1, without a user, a password and parameters; a "
            "key goes into an environment variable"
        )
    return url.rstrip("/")


def _complaint(odd: OddAnswer, expected: int, message: str) -> Exception:
    """A refusal if only some vectors are missing: smaller requests then find the texts without one."""
    if isinstance(odd, WrongCount) and odd.got < expected:
        if odd.got:
            return TextRefused(f"the endpoint left texts out: {odd}")
        if expected == 1:
            return NoVector(f"the endpoint returned no vector: {odd}")
    return Odd(f"an answer that cannot be used: {str(odd) or message or 'it is empty'}")


def _message_of(response: httpx.Response, key: str | None) -> str:
    """The endpoint's own message. It is cut last, since a part of the key would not be found."""
    return " ".join(_without(key, response.text).split())[:_SHOWN_CHARS]


def _distrust(error: BaseException | None) -> str | None:
    """What is wrong with the server's certificate, if that is the reason of the error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


def _retry_after(response: httpx.Response) -> float | None:
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _without(key: str | None, message: str) -> str:
    """The message without the key, also where it is quoted as Python or JSON do."""
    if key:
        quoted = json.dumps(key)[1:-1]
        for form in sorted({key, repr(key)[1:-1], quoted, quoted.replace("/", r"\/")}, key=len, reverse=True):
            message = message.replace(form, "[key]")
    return message


def _patience(seconds: float) -> AsyncRetrying:
    """Calls a coroutine function until it raises no `MayPass`; the last one comes through. For one request."""
    odd = 0

    def is_worth_it(error: BaseException) -> bool:
        nonlocal odd
        odd += isinstance(error, Odd)
        return isinstance(error, MayPass) and odd < _ODD_ANSWERS

    return AsyncRetrying(
        retry=retry_if_exception(is_worth_it), wait=_wait, stop=stop_before_delay(seconds), reraise=True
    )


def _wait(state: RetryCallState) -> float:
    failure = state.outcome.exception() if state.outcome else None
    asked = failure.asked if isinstance(failure, MayPass) else None
    return max(asked or 0.0, _GROWING(state))


def vectors_in(content: bytes, expected: int) -> Vectors:
    """In the order of the request. The caller checks that the numbers are finite."""
    entries = _entries(content)
    if len(entries) != expected:
        raise WrongCount(expected, len(entries))
    if not all("index" in entry for entry in entries):
        raise OddAnswer("a vector has no index")
    placed = {entry["index"]: entry.get("embedding") for entry in entries if isinstance(entry["index"], int)}
    if sorted(placed) != list(range(expected)):
        raise OddAnswer(f"the indexes of its vectors are not 0 to {expected - 1:,}, each once")
    try:
        vectors = np.array([placed[number] for number in range(expected)], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        vectors = np.empty(0, dtype=np.float32)
    if vectors.ndim != 2:
        raise OddAnswer("its vectors are not lists of numbers, all of one length")
    return vectors


def _entries(content: bytes) -> list[dict[str, Any]]:
    try:
        try:
            answer = orjson.loads(content)
        except orjson.JSONDecodeError:
            answer = json.loads(content)  # takes the NaN that some servers write
        entries = answer["data"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise OddAnswer from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise OddAnswer
    return entries
