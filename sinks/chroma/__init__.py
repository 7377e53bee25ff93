"""The vector sink on Chroma: embedded (one folder per build) or on a server (one collection per build)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from chunksink.settings.errors import ConfigError
from chunksink.settings.secret import key_in
from chunksink.sinks.chroma.build import ChromaBuild
from chunksink.sinks.chroma.reader import ChromaReader
from chunksink.sinks.chroma.server import Server
from chunksink.sinks.chroma.sink import ChromaSink, EmbeddedChromaSink
from chunksink.sinks.registry import read_options, source_of

__all__ = ["ChromaBuild", "ChromaOptions", "ChromaReader", "ChromaSink", "EmbeddedChromaSink", "Server", "open_sink"]


class ChromaOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Embedded in `folder` (default: `chroma` in the home), or on the server at `url`.

    The names of collections on a server begin with `prefix`. `token_variable` is the environment variable with a token
    that is sent as `x-chroma-token`. Without `store_text` writing is faster, but other programs that open the
    collection find only vectors and metadata. `timeout` and `search_timeout` are seconds per request.
    """

    folder: str | None = None
    url: str | None = None
    prefix: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,399}$")] = "chunksink"
    token_variable: str | None = None
    store_text: bool = True
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    search_timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0


def open_sink(home: Path, options: Mapping[str, Any]) -> ChromaSink:
    chosen = read_options("chroma", ChromaOptions, options)
    if chosen.url is None:
        folder = Path(chosen.folder) if chosen.folder else home / "chroma"
        return EmbeddedChromaSink(folder, store_text=chosen.store_text)
    if chosen.folder is not None:
        raise ConfigError("options of the sink chroma: set `folder` or `url`, not both")
    variable = chosen.token_variable
    token = key_in(variable, "option token_variable of the sink chroma", needed=True) if variable else None
    timeouts = {"timeout": chosen.timeout, "search_timeout": chosen.search_timeout}
    try:
        server = Server(chosen.url, prefix=chosen.prefix, token=token, **timeouts)
    except ValueError as error:
        raise ConfigError(f"{source_of('chroma', 'url')}: {error}") from error
    return ChromaSink(server, store_text=chosen.store_text)
