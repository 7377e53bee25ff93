"""A Chroma server: one collection per build."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from chunksink.settings.addresses import server_address
from chunksink.settings.secret import checked
from chunksink.sinks import build_folders
from chunksink.sinks.chroma.client import close_server, open_server
from chunksink.sinks.chroma.errors import Address, not_chroma, translate_errors
from chunksink.sinks.chroma.handle import Handle, Opened, collection_in, metadata_of
from chunksink.sinks.contract import Marker
from chunksink.sinks.errors import BuildMissing, on_failure, without_secrets

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_PAGE = 5000


class Server:
    """The names of the collections begin with `prefix`. Requests time out after `timeout` seconds, those of readers
    after `search_timeout`."""

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "chunksink",
        token: str | None = None,
        timeout: float = 120,
        search_timeout: float = 5,
    ) -> None:
        self._ssl, self._host, self._port = address(url)
        self._where = Address(f"{'https' if self._ssl else 'http'}://{self._host}:{self._port}")
        token = checked(token or "", "the token of Chroma")
        self._where.secrets = (token,) if token else ()
        self._prefix = f"{prefix}-"
        self._headers = {"x-chroma-token": token} if token else {}
        self._timeout = timeout
        self._search_timeout = min(timeout, search_timeout)

    def create(self, marker: Marker) -> Handle:
        return self._handle(marker.build_id, self._timeout, metadata_of(marker))

    def open(self, build_id: str, *, writing: bool) -> Handle:
        return self._handle(build_id, self._timeout if writing else self._search_timeout)

    def builds(self) -> list[str]:
        found: list[Collection] = []
        with self._client() as client, translate_errors(self._where):
            while True:
                page = client.list_collections(limit=_PAGE, offset=len(found))
                found += page
                if len(page) < _PAGE:
                    break
        # The marker decides: the names of collections with the prefix `a-b-` also begin with `a-`.
        ids = {collection.name: str((collection.metadata or {}).get("build_id")) for collection in found}
        return sorted(build_id for name, build_id in ids.items() if name == self._prefix + build_id)

    def address(self, build_id: str) -> dict[str, str]:
        return {"url": self._where, "collection": self._prefix + build_folders.check_build_id(build_id)}

    def version(self) -> str:
        with self._client() as client, translate_errors(self._where):
            return without_secrets(f"Chroma at {self._where}, API version {client.get_version()}", self._where.secrets)

    def drop(self, build_id: str) -> None:
        name = self._prefix + build_folders.check_build_id(build_id)
        with self._client() as client, suppress(BuildMissing), translate_errors(self._where):
            collection = client.get_collection(name, embedding_function=None)
            # Rows first: deleting only the collection leaves its lists behind, and the next new collection on that
            # server inherits them (chroma-core/chroma#7594).
            while ids := collection.get(limit=_PAGE, include=[])["ids"]:
                collection.delete(ids=ids)
            client.delete_collection(name)

    def _handle(self, build_id: str, timeout: float, initial: dict[str, Any] | None = None) -> Handle:
        handle = Handle(self._where, partial(self._connect, build_folders.check_build_id(build_id), timeout, initial))
        handle.opened()
        return handle

    def _connect(self, build_id: str, timeout: float, initial: dict[str, Any] | None) -> Opened:
        client = self._open(timeout)
        with on_failure(partial(close_server, client)):
            self._require_chroma(client)
            with translate_errors(self._where):
                collection = collection_in(client, self._prefix + build_id, self._where, initial)
                return Opened(collection, client, client.get_max_batch_size(), lambda _: close_server(client))

    def _require_chroma(self, client: "ClientAPI") -> None:
        """Raise `Refused` early: Chroma's client accepts any JSON and fails on it later."""
        with translate_errors(self._where):
            version: object = client.get_version()
            if not isinstance(version, str):
                raise not_chroma(self._where, f"its version is {version!r:.50}")

    def _open(self, timeout: float) -> "ClientAPI":
        return open_server(self._host, self._port, ssl=self._ssl, headers=self._headers, timeout=timeout)

    @contextmanager
    def _client(self) -> Iterator["ClientAPI"]:
        client = self._open(self._timeout)
        try:
            self._require_chroma(client)
            yield client
        finally:
            close_server(client)


def address(url: str) -> tuple[bool, str, int]:
    """Whether it is https, the host, and the port. The error does not repeat the URL, which may contain a password."""
    parts = server_address(url)
    if parts is None or parts.path.strip("/"):
        raise ValueError(
            "url must be http://HOST:PORT (or https), without user, password, path or parameters. A token goes into "
            "the environment variable named by token_variable"
        )
    ssl = parts.scheme == "https"
    return ssl, parts.hostname or "", (443 if ssl else 8000) if parts.port is None else parts.port
