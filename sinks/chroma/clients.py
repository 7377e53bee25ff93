"""Connections to Chroma: a folder in this process, or a server. Beside this file only `errors` and `told` touch the
chromadb package.

Embedded, chromadb keeps one engine a path and process, and an engine does not see what another process wrote to the
vectors. So every writer and every reader gets an engine of its own, by spelling the path its own way; only readers
in the process of an open writer share that writer's engine, which is always current.
"""

import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sinks import places
from sinks.chroma import seal, told
from sinks.chroma.counted import Counting
from sinks.chroma.errors import Address, no_chroma, translated
from sinks.chroma.known import Known
from sinks.errors import BuildMissing, Refused
from sinks.sink import Marker

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

COLLECTION = "chunks"
_ROWS_A_TURN = 1000
"""Of an embedded build that readers may have; they wait for so many to be written, and no longer. One that is being
made nobody reads, and Chroma takes a sixth less time for five times as many."""
_SHAPE = "http://HOST:PORT"
_SPACE = {"hnsw": {"space": "cosine"}}
_PAGE = 5000
_HARMLESS = re.compile(r"([a-z]+://)?[\w.-]*(:\d*)?", re.ASCII)
"""Whatever it is, it holds no password."""
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,399}")  # Chroma takes names of 512

_lock = threading.Lock()
_spellings: dict[Path, dict[int, int]] = {}  # of each folder: spelling -> handles that use it
_writers: dict[Path, int] = {}  # the spelling of the writer in this process


def _nothing() -> None:
    pass


