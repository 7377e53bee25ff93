"""One Meilisearch server: a pooled connection for documents, tasks and searches, its own client for control calls.

That client opens a connection a call and knows no NDJSON of ours, so documents do not go through it.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sinks.errors import Refused
from sinks.meilisearch.errors import RefusedData, of_answer, translated

if TYPE_CHECKING:
    import httpx
    import meilisearch

OLDEST = (1, 21)
TESTED = "1.21.0"
PANICS = "1.45.0"
"""It dies of what we send it."""


class Connection:
    """Usable from several threads. Nothing is sent before the first call, which also looks at the version."""

    def __init__(self, url: str, key: str | None, *, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ValueError(
                "the address of Meilisearch is http://HOST:PORT without user and password; the key goes into an "
                "environment variable"
            )
        self.where = url.rstrip("/")
        self._key = key
        self._timeout = timeout

    @cached_property
    def http(self) -> "httpx.Client":
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        client = httpx.Client(base_url=self.where, headers=headers, timeout=self._timeout)
        try:
            with translated(self.where):
                answer = client.get("/version")
            self._check(answer)
        except BaseException:
            client.close()
            raise
        return client

    @cached_property
    def control(self) -> "meilisearch.Client":
        import meilisearch

        _ = self.http  # the version first
        return meilisearch.Client(self.where, self._key, timeout=max(1, round(self._timeout)))

    def get(self, path: str, **parameters: Any) -> Any:
        with translated(self.where):
            return self._read(self.http.get(path, params=parameters))

    def send(self, path: str, body: Mapping[str, Any] | list[Any]) -> Any:
        with translated(self.where):
            return self._read(self.http.post(path, json=body))

    def send_lines(self, path: str, lines: bytes) -> Any:
        with translated(self.where):
            return self._read(self.http.post(path, content=lines, headers={"content-type": "application/x-ndjson"}))

    def close(self) -> None:
        client = self.__dict__.pop("http", None)
        self.__dict__.pop("control", None)
        if client is not None:
            client.close()

    def _read(self, answer: "httpx.Response") -> Any:
        try:
            body = answer.json()
        except ValueError:
            body = {}
        if not answer.is_success:
            raise of_answer(answer.status_code, body if isinstance(body, dict) else {}, self.where)
        return body

    def _check(self, answer: "httpx.Response") -> None:
        """Refuses versions that would not do, while nothing has been written."""
        try:
            body = self._read(answer)
        except RefusedData as error:
            raise Refused(f"what answers at {self.where} is no Meilisearch ({error}): correct the address") from error
        version = str(body.get("pkgVersion", "")) if isinstance(body, dict) else ""
        found = re.match(r"(\d+)\.(\d+)", version)
        if found is None:
            raise Refused(f"what answers at {self.where} is no Meilisearch: correct the address")
        if version == PANICS:
            raise Refused(
                f"Meilisearch {PANICS} at {self.where} dies of ordinary work: use another; {TESTED} is tested"
            )
        if (int(found[1]), int(found[2])) < OLDEST:
            raise Refused(f"Meilisearch {version} at {self.where} is too old: use 1.21 or later; {TESTED} is tested")
