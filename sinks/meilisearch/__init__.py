"""The Meilisearch sink: keyword search by a server, optionally with vectors for the server's hybrid search."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from chunksink.settings.errors import ConfigError
from chunksink.settings.secret import key_in
from chunksink.sinks.meilisearch.build import Limits, MeilisearchBuild
from chunksink.sinks.meilisearch.index_settings import find_settings_file, load_index_settings
from chunksink.sinks.meilisearch.reader import MeilisearchReader
from chunksink.sinks.meilisearch.sink import MeilisearchSink
from chunksink.sinks.registry import read_options, source_of

__all__ = ["MeilisearchBuild", "MeilisearchOptions", "MeilisearchReader", "MeilisearchSink", "open_sink", "options_of"]


class MeilisearchOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The server at `url`; `key_variable` is the environment variable with its key.

    `index` is the name under which other programs search. With `vectors` the server gets our vectors for its hybrid
    search. `settings_file` is the file of index settings (default: meilisearch-settings.json in the current folder,
    else the one in the package). `timeout` and `search_timeout` are seconds per request; `patience` is how many seconds
    the server may run without finishing any task.
    """

    url: str = "http://127.0.0.1:7700"
    key_variable: str = "MEILI_MASTER_KEY"
    index: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,200}$")] = "chunks"
    vectors: bool = True
    settings_file: str | None = None
    patience: Annotated[float, msgspec.Meta(gt=0)] = 900.0
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 60.0
    search_timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0


def options_of(options: Mapping[str, Any]) -> MeilisearchOptions:
    return read_options("meilisearch", MeilisearchOptions, options)


def open_sink(home: Path, options: Mapping[str, Any]) -> MeilisearchSink:
    chosen = options_of(options)
    key = key_in(chosen.key_variable, "option key_variable of the sink meilisearch", needed=False)
    file = find_settings_file(chosen.settings_file)
    settings = load_index_settings(file)
    try:
        return MeilisearchSink(
            chosen.url,
            key,
            settings=settings,
            settings_file=str(file),
            index=chosen.index,
            vectors=chosen.vectors,
            limits=Limits(patience=chosen.patience),
            timeout=chosen.timeout,
            search_timeout=chosen.search_timeout,
        )
    except ValueError as error:
        raise ConfigError(f"{source_of('meilisearch', 'url')}: {error}") from error
