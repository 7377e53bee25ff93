"""The PostgreSQL sink: keyword and vector search by one server with the extension pgvector.

Documents come in as families and are stored as rows of one table per build. Start with `schema.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from chunksink.chunkbus.errors import extra_needed
from chunksink.settings.errors import ConfigError
from chunksink.sinks.registry import read_options, source_of

if TYPE_CHECKING:
    from chunksink.sinks.postgres.sink import PostgresSink

__all__ = ["PostgresOptions", "open_sink"]

_NAME = msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,40}$")
_SCHEMA = msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,62}$")
"""May contain hyphens: if several indexes are configured, the name of the index is appended."""


class PostgresOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The database at `url`; without it libpq's variables (PGHOST, PGPASSWORD and others) and defaults apply.

    `schema` is the schema of the tables. `language` is the stemmer: english, german or another that PostgreSQL has, or
    simple for none. `halfvec` halves the vector index. `row_security` limits other roles to the tenant in their setting
    `chunksink.tenant_key`. `statement_timeout` is seconds per statement, 0 for no limit; `search_timeout` is seconds
    per search. `pool_size` is how many connections searches use at once.
    """

    url: str = ""
    schema: Annotated[str, _SCHEMA] = "chunksink"
    language: Annotated[str, _NAME] = "english"
    halfvec: bool = False
    row_security: bool = False
    statement_timeout: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 0.0
    search_timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 10.0
    pool_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8


def open_sink(home: Path, options: Mapping[str, Any]) -> "PostgresSink":
    del home
    chosen = read_options("postgres", PostgresOptions, options)
    try:
        from chunksink.sinks.postgres.connection import wrong_url
        from chunksink.sinks.postgres.sink import PostgresSink
    except ImportError as error:
        raise ConfigError(
            f"the sink postgres needs packages that are missing ({error}): {extra_needed('postgres')}"
        ) from error
    if wrong := wrong_url(chosen.url):
        raise ConfigError(f"{source_of('postgres', 'url')}: {wrong}")
    return PostgresSink(chosen)
