"""One Meilisearch server: a pooled connection for documents, tasks and searches; the official client for the rest.

Documents do not use that client, because it opens one connection per call and cannot send prepared NDJSON.
"""

import re
import select
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chunksink.settings.addresses import server_address
from chunksink.settings.secret import checked
from chunksink.sinks.errors import BuildMissing, Refused, RefusedData, on_failure
from chunksink.sinks.meilisearch.errors import answer_error, not_meilisearch, translate_errors

if TYPE_CHECKING:
    import httpx
    import meilisearch

OLDEST = (1, 21)
TESTED = "1.21.0"
PANICS = "1.45.0"
"""This version crashes on our requests."""
_UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Meilisearch sends compressed answers in parts, and waits for a confirmation between them: 45 ms for each request."""
_PIECE = 16 * 2**10  # small enough to be sent without blocking if the socket has room


class Connection:
    """Usable from several threads. Connects at the first call, which also checks the version."""

    def __init__(self, url: str, key: str | None, *, timeout: float = 60.0) -> None:
        if server_address(url) is None:
            raise ValueError(
                "the address of Meilisearch must be http://HOST:PORT, without user, password or parameters. The key "
                "goes into an environment variable"
            )
        self.where = url.rstrip("/")
        self._key = checked(key or "", "the key of Meilisearch") or None
        self._timeout = timeout

    @cached_property
    def http(self) -> "httpx.Client":
        client = self._client()
        with on_failure(client.close):
            with self.translate_errors():
                answer = client.get("/version")
            self._check(answer)
        return client

    @cached_property
    def _payloads(self) -> "httpx.Client":
        """One connection per payload: after a refusal the rest of the payload is unread, and blocks the connection."""
        import httpx

        _ = self.http  # checks the version
        return self._client(limits=httpx.Limits(max_keepalive_connections=0))

    def _client(self, **options: Any) -> "httpx.Client":
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        headers |= _UNCOMPRESSED
        is_encrypted = urlsplit(self.where).scheme == "https"  # only https needs certificates: loading takes 50 ms
        return httpx.Client(base_url=self.where, headers=headers, timeout=self._timeout, verify=is_encrypted, **options)

    @cached_property
    def control(self) -> "meilisearch.Client":
        import meilisearch

        _ = self.http  # checks the version
        timeout = max(1, round(self._timeout))
        return meilisearch.Client(self.where, self._key, timeout=timeout, custom_headers=_UNCOMPRESSED)

    def get(self, path: str, **parameters: Any) -> Any:
        with self.translate_errors():
            return self._read(self.http.get(path, params=parameters))

    def send(self, path: str, body: Mapping[str, Any] | list[Any]) -> Any:
        with self.translate_errors():
            return self._read(self.http.post(path, json=body))

    def send_lines(self, path: str, lines: bytes) -> Any:
        with self.translate_errors():
            watched = _InterruptibleBody(lines, self._timeout)
            headers = {"content-type": "application/x-ndjson", "content-length": str(len(lines))}
            answer = self._payloads.post(
                path, content=iter(watched), headers=headers, extensions={"trace": watched.listen}
            )
            return self._read(answer)

    def translate_errors(self) -> AbstractContextManager[None]:
        return translate_errors(self.where, self._key)

    def close(self) -> None:
        self.__dict__.pop("control", None)
        for name in ("http", "_payloads"):
            client = self.__dict__.pop(name, None)
            if client is not None:
                client.close()

    def _read(self, answer: "httpx.Response") -> Any:
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not answer.is_success:
            raise answer_error(answer.status_code, body if isinstance(body, dict) else {}, self.where)
        if not isinstance(body, dict):
            raise not_meilisearch(self.where, f"status {answer.status_code} without a JSON object")
        return body

    def _check(self, answer: "httpx.Response") -> None:
        """Raise `Refused` for an unsupported version, before anything is written."""
        try:
            body = self._read(answer)
        except (RefusedData, BuildMissing) as error:  # a URL that ends in /indexes: `version` is taken for an index
            raise not_meilisearch(self.where, str(error)) from error
        version = str(body.get("pkgVersion", ""))
        found = re.match(r"(\d+)\.(\d+)", version)
        if found is None:
            raise not_meilisearch(self.where, "it reports no version")
        if version == PANICS:
            raise Refused(f"Meilisearch {PANICS} at {self.where} crashes in normal use: use version {TESTED}")
        if (int(found[1]), int(found[2])) < OLDEST:
            raise Refused(f"Meilisearch {version} at {self.where} is too old: use 1.21 or later; {TESTED} is tested")


class _InterruptibleBody:
    """A request body that ends when the server answers. If a body is too large, the server answers early and stops
    reading: a client that continues to write would block and never see the answer."""

    def __init__(self, lines: bytes, timeout: float) -> None:
        self._lines = lines
        self._timeout = timeout
        self._socket: Any = None

    def listen(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._socket = info["return_value"].get_extra_info("socket")
        elif event == "connection.start_tls.started":
            self._socket = None  # with TLS, readable bytes need not be an answer

    def __iter__(self) -> Iterator[bytes]:
        import httpcore

        for start in range(0, len(self._lines), _PIECE):
            if self._is_answered():
                raise httpcore.WriteError("answered before all was sent")  # httpx then reads the answer
            yield self._lines[start : start + _PIECE]

    def _is_answered(self) -> bool:
        """Waits until the socket is readable or writable."""
        if self._socket is None:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        return any(event & select.POLLIN for _, event in poll.poll(self._timeout * 1000))
