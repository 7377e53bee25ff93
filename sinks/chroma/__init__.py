"""The vector sink on Chroma: embedded (a folder a build) and server (a collection a build), behind the same code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from chunksink.settings.config import ConfigError
from chunksink.settings.secret import key_in
from chunksink.sinks.chroma.build import ChromaBuild
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.chroma.server import Server
from chunksink.sinks.chroma.sink import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.registry import read_options

__all__ = ["ChromaBuild", "ChromaOptions", "ChromaReader", "ChromaSink", "EmbeddedChromaSink", "Server", "open_sink"]


class ChromaOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Embedded in `folder` (without it `chroma` in the home), or on the server at `url`.

    `prefix` begins the names of a server's collections; `token_variable` names the environment variable with a token
    that is sent as `x-chroma-token`. Without `store_text` Chroma holds no text: it loads faster, and other programs
    that open the collection find vectors and metadata only. Requests to a server end after `timeout` seconds, those of
    a search after `search_timeout`.
    """

    folder: str | None = None
    url: str | None = None
    prefix: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,399}$")] = "chunksink"
    token_variable: str | None = None
    store_text: bool = True
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    search_timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0


def open_sink(home: Path, options: Mapping[str, Any]) -> ChromaSink:
    wanted = read_options("chroma", ChromaOptions, options)
    if wanted.url is None:
        folder = Path(wanted.folder) if wanted.folder else home / "chroma"
        return EmbeddedChromaSink(folder, store_text=wanted.store_text)
    if wanted.folder is not None:
        raise ConfigError("the sink chroma is either in a folder or on a server: give `folder` or `url`, not both")
    variable = wanted.token_variable
    token = key_in(variable, "option token_variable of the sink chroma", needed=True) if variable else None
    try:
        server = Server(
            wanted.url,
            prefix=wanted.prefix,
            token=token,
            timeout=wanted.timeout,
            search_timeout=wanted.search_timeout,
        )
    except ValueError as error:
        raise ConfigError(f"options of the sink chroma: {error}") from error
    return ChromaSink(server, store_text=wanted.store_text)