@dataclass
class Handle:
    """An open collection, how many rows it takes at once, and how to let go of it."""

    collection: "Collection"
    most: int
    where: str
    _client: "ClientAPI"
    _release: Callable[[], None]
    _turn: Callable[[], AbstractContextManager[None]] = nullcontext
    _known: Known = field(default_factory=Known)
    _counting: Counting = field(default_factory=Counting)
    parents: dict[str, str] = field(default_factory=dict)
    """The family of each document that answers have named, as long as this is open."""

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around every call of Chroma: its errors become ours, and embedded it is the turn of this process."""
        with self._turn(), translated(self.where):
            yield

    def load(self) -> None:
        """The vectors are about to be loaded, if they are not yet. To be told within `asking`."""
        self._known.load()

    def may_have_moved(self) -> bool:
        """Whether somebody may have written since the vectors were loaded. To be asked within `asking`."""
        return self._known.may_have_moved()

    def metadata(self) -> Mapping[str, Any]:
        """The metadata as Chroma has it now; somebody else may have changed them."""
        with self.asking():
            return self._known.metadata(self._read_metadata)

    def count(self) -> int:
        with self.asking():
            return self._counting.count(self.collection.count)

    def close(self) -> None:
        release, self._release = self._release, _nothing
        release()

    def _read_metadata(self) -> Mapping[str, Any]:
        return _metadata(self._client, self.collection.name)


def _metadata(client: "ClientAPI", collection: str) -> Mapping[str, Any]:
    return client.get_collection(collection, embedding_function=None).metadata or {}


def metadata_of(marker: Marker, dimensions: int | None) -> dict[str, Any]:
    """The marker as metadata of a collection: it goes where the collection goes, whatever it is called."""
    held: dict[str, Any] = {
        "home_id": marker.home_id,
        "build_id": marker.build_id,
        "projection_version": marker.projection_version,
        "stamp": marker.stamp,
    }
    return held if dimensions is None else {**held, "dimensions": dimensions}


class Folder:
    """Embedded: one folder a build below a root. `in_turn` is called at the beginning of every turn, and may end it."""

    def __init__(self, root: Path, in_turn: Callable[[], None] = _nothing) -> None:
        self._root = root
        self._in_turn = in_turn

    def create(self, marker: Marker, dimensions: int | None) -> Handle:
        path = places.folder(self._root, marker.build_id)
        path.mkdir(parents=True, exist_ok=True)
        return self._connect(path, writing=True, made=metadata_of(marker, dimensions))

    def open(self, build_id: str, *, writing: bool) -> Handle:
        return self._connect(places.existing(self._root, build_id), writing=writing)

    def untouched(self, build_id: str) -> seal.Untouched | None:
        """What is known of a build without opening it."""
        return seal.untouched(places.existing(self._root, build_id))

    def builds(self) -> list[str]:
        return places.listing(self._root)

    def address(self, build_id: str) -> dict[str, str]:
        return {"path": str(places.folder(self._root, build_id).absolute()), "collection": COLLECTION}

    def version(self) -> str:
        from importlib.metadata import version

        return f"chromadb {version('chromadb')}, embedded"

    def drop(self, build_id: str) -> None:
        with seal.turn(places.folder(self._root, build_id)):  # a dead run's last call may be under way
            places.remove(self._root, build_id)

    def close(self) -> None:
        pass

    def _connect(self, path: Path, *, writing: bool, made: dict[str, Any] | None = None) -> Handle:
        settings = told.settings()
        unlock = seal.check(path, writing=writing)
        whole = path.resolve()
        spelling, shares = _spell(whole, writing)
        started = True
        turn = partial(self._turn, path, writing)

        def release() -> None:
            try:
                with turn():
                    counted = counting.still() if writing else None
                    metadata = None if counted is None else _metadata(client, COLLECTION)
                    _end(client)
                    if _unspell(whole, spelling, writing) and writing:
                        seal.put(path, counted, metadata)
            finally:
                unlock()

        try:
            with turn(), translated(str(path)):
                counted = seal.counted(path)
                started = False  # chromadb keeps an engine that did not start, too, by the spelling of its path
                client = told.package().PersistentClient(f"{whole}{'/.' * spelling}", settings=settings)
                started = True
                try:
                    collection = _collection(client, COLLECTION, str(path), made)
                    most = client.get_max_batch_size() if made else min(client.get_max_batch_size(), _ROWS_A_TURN)
                    known = Known(path / seal.DATABASE, is_loaded=shares)
                    counting = Counting(path / seal.DATABASE, counted)
                    if writing:
                        seal.lift(path)
                    elif (counted := counting.still()) is not None:
                        seal.note(path, counted)
                except BaseException:
                    _end(client)
                    raise
        except BaseException:
            _unspell(whole, spelling, writing, again=started)
            unlock()
            raise
        return Handle(collection, most, str(path), client, release, turn, known, counting)

    @contextmanager
    def _turn(self, path: Path, writing: bool) -> Iterator[None]:
        with seal.turn(path):
            self._in_turn()
            with nullcontext() if writing else seal.kept(path):
                yield


class Server:
    """A Chroma server: one collection a build. The client's requests end after `timeout` seconds, those of readers
    after `search_timeout`: somebody waits for their answers."""

    def __init__(
        self, url: str, *, prefix: str, headers: dict[str, str] | None, timeout: float, search_timeout: float = 5.0
    ) -> None:
        self._ssl, self._host, self._port = address(url)
        self._where = Address(f"{'https' if self._ssl else 'http'}://{self._host}:{self._port}")
        self._where.secrets = tuple((headers or {}).values())
        if not _PREFIX.fullmatch(prefix):
            raise ValueError(
                f"the prefix {prefix!r} cannot begin the name of a collection: up to 400 of A-Z a-z 0-9 . _ -, "
                "beginning with one of A-Z a-z 0-9"
            )
        for seconds in (timeout, search_timeout):
            if not 0 < seconds < math.inf:
                raise ValueError(f"a timeout of {seconds} seconds: it must be more than 0")
        for name, value in (headers or {}).items():
            if not (name.isascii() and value.isascii() and f"{name}{value}".isprintable() and value == value.strip()):
                raise ValueError(f"the header {name!a} holds what no header can: printable ASCII only")
        self._prefix = f"{prefix}-"
        self._headers = headers or {}
        self._timeout = timeout
        self._search_timeout = min(timeout, search_timeout)

    def create(self, marker: Marker, dimensions: int | None) -> Handle:
        build_id = places.check_build_id(marker.build_id)
        return self._connect(build_id, self._timeout, made=metadata_of(marker, dimensions))

    def open(self, build_id: str, *, writing: bool) -> Handle:
        timeout = self._timeout if writing else self._search_timeout
        return self._connect(places.check_build_id(build_id), timeout)

    def builds(self) -> list[str]:
        found: list[Collection] = []
        with self._client() as client, translated(self._where):
            while True:
                page = client.list_collections(limit=_PAGE, offset=len(found))
                found += page
                if len(page) < _PAGE:
                    break
        # By what they say of themselves: after `a-` the name of one of the prefix `a-b` goes on with `b-`.
        ids = {collection.name: str(_build_in(collection)) for collection in found}
        return sorted(build_id for name, build_id in ids.items() if name == self._prefix + build_id)

    def address(self, build_id: str) -> dict[str, str]:
        return {"url": self._where, "collection": self._prefix + places.check_build_id(build_id)}

    def version(self) -> str:
        with self._client() as client, translated(self._where):
            return f"Chroma at {self._where}, whose API calls itself {client.get_version()}"

    def drop(self, build_id: str) -> None:
        name = self._prefix + places.check_build_id(build_id)
        with self._client() as client:
            try:
                with translated(self._where):
                    collection = client.get_collection(name, embedding_function=None)
                    if _build_in(collection) not in (None, build_id):  # of another prefix
                        return
                    # Row by row: deleting a collection alone leaves its lists behind, and the next collection
                    # of anybody on that server inherits them (chroma-core/chroma#7594).
                    while ids := collection.get(limit=_PAGE, include=[])["ids"]:
                        collection.delete(ids=ids)
                    client.delete_collection(name)
            except BuildMissing:
                pass

    def close(self) -> None:
        pass

    def _connect(self, build_id: str, timeout: float, made: dict[str, Any] | None = None) -> Handle:
        client = self._open(timeout)
        try:
            self._require_chroma(client)
            with translated(self._where):
                collection = _collection(client, self._prefix + build_id, self._where, made)
                self._require(collection, build_id, BuildMissing if made is None else Refused)
                return Handle(collection, client.get_max_batch_size(), self._where, client, partial(_hang_up, client))
        except BaseException:
            _hang_up(client)
            raise

    def _require(self, collection: "Collection", build_id: str, error: type[Refused]) -> None:
        held = _build_in(collection)
        if held not in (None, build_id):
            raise error(
                f"collection {collection.name} of Chroma at {self._where} is build {held} of another prefix, "
                f"not {build_id}: choose another prefix"
            )

    def _require_chroma(self, client: "ClientAPI") -> None:
        """Chroma's client takes any JSON for what it asked for, and stumbles over it later."""
        with translated(self._where):
            version: object = client.get_version()
        if not isinstance(version, str):
            raise no_chroma(self._where, f"its version is {version!r:.50}")

    def _open(self, timeout: float) -> "ClientAPI":
        """A client that has not asked the server anything yet: what `chromadb.HttpClient` asks while it is made has
        no timeout, and where it fails the reason is lost."""
        import httpx

        told.package()
        from chromadb.api import ServerAPI
        from chromadb.api.client import Client
        from chromadb.api.shared_system_client import SharedSystemClient

        settings = told.settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=self._host,
            chroma_server_http_port=self._port,
            chroma_server_ssl_enabled=self._ssl,
            chroma_server_ssl_verify=self._ssl,  # else all certificates are read for nothing, some 50 ms
            chroma_server_headers=dict(self._headers),
        )
        client = Client.__new__(Client)
        SharedSystemClient.__init__(client, settings)
        client._server = client._system.instance(ServerAPI)  # type: ignore[type-abstract]
        client._server._session.timeout = httpx.Timeout(timeout)  # type: ignore[attr-defined]
        return client

    @contextmanager
    def _client(self) -> Iterator["ClientAPI"]:
        client = self._open(self._timeout)
        try:
            self._require_chroma(client)
            yield client
        finally:
            _hang_up(client)


