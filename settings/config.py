"""The configuration: `chunksink.toml`, then the environment, then flags; the later one wins.

Only the wiring in `chunksink/` reads it; everything else receives values. Unknown names in the file are refused, since
a misspelt setting that is silently ignored is worse than none; in the environment other programs may share the prefix.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

CONFIG_FILE = "chunksink.toml"
PREFIX = "CHUNKSINK_"
_SINK_PREFIX = f"{PREFIX}SINK_"


class ConfigError(Exception):
    """The configuration cannot be used; the message names the place and what is allowed there."""


FolderName = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set. Relative paths are taken from the folder the command runs in."""

    chunks: FolderName = "chunks"
    home: FolderName = ".chunksink"
    require_source_checksum: bool = False
    model: Name = "sentence-transformers/all-MiniLM-L6-v2"
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    long_texts: Literal["windows", "truncate"] = "windows"
    max_length: Count | None = None
    query_prompt: str | None = None
    passage_prompt: str | None = None
    endpoint: Name | None = None
    endpoint_key_variable: Name | None = None
    endpoint_dimensions: Count | None = None
    sinks: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("fts", "chroma")
    sink: dict[str, dict[str, Any]] = {}
    patience: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    documents_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None

    @property
    def chunks_path(self) -> Path:
        return Path(self.chunks)

    @property
    def home_path(self) -> Path:
        return Path(self.home)


# What each setting means, for the documentation; a test sees to it that none is missing.
MEANINGS = {
    "chunks": "the bus root: a folder with `canonical/` and `manifest/`",
    "home": "where chunksink keeps its own records, the cache of vectors and the embedded index",
    "require_source_checksum": "refuse chunks whose provenance has no `source_checksum`",
    "model": "a folder, a name on the hub (`owner/name` or `owner/name@revision`), or what the endpoint calls it",
    "precision": "`auto` computes in bfloat16 where the hardware does; `float32`; `bfloat16`",
    "long_texts": "texts longer than the model takes: the mean of `windows` over all of it, or `truncate`",
    "max_length": "lowers the model's maximum, in tokens; for an endpoint it is in characters",
    "query_prompt": 'put before queries; otherwise the model\'s own; `""` for none',
    "passage_prompt": "put before chunks; likewise",
    "endpoint": "address of an OpenAI-compatible endpoint, without `/embeddings`, that computes instead",
    "endpoint_key_variable": "name of the environment variable that holds its key",
    "endpoint_dimensions": "asked of models that can shorten their vectors",
    "sinks": "where the index is written: names of sinks, with commas between them in the environment",
    "sink": "options of a sink: a table `[sink.NAME]`, in the environment `CHUNKSINK_SINK_NAME_OPTION`",
    "patience": "seconds for which a call is tried again when an engine does not answer or is overloaded",
    "documents_per_second": "the most that a sink is given on average, for engines that others use too",
}


def load_config(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, file: Path = Path(CONFIG_FILE)
) -> Config:
    """The configuration in force; a flag that is None was not given."""
    environment = os.environ if environment is None else environment
    values = _read_file(file)
    values |= {name: environment[variable(name)] for name in _names() if variable(name) in environment}
    values |= {name: value for name, value in flags.items() if value is not None}
    if isinstance(values.get("sinks"), str):
        values["sinks"] = [name.strip() for name in values["sinks"].split(",")]
    _add_sink_options(values, environment)
    try:
        # Not strict: the environment can only say "true" or "8".
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{error}. Settings come from {file}, {PREFIX}* and flags") from error


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def _add_sink_options(values: dict[str, Any], environment: Mapping[str, str]) -> None:
    """`CHUNKSINK_SINK_MEILISEARCH_URL` is the option `url` of the sink `meilisearch`."""
    given = values.get("sink", {})
    if not isinstance(given, dict):
        return  # refused by its type
    options = {name: dict(table) if isinstance(table, dict) else table for name, table in given.items()}
    for name in environment:
        sink, separator, option = name.removeprefix(_SINK_PREFIX).lower().partition("_")
        if name.startswith(_SINK_PREFIX) and separator and isinstance(options.setdefault(sink, {}), dict):
            options[sink][option] = environment[name]
    values["sink"] = options


def _names() -> tuple[str, ...]:
    return Config.__struct_fields__


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    unknown = sorted(set(values) - set(_names()))
    if unknown:
        raise ConfigError(f"{file} sets {', '.join(unknown)}; it may set {', '.join(_names())}")
    return values
