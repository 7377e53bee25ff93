"""Files below a prefix of a bucket, through obstore, which the extra `s3` installs.

Credentials and endpoint come from the usual environment variables, such as AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL.
obstore repeats a request after a lost connection or a 5xx status. Its errors are translated here, in one place.
"""

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

from chunksink.chunkbus.errors import (
    ExtraMissing,
    StorageConflict,
    StorageDenied,
    StorageEndpointInvalid,
    StorageError,
    extra_needed,
)
from chunksink.chunkbus.storage import BUCKET_SCHEMES, Content, Entry
from chunksink.chunkbus.threads import in_daemon_thread

if TYPE_CHECKING:
    from obstore import Bytes, ObjectMeta, PutMode
    from obstore.store import ObjectStore, RetryConfig

T = TypeVar("T")
RETRIES: "RetryConfig" = {
    "max_retries": 12,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=8), "base": 2},
}
_REQUEST_TIMEOUT = timedelta(minutes=5)
_PART_BYTES = 2**24
_PARTS_AT_ONCE = 4
_READ_AHEAD_BYTES = 2**18
_LISTED_AT_ONCE = 1000
_ADDRESS = re.compile(
    rf"(?P<scheme>{'|'.join(BUCKET_SCHEMES)})://(?P<bucket>[^/?#@:]+)(?P<prefix>(?:/[^?#]*)?)", re.IGNORECASE
)
_S3_ENDPOINTS = ("AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")
"""The variables that obstore reads."""
_ENDPOINT = re.compile(r"https?://(?:[^/?#\s]*@)?(?P<host>[^/?#@\s]+)(?:[/?#]\S*)?", re.IGNORECASE)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName")
_RENEW = "Renew the credentials in the environment, and start the command again"
_REGION = "Set AWS_REGION to the region of the bucket, or correct AWS_ENDPOINT_URL"
_CAUSES: dict[str, tuple[type[StorageError], str, str]] = {
    "ExpiredToken": (StorageDenied, "the credentials have expired", _RENEW),
    "InvalidToken": (StorageDenied, "the session token is not valid", _RENEW),
    "RequestTimeTooSkewed": (StorageDenied, "this machine's clock differs from the storage's", "Correct the clock"),
    "AuthorizationHeaderMalformed": (StorageError, "the region is probably wrong", _REGION),
    "IllegalLocationConstraintException": (StorageError, "the region is wrong", _REGION),
    "PermanentRedirect": (StorageError, "the request was redirected, probably to another region", _REGION),
}
"""What some codes mean, and their remedies."""
_REDIRECT = re.compile(r"redirect|\A30\d", re.IGNORECASE)
_STATUS = re.compile(r"status code: (\d{3}[ \w]*)")
_DENIED = re.compile(
    r"status code: 40[13]\b|169\.254\.169\.254|metadata\.google\.internal|credential|must be specified", re.IGNORECASE
)