def address(url: str) -> tuple[bool, str, int]:
    """Whether it is https, the host and the port. Nothing of it that could be a password is in the message."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ValueError(f"that is no address of a Chroma server: {_SHAPE}") from None  # it quotes what it was given
    if "@" in parts.netloc:
        raise ValueError(f"with user or password that is no address of a Chroma server: {_SHAPE}, and `token_variable`")
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError(f"{url if _HARMLESS.fullmatch(url) else 'that'} is no address of a Chroma server: {_SHAPE}")
    if parts.path.strip("/") or "?" in url or "#" in url:
        raise ValueError(f"with a path that is no address of a Chroma server: {_SHAPE}")
    ssl = parts.scheme == "https"
    return ssl, host, (443 if ssl else 8000) if port is None else port


def _hang_up(client: Any) -> None:
    """Chroma's client would leave its connection to the server open until somebody collects it."""
    session = client._server._session
    _end(client)
    session.close()


def _end(client: Any) -> None:
    client.close()  # not in the interface that chromadb's functions promise


def _collection(client: "ClientAPI", name: str, where: str, made: dict[str, Any] | None) -> "Collection":
    """The collection; where `made` is given and there is none, a new one that bears it as metadata."""
    try:
        with translated(where):
            return client.get_collection(name, embedding_function=None)
    except BuildMissing:
        if made is None:
            raise
    return client.create_collection(name, metadata=made, configuration=_SPACE, embedding_function=None)  # type: ignore[arg-type]


def _build_in(collection: "Collection") -> Any:
    """The id of the build that a collection says it is; None where it says nothing."""
    return (collection.metadata or {}).get("build_id")


def _spell(path: Path, writing: bool) -> tuple[int, bool]:
    """The spelling, and whether it is that of an open writer, whose engine is there already."""
    with _lock:
        used = _spellings.setdefault(path, {})
        theirs = _writers.get(path) if not writing else None
        # Never as it is written: so another's client may have it, whatever its settings.
        free = next(number for number in range(1, len(used) + 2) if number not in used)
        spelling = free if theirs is None else theirs
        used[spelling] = used.get(spelling, 0) + 1
        if writing:
            _writers[path] = spelling
        return spelling, theirs is not None


def _unspell(path: Path, spelling: int, writing: bool, *, again: bool = True) -> bool:
    """Give a spelling back, if anybody may have it `again`; true when nobody in this process writes the folder any
    more."""
    with _lock:
        used = _spellings[path]
        used[spelling] -= 1 if again else 0
        if not used[spelling]:
            del used[spelling]
        if writing and _writers.get(path) == spelling:
            del _writers[path]
        return path not in _writers
