"""The configuration: `chunksink.toml`, then the environment, then flags; the later one wins.

Unknown names in the file are refused, because a misspelt setting must not be ignored silently. Unknown environment
variables are allowed: other programs may use the same prefix.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from chunksink.chunkbus.storage import is_bucket
from chunksink.settings.errors import ConfigError
from chunksink.settings.fields import FieldOptions, read_fields
from chunksink.settings.file_paths import (
    expand_user,
    expanded,
    folder_inside_bus,
    from_folder,
    index_settings_of,
    wrong_address,
)
from chunksink.settings.ray import RayOptions
from chunksink.settings.rerank import RerankOptions
from chunksink.settings.secret import wrong_token
from chunksink.settings.sink_tables import (
    misspelt_sink,
    nearest,
    suggestion,
    unknown_sink,
    unused_tables,
    with_environment,
)

if TYPE_CHECKING:
    from chunksink.chunkbus.layout import BusRoot

CONFIG_FILE = "chunksink.toml"
PREFIX = "CHUNKSINK_"
MEILI_URL = "MEILI_URL"
"""If it is set, Meilisearch is the default keyword sink."""
_SINK_PREFIX = f"{PREFIX}SINK_"
_MEILI_SINKS = ("meilisearch", "chroma")
_FOLDERS = {"chunks": "chunks", "home": ".chunksink"}
_INDEX_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,60}")
_WRONG_VALUE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.(?P<name>\w+)(?P<deeper>[^`]*)`)?$", re.DOTALL)
_NAMES_IN_ENGINES = {
    ("meilisearch", "index"): "chunks",
    ("chroma", "prefix"): "chunksink",
    ("postgres", "schema"): "chunksink",
}
"""Names in an engine, and their defaults. Two homes that use the same engine need different ones."""


FolderName = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Arguments = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. Relative folders in the file start at its folder, all others at the current one."""

    chunks: FolderName = _FOLDERS["chunks"]
    home: FolderName = _FOLDERS["home"]
    require_source_checksum: bool = False
    model: Name = "sentence-transformers/all-MiniLM-L6-v2"
    model_cache: FolderName | None = None
    precision: Literal["auto", "float32", "bfloat16", "int8"] = "auto"
    long_texts: Literal["windows", "truncate"] = "windows"
    max_length: Count | None = None
    dimensions: Count | None = None
    embed_context: Literal["title, headings", ""] = "title, headings"
    query_prompt: str | None = None
    passage_prompt: str | None = None
    endpoint: Name | None = None
    endpoint_key_variable: Name | None = None
    endpoint_dimensions: Count | None = None
    fusion_weight: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    token_price: Annotated[float, msgspec.Meta(ge=0)] | None = None
    sinks: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("fts", "chroma")
    sink: dict[str, dict[str, Any]] = {}
    fields: dict[str, FieldOptions] = {}
    rerank: RerankOptions | None = None
    engine: Literal["local", "ray"] = "local"
    ray: RayOptions | None = None
    tenants: Literal["optional", "required"] = "optional"
    tokens: dict[str, Name] = {}
    patience: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    documents_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    on_failure: Arguments | None = None
    on_drift: Arguments | None = None
    notify_timeout: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    # The rest is no setting: `load_config` adds it.
    has_default_sinks: bool = False
    """Whether no setting names the sinks, so that they depend on MEILI_URL."""
    file: str | None = None
    """The file that was read, or would have been if it existed; None for a configuration made in Python."""
    source_of_sink_tables: str | None = None
    """Where the options of sinks come from, for messages."""

    @property
    def bus(self) -> "BusRoot":
        """The chunks, in a folder or a bucket."""
        from chunksink.chunkbus.layout import BusRoot

        return BusRoot.at(self.chunks, self.home_path)

    @property
    def home_path(self) -> Path:
        return Path(self.home)

    @property
    def model_cache_path(self) -> Path | None:
        """None for the user's cache folder."""
        return Path(self.model_cache) if self.model_cache else None

    @property
    def segments(self) -> str:
        """The folder or bucket of vector segments, absolute."""
        place = (self.ray and self.ray.segments) or f"{self.home}/segments"
        return place if is_bucket(place) else str(Path(place).absolute())

    @property
    def why_these_sinks(self) -> str | None:
        """Why MEILI_URL decides the sinks; None if it does not."""
        if not self.has_default_sinks or self.sinks != _MEILI_SINKS:
            return None
        return (
            f"the sinks are {' and '.join(_MEILI_SINKS)} because {MEILI_URL} is set and no setting names sinks: "
            f"set `sinks` in {CONFIG_FILE}, or {variable('sinks')}, to choose others"
        )


SETTINGS = Config.__struct_fields__[:-3]
"""The names that a configuration may contain."""