class BucketStorage:
    """Files below `s3://BUCKET/PREFIX`, or the same with `gs` or `az`. Opening it makes no request."""

    def __init__(self, address: str) -> None:
        self.address = checked_address(address)
        host = _s3_endpoint_host() if self.address.startswith("s3:") else ""
        self._server = f"the object storage at {host}" if host else "the object storage"
        try:
            from obstore.store import from_url
        except ImportError as error:
            raise ExtraMissing(f"{self.address} is in object storage: {extra_needed('s3')}") from error
        self._store: ObjectStore = self._call(
            "",
            lambda: from_url(
                self.address,
                # Http is allowed, so that the endpoint in the environment decides whether the connection is encrypted.
                client_options={"allow_http": True, "timeout": _REQUEST_TIMEOUT},
                retry_config=RETRIES,
            ),
        )

    def entries(self, folder: str, after: str = "") -> Iterator[Entry]:
        """The files directly in this folder, sorted by name. With `after`, only those whose names come after it."""
        import obstore

        start = len(folder) + 1 if folder else 0
        offset = f"{folder}/{after}".lstrip("/") if after else None
        pages = iter(obstore.list(self._store, folder or None, offset=offset, chunk_size=_LISTED_AT_ONCE))
        while page := self._call(folder, lambda: next(pages, None)):
            for meta in page:
                name = meta["path"][start:]
                if name and "/" not in name and not name.startswith("."):
                    yield _entry(name, meta)

    def stat(self, name: str) -> Entry:
        import obstore

        return _entry(name.rpartition("/")[2], self._call(name, lambda: obstore.head(self._store, name)))

    def read(self, name: str) -> bytes:
        return self.read_version(name)[0]

    def read_version(self, name: str) -> tuple[bytes, str]:
        import obstore

        def read() -> tuple[bytes, str]:
            found = obstore.get(self._store, name)
            return bytes(found.bytes()), f"{found.meta['e_tag'] or ''} {found.meta['version'] or ''}"

        return self._call(name, read)

    def stream(self, name: str) -> Iterator[bytes]:
        """The content, in one request."""
        import obstore

        found = self._call(name, lambda: obstore.get(self._store, name))
        blocks: Iterator[Bytes | bytes] = iter(found.stream(min_chunk_size=_READ_AHEAD_BYTES))
        while block := self._call(name, lambda: bytes(next(blocks, b""))):
            yield block

    def range(self, name: str, start: int, end: int) -> bytes:
        import obstore

        return self._call(name, lambda: bytes(obstore.get_range(self._store, name, start=start, end=end)))

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_RangeReader(self, name, self.stat(name).size), _READ_AHEAD_BYTES))

    def write_if_unchanged(self, name: str, data: bytes, version: str | None) -> None:
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode = "create" if version is None else _condition(version)

        def put() -> bool:
            try:
                obstore.put(self._store, name, data, mode=mode, use_multipart=False)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError) as error:
                if _code_of(error) in _NO_BUCKET:
                    raise
                return False
            return True

        if self._call(name, put):
            return
        # obstore may have repeated a request whose first attempt succeeded.
        with suppress(FileNotFoundError):
            if self.read(name) == data:
                return
        raise StorageConflict(f"another process has changed {self._at(name)} since it was read")

    def write(self, name: str, data: Content) -> None:
        import obstore

        with SpooledTemporaryFile(_PART_BYTES) as spool:
            if not isinstance(data, (bytes, Path)):
                spool.writelines(data)
                spool.seek(0)
            content = data if isinstance(data, (bytes, Path)) else cast(BinaryIO, spool)
            self._call(
                name,
                lambda: obstore.put(self._store, name, content, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE),
            )

    def remove(self, name: str) -> None:
        import obstore

        with suppress(FileNotFoundError):
            self._call(name, lambda: obstore.delete(self._store, name))

    def _at(self, name: str) -> str:
        return f"{self.address}/{name}" if name else self.address

    def _call(self, name: str, request: Callable[[], T]) -> T:
        """Runs a request in another thread, because Ctrl-C would not interrupt a request in this one.

        Replaces obstore's errors, which may show signed URLs, and its panics.
        """
        from obstore.exceptions import BaseError

        try:
            return in_daemon_thread(request).result()
        except (FileNotFoundError, BaseError) as error:
            raise self._translation(name, error) from None
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # its class cannot be imported, and is no Exception
                raise
            raise StorageError(
                f"{self._at(name)}: obstore failed unexpectedly. Check the variables of the object storage in the "
                "environment, then repeat the command"
            ) from None

    def _translation(self, name: str, error: Exception) -> Exception:
        at, code, message = self._at(name), _code_of(error), str(error)
        if code in _NO_BUCKET:
            return StorageError(f"{self.address}: no such bucket ({code}); create it, or correct the name")
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, "No such object", at)
        detail = code or _reason(message)
        cause = _CAUSES.get("PermanentRedirect" if _REDIRECT.search(detail) else code)
        if cause is not None and (cause[2] != _REGION or self.address.startswith("s3:")):
            kind, meaning, remedy = cause
            return kind(f"{at}: {meaning} ({detail}). {remedy}")
        if _DENIED.search(message):
            return StorageDenied(
                f"{at}: access denied ({detail}). Set valid credentials in the environment, such as "
                f"{_VARIABLES[self.address.partition(':')[0]]}, or grant the current ones permission for this request"
            )
        return StorageError(
            f"{at}: {self._server} does not answer as expected ({detail}). Check its endpoint and the network, "
            "then repeat the command"
        )


def checked_address(address: str) -> str:
    """The address without a final slash. StorageError if it lacks a bucket, or has a user, a port or a query."""
    parts = _ADDRESS.fullmatch(address)
    if parts is None:  # the address may contain a secret, so the message does not repeat it
        forms = " or ".join(f"{scheme}://BUCKET/PREFIX" for scheme in BUCKET_SCHEMES)
        raise StorageError(f"an address in object storage must be {forms}; credentials belong in the environment")
    prefix = "/".join(part for part in parts["prefix"].split("/") if part)
    return f"{parts['scheme'].lower()}://{parts['bucket']}/{prefix}".rstrip("/")


def _s3_endpoint_host() -> str:
    """The host of the endpoint in the environment. Empty if there is none, or if there are several: it is not certain
    which one obstore uses. StorageEndpointInvalid if one is no URL."""
    hosts: list[str] = []
    for variable in _S3_ENDPOINTS:
        value = os.environ.get(variable)
        if value == "":
            os.environ.pop(variable, None)  # obstore would take it for an endpoint
        elif value is not None:
            parts = _ENDPOINT.fullmatch(value)
            if parts is None:  # it may contain a secret, so the message does not repeat it
                raise StorageEndpointInvalid(f"{variable} must begin with http:// or https://, then name a host")
            hosts.append(parts["host"])
    return hosts[0] if len(hosts) == 1 else ""


def _entry(name: str, meta: "ObjectMeta") -> Entry:
    tag = (meta["e_tag"] or "").removeprefix("W/").strip('"')
    return Entry(name, meta["size"], tag or meta["last_modified"].isoformat(), meta["last_modified"])


def _condition(version: str) -> "PutMode":
    """Splits a version of `read_version` into tag and generation, which only some providers have."""
    tag, _, generation = version.partition(" ")
    return {"e_tag": tag, "version": generation} if generation else {"e_tag": tag}


def _code_of(error: Exception) -> str:
    found = _CODE.search(str(error))
    return found[1] if found else ""


def _reason(message: str) -> str:
    """obstore's message without addresses and debugging details."""
    first = message.partition("\n\nDebug source")[0]
    status = _STATUS.search(first)
    return status[1] if status else first.rpartition(" - ")[2][:200]


class _RangeReader(io.RawIOBase):
    """One object, read by ranges."""

    def __init__(self, storage: BucketStorage, name: str, size: int) -> None:
        self._storage = storage
        self._name = name
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        end = min(self._position + len(buffer), self._size)
        if end <= self._position:
            return 0
        data = self._storage.range(self._name, self._position, end)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
