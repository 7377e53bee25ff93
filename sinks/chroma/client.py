"""The import of chromadb, and its clients.

By default chromadb reads settings from the environment and from `.env` in the current folder, which may belong to other
programs. Here only chunksink sets them.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chunksink.settings.errors import ConfigError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.config import Settings

_spellings = count(1)
_importing = RLock()
_process: int | None = None
"""The process that has opened an instance of Chroma."""


def require_own_process() -> None:
    """Raise in a fork: it lacks the threads of Chroma, so a call would wait for them forever."""
    if _process not in (None, os.getpid()):
        raise RuntimeError(
            "this process was forked from one that had opened embedded Chroma, which does not survive a fork: start it "
            "with multiprocessing's spawn method, or use the index in the children only"
        )


def import_chromadb() -> ModuleType:
    """Import chromadb. The import reads settings of other programs, and fails if one is invalid."""
    try:
        with _without_override_checks():
            import chromadb
    except ValueError as error:
        raise ConfigError(
            f"chromadb reads settings from the environment and from {Path('.env').absolute()}, and {_why(error)}. "
            "Change the setting, or run the command in another folder"
        ) from error
    return chromadb


def open_folder(path: Path) -> "ClientAPI":
    """A new instance of Chroma in this process. chromadb caches instances by the text of the path, even ones that
    failed to start. So each call spells the path differently, and never as other code in this process would."""
    global _process
    require_own_process()
    _process = os.getpid()
    chromadb = import_chromadb()
    with _without_override_checks():
        import chromadb.api.rust  # otherwise the client imports it
    spelling = "".join("/." if bit == "1" else "/" for bit in f"{next(_spellings):b}")
    client: ClientAPI = chromadb.PersistentClient(f"{path}{spelling}", settings=_settings())
    return client


def open_server(host: str, port: int, *, ssl: bool, headers: Mapping[str, str], timeout: float) -> "ClientAPI":
    """A client that has not called the server yet. `chromadb.HttpClient()` calls it at once, without a timeout,
    and hides the reason for a failure."""
    import httpx

    import_chromadb()
    from chromadb.api import ServerAPI
    from chromadb.api.client import Client
    from chromadb.api.shared_system_client import SharedSystemClient

    settings = _settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=host,
        chroma_server_http_port=port,
        chroma_server_ssl_enabled=ssl,
        chroma_server_ssl_verify=ssl,  # without TLS, saves the 50 ms of loading certificates
        chroma_server_headers=dict(headers),
    )
    client = Client.__new__(Client)
    SharedSystemClient.__init__(client, settings)
    client._server = client._system.instance(ServerAPI)
    client._server._session.timeout = httpx.Timeout(timeout)  # type: ignore[attr-defined]
    return client


def close_server(client: Any) -> None:
    """Close the client and its connection, which chromadb itself leaves open until garbage collection."""
    session = client._server._session
    client.close()
    session.close()


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this package in its own process."""
    # -P: files in the current folder must not hide installed packages.
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment() -> dict[str, str]:
    """The environment for `module_command`, with the import path of this process."""
    import_path = os.pathsep.join(str(Path(path).resolve()) for path in sys.path)
    return {**os.environ, "PYTHONPATH": import_path}


@contextmanager
def _without_override_checks() -> Iterator[None]:
    """Within this context, the decorator `override` does not compare a method with the one that it overrides. For
    chromadb's own methods, this takes 0.1 s."""
    try:
        module = import_module("overrides.overrides")
        check = module._overrides
    except (ImportError, AttributeError):  # not used by this version of chromadb, or changed
        yield
        return
    with _importing:
        module._overrides = _mark_override  # type: ignore[attr-defined]
        try:
            yield
        finally:
            module._overrides = check  # type: ignore[attr-defined]


def _mark_override(method: Any, *_checks: bool) -> Any:
    method.__override__ = True
    return method


def _settings(**values: Any) -> "Settings":
    import_chromadb()
    return _settings_type()(anonymized_telemetry=False, **values)


@cache
def _settings_type() -> "type[Settings]":
    from chromadb.config import Settings

    class ExplicitSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: Any, init_settings: Any, *_: Any, **_others: Any
        ) -> tuple[Any, ...]:
            return (init_settings,)

    return ExplicitSettings


def _why(error: ValueError) -> str:
    """The reason without the value of a setting, which may be a secret."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        names = ", ".join(str(each["loc"][0]).upper() for each in error.errors() if each["loc"])
        return f"does not accept the value of {names}"
    return "that file is not in UTF-8" if isinstance(error, UnicodeError) else "cannot read one of them"