def config_file(place: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The configuration file: `place` (a file or its folder), else `CHUNKSINK_CONFIG`, else the current folder's."""
    environment = os.environ if environment is None else environment
    named = place if place is not None else environment.get(variable("config"))
    if not named:
        return Path(CONFIG_FILE)
    if not isinstance(named, str | os.PathLike):
        raise ConfigError(f"{named!r:.100} is not a path: name a configuration file or its folder")
    path = Path(expand_user(os.fspath(named)))
    if path.is_dir():
        return path / CONFIG_FILE
    if not path.exists():
        raise ConfigError(f"no configuration at {path}: name a file or its folder; `chunksink init` writes one")
    return path


def load_config(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, place: Path | str | None = None
) -> Config:
    """The configuration in force, with the file that `config_file` finds. A flag that is None was not set."""
    environment = os.environ if environment is None else environment
    _require_known(flags, "this call", ("index",))
    file = config_file(place, environment)
    content = _read_file(file)
    values = from_folder(content, file.parent, _FOLDERS)
    unused = unused_tables(values, flags)
    index = flags.get("index") or environment.get(variable("index"))
    index_table = _index_table(values.pop("index", {}), index, file)
    values = _with_index(values, index_table, index, file) if index else values
    if not index and content.keys() == {"index"} and (names := ", ".join(content["index"])):
        raise ConfigError(f"{file} contains only indexes ({names}): choose one with --index or {variable('index')}")
    variables = {name: environment[variable(name)] for name in SETTINGS if variable(name) in environment}
    values["sink"] = with_environment(
        values | {"sinks": variables.get("sinks", values.get("sinks"))},
        environment,
        prefix=_SINK_PREFIX,
        meilisearch_url=environment.get(MEILI_URL),
        for_index=partial(_for_index, index),
    )
    options = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in flags.items()
        if value is not None and name != "index"
    }
    sources = (
        dict.fromkeys(index_table, f"[index.{index}] of {file}")
        | {name: variable(name) for name in variables}
        | {name: f"the flag or argument `{name}`" for name in options}
    )
    for name in options.keys() & {"sink", "ray"}:
        options[name] = _merged(values.get(name), options[name])
    overrides = variables | options
    if index and "home" in overrides:  # set for all indexes, so each gets a subfolder
        overrides["home"] = _joined(overrides["home"], "/", index)
    values |= overrides
    if isinstance(values.get("sinks"), str):
        values["sinks"] = [name.strip() for name in values["sinks"].split(",")]
    values |= {
        name: _words(name, variables[name]) for name in {"on_failure", "on_drift"} & variables.keys() - options.keys()
    }
    if isinstance(values.get("tokens"), str):
        pairs = (each.partition("=") for each in values["tokens"].split(",") if each.strip())
        values["tokens"] = {digest.strip(): tenant.strip() for digest, _, tenant in pairs}
    values["has_default_sinks"] = "sinks" not in values
    values["file"] = str(file)
    values["source_of_sink_tables"] = source_of_tables = "this call" if "sink" in options else str(file)
    if environment.get(MEILI_URL):
        values.setdefault("sinks", _MEILI_SINKS)
    values = expanded(values)
    try:
        values["fields"] = read_fields(values.get("fields", {}))
    except ValueError as error:
        raise ConfigError(f"{sources.get('fields', file)}: {error}") from error
    try:
        # Not strict: values in the environment are strings, such as "true" or "8".
        config = msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        name, reason = _wrong_value(error, values)
        raise ConfigError(f"{sources.get(name, file)}: {reason}") from error
    if unknown := unknown_sink(unused - {*config.sinks}, source_of_tables):
        raise ConfigError(unknown)
    if misspelt := misspelt_sink(config.sinks):
        raise ConfigError(f"{sources.get('sinks', file)}: {misspelt}")
    if wrong := wrong_token(config.tokens):
        raise ConfigError(f"{sources.get('tokens', file)}: {wrong}")
    if unusable := wrong_address(config.chunks, config.home):
        name, reason = unusable
        raise ConfigError(f"{sources.get(name, file)}: {reason}")
    if found := folder_inside_bus(config.chunks, config.home, config.sink):
        name, reason = found
        of_sink = f"{_SINK_PREFIX}{name.upper()}_FOLDER".replace("-", "_")
        raise ConfigError(f"{of_sink if of_sink in environment else sources.get(name, file)}: {reason}")
    return _with_settings_file(config, file.parent)


def _wrong_value(error: msgspec.ValidationError, values: Mapping[str, Any]) -> tuple[str, str]:
    """Which setting is wrong, and the allowed values. Unknown names were refused before."""
    found = _WRONG_VALUE.match(str(error))
    if found is None or (name := found["name"]) is None:
        return "", str(error)
    what, path = found["what"], found["deeper"]
    hint = get_type_hints(Config).get(name)
    if name == "sink" and not path:
        reason = '`sink` contains tables, such as [sink.fts]; to choose sinks, set `sinks`, as in sinks = ["fts"]'
    elif name == "sinks" and "length" in what:
        reason = '`sinks` must name at least one sink: sinks = ["fts"], or `fts,chroma` in the environment'
    elif get_origin(hint) is Literal:
        wrong = repr(values[name]) if isinstance(values[name], str) else json.dumps(values[name], default=str)
        choices = ", ".join(choice if choice.isidentifier() else f'"{choice}"' for choice in get_args(hint))
        reason = f"`{name}` must be one of {choices}, not {wrong:.100}"
    else:
        reason = f"`{name}{path}`: {what}"
    return name, reason


