"""chromadb, imported and set by chunksink alone, and its clients.

Left alone, Chroma would also take its settings from the environment and from a `.env` in the current folder, where
those of other programs are.
"""

import os
import sys
from collections.abc import Mapping
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chunksink.settings.config import ConfigError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.config import Settings

_spellings = count(1)


def package() -> ModuleType:
    """chromadb, imported. It reads those other settings even then, and ends where one makes no sense to it."""
    try:
        import chromadb
    except ValueError as error:
        raise ConfigError(
            f"Chroma's library reads settings from the environment and from {Path('.env').absolute()}, "
            f"and {_why(error)}: change it, or run this in another folder"
        ) from error
    return chromadb


def open_folder(path: Path) -> "ClientAPI":
    """An engine of its own in this process. chromadb keeps one for each spelling of a path, also one that did not
    start: so no spelling is used twice, nor the plain one, which others may use with settings of theirs."""
    spelling = "".join("/." if bit == "1" else "/" for bit in f"{next(_spellings):b}")
    client: ClientAPI = package().PersistentClient(f"{path}{spelling}", settings=_settings())
    return client


def open_server(host: str, port: int, *, ssl: bool, headers: Mapping[str, str], timeout: float) -> "ClientAPI":
    """A client that has not asked the server anything yet: what `chromadb.HttpClient` asks while it is made has
    no timeout, and where it fails the reason is lost."""
    import httpx

    package()
    from chromadb.api import ServerAPI
    from chromadb.api.client import Client
    from chromadb.api.shared_system_client import SharedSystemClient

    settings = _settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI",
        chroma_server_host=host,
        chroma_server_http_port=port,
        chroma_server_ssl_enabled=ssl,
        chroma_server_ssl_verify=ssl,  # else all certificates are read for nothing, some 50 ms
        chroma_server_headers=dict(headers),
    )
    client = Client.__new__(Client)
    SharedSystemClient.__init__(client, settings)
    client._server = client._system.instance(ServerAPI)
    client._server._session.timeout = httpx.Timeout(timeout)  # type: ignore[attr-defined]
    return client


def close_server(client: Any) -> None:
    """Chroma's client would leave its connection to the server open until somebody collects it."""
    session = client._server._session
    client.close()
    session.close()


def module_command(module: str, *arguments: str) -> list[str]:
    """To run a module of this package in a process of its own."""
    # -P: what lies in the current folder must not hide installed packages.
    return [sys.executable, "-P", "-m", module, *arguments]


def module_environment() -> dict[str, str]:
    """For that process: with what is found here, whatever the folder."""
    found = os.pathsep.join(str(Path(path).resolve()) for path in sys.path)
    return {**os.environ, "PYTHONPATH": found}


def _settings(**given: Any) -> "Settings":
    package()
    return _settings_type()(anonymized_telemetry=False, **given)


@cache
def _settings_type() -> "type[Settings]":
    from chromadb.config import Settings

    class GivenSettings(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: Any,
            init_settings: Any,
            env_settings: Any,
            dotenv_settings: Any,
            file_secret_settings: Any,
        ) -> tuple[Any, ...]:
            return (init_settings,)

    return GivenSettings


def _why(error: ValueError) -> str:
    """Never a value: it may be a secret."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        names = ", ".join(str(each["loc"][0]).upper() for each in error.errors() if each["loc"])
        return f"cannot use what is there as {names}"
    return "that file is not in UTF-8" if isinstance(error, UnicodeError) else "cannot read one of them"
