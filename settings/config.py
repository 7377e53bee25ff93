"""The configuration: `chunksink.toml`, then the environment, then flags; the later one wins.

Only the wiring in `chunksink/` reads it; everything else receives values. Unknown names in the file are refused, since
a misspelt setting that is silently ignored is worse than none; in the environment other programs may share the prefix.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

CONFIG_FILE = "chunksink.toml"
PREFIX = "CHUNKSINK_"


class ConfigError(Exception):
    """The configuration cannot be used; the message names the place and what is allowed there."""


FolderName = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^\x00]*$")]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set. Relative paths are taken from the folder the command runs in."""

    chunks: FolderName = "chunks"
    home: FolderName = ".chunksink"
    require_source_checksum: bool = False
    model: str = "sentence-transformers/all-MiniLM-L6-v2"

    @property
    def chunks_path(self) -> Path:
        return Path(self.chunks)

    @property
    def home_path(self) -> Path:
        return Path(self.home)


def load_config(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, file: Path = Path(CONFIG_FILE)
) -> Config:
    """The configuration in force; a flag that is None was not given."""
    environment = os.environ if environment is None else environment
    values = _read_file(file)
    values |= {name: environment[variable(name)] for name in _names() if variable(name) in environment}
    values |= {name: value for name, value in flags.items() if value is not None}
    try:
        # Not strict: the environment can only say "true" or "8".
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{error}. Settings come from {file}, {PREFIX}* and flags") from error


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


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