def _words(name: str, value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ConfigError(f"{variable(name)}: {error}") from error


def _with_settings_file(config: Config, folder: Path) -> Config:
    table = config.sink.get("meilisearch", {})
    file = index_settings_of(folder)
    if file is None or "settings_file" in table or "meilisearch" not in config.sinks:
        return config
    return msgspec.structs.replace(config, sink={**config.sink, "meilisearch": {**table, "settings_file": file}})


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Variables with our prefix that name no setting. They are allowed, since other programs may use the prefix."""
    settings = _variables()
    names = sorted(os.environ if environment is None else environment)
    return [
        name for name in names if name.startswith(PREFIX) and name not in settings and not name.startswith(_SINK_PREFIX)
    ]


def nearest_variable(name: str) -> str | None:
    """The variable that was probably meant."""
    return nearest(name, sorted(_variables()), cutoff=0.85)


def _variables() -> set[str]:
    return {variable(setting) for setting in (*SETTINGS, "config", "index")}


def _index_table(content: Any, index: str | None, file: Path) -> dict[str, Any]:
    """The table of the chosen index, after a check of all of them; empty if none is chosen."""
    tables = _tables(content, "index", file)
    for name, table in tables.items():
        _require_known(table, f"[index.{name}] of {file}")
    if not index:
        return {}
    if index not in tables:
        raise ConfigError(f"{file} has no [index.{index}]; it has: {', '.join(tables) or 'none'}")
    if not _INDEX_NAME.fullmatch(index):
        raise ConfigError(
            f"{file}: {index!r} cannot name an index: use up to 61 letters, digits and hyphens, the first no hyphen"
        )
    home = tables[index].get("home")
    same = [name for name, table in tables.items() if name != index and home is not None and table.get("home") == home]
    if same:
        raise ConfigError(f"{file}: [index.{index}] and [index.{same[0]}] have the same home; each needs its own")
    return tables[index]


def _with_index(shared: dict[str, Any], index_table: dict[str, Any], index: str, file: Path) -> dict[str, Any]:
    """The settings of one index: those of its table override the shared ones."""
    shared_sinks, own_sinks = (_tables(table.get("sink", {}), "sink", file) for table in (shared, index_table))
    defaults = {sink: {option: default} for (sink, option), default in _NAMES_IN_ENGINES.items()}
    separate = {
        sink: {option: _for_index(index, sink, option, value) for option, value in table.items()}
        for sink, table in _merged(defaults, shared_sinks).items()
    }
    home = _joined(shared.get("home", _FOLDERS["home"]), "/", index)
    fields = _merged(shared.get("fields", {}), index_table.get("fields", {}))
    return {**shared, "home": home, **index_table, "sink": _merged(separate, own_sinks), "fields": fields}


def _for_index(index: str | None, sink: str, option: str, value: Any) -> Any:
    """A shared option, made unique for one index: indexes must not share folders, or names in engines."""
    if index and (sink, option) in _NAMES_IN_ENGINES:
        return _joined(value, "-", index)
    return _joined(value, "/", index) if index and option == "folder" else value


def _joined(value: Any, sign: str, name: str) -> Any:
    return f"{value}{sign}{name}" if isinstance(value, str) and value else value  # other types are refused later


def _merged(lower: Any, upper: Any) -> Any:
    """Two nested tables merged entry by entry; `upper` overrides `lower`."""
    if not (isinstance(lower, dict) and isinstance(upper, dict)):
        return upper
    return {**lower, **{name: _merged(lower.get(name), value) for name, value in upper.items()}}


def _tables(value: Any, name: str, file: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise ConfigError(f"{file}: `{name}` must contain tables, such as [{name}.NAME]")
    return value


def _require_known(values: Mapping[str, Any], where: str, also: tuple[str, ...] = ()) -> None:
    known = (*SETTINGS, *also)
    if unknown := sorted(set(values) - {*known}):
        names = ", ".join(f"`{name}`{suggestion(name, known)}" for name in unknown)
        raise ConfigError(f"{where}: unknown setting {names}; the settings are {', '.join(known)}")


def _read_file(file: Path) -> dict[str, Any]:
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
        what = str(error).replace("at end of document", f"at line {line}, column {column}, the end of the file")
        raise ConfigError(f"{file} is not valid TOML: {what}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    _require_known(values, str(file), ("index",))
    return values
