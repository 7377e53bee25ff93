"""Loads the configuration: `chunksink.toml`, then the environment, then flags; the later one wins.

Unknown names in the file are refused, because a misspelt setting must not be ignored silently. Unknown environment
variables are allowed: other programs may use the same prefix.
"""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from chunksink.settings.addresses import may_contain_secret
from chunksink.settings.config import (
    CONFIG_FILE,
    MEILI_SINKS,
    MEILI_URL,
    SETTINGS,
    SINK_PREFIX,
    Config,
    Origin,
    variable,
)
from chunksink.settings.errors import ConfigError
from chunksink.settings.fields import read_fields
from chunksink.settings.file_paths import (
    absolute_paths,
    expand_user,
    expanded,
    folder_inside_bus,
    from_folder,
    index_settings_of,
    wrong_address,
)
from chunksink.settings.index_tables import FOLDERS, default_names, for_index, joined, merged, of_index, tables
from chunksink.settings.secret import wrong_token
from chunksink.settings.sink_tables import (
    misspelt_sink,
    suggestion,
    unknown_sink,
    unused_tables,
    with_environment,
)

_WRONG_VALUE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.(?P<name>\w+)(?P<deeper>[^`]*)`)?$", re.DOTALL)


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
    index = flags.get("index") or environment.get(variable("index"))
    placed = from_folder(content, file.parent, FOLDERS)
    for name, table in tables(placed.get("index", {}), "index", file).items():
        _require_known(table, f"[index.{name}] of {file}")
    values, own_of_index = of_index(placed, index, file)
    if not index and content.keys() == {"index"} and (names := ", ".join(content["index"])):
        raise ConfigError(f"{file} contains only indexes ({names}): choose one with --index or {variable('index')}")
    variables = {name: environment[variable(name)] for name in SETTINGS if variable(name) in environment}
    options = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in flags.items()
        if value is not None and name != "index"
    }
    sources = _Sources(
        file,
        dict.fromkeys(own_of_index, f"[index.{index}] of {file}")
        | {name: variable(name) for name in variables}
        | {name: f"the flag or argument `{name}`" for name in options},
    )
    values["sink"] = with_environment(
        values | {"sinks": variables.get("sinks", values.get("sinks"))},
        environment,
        prefix=SINK_PREFIX,
        meilisearch_url=environment.get(MEILI_URL),
        for_index=partial(for_index, index),
    )
    sinks_with_options = frozenset(values["sink"] if isinstance(values["sink"], dict) else ())
    if index:
        values["sink"] = merged(default_names(index), values["sink"])
    values = _overridden(values, variables, options, index)
    values["origin"] = Origin(
        file=str(file),
        sink_tables="this call" if "sink" in options else str(file),
        has_default_sinks="sinks" not in values,
        sinks_with_options=sinks_with_options,
    )
    if environment.get(MEILI_URL):
        values.setdefault("sinks", MEILI_SINKS)
    config = _converted(expanded(values), sources)
    _require_usable(config, unused_tables(placed, flags), sources, environment)
    return _with_settings_file(config, file.parent)


@dataclass(frozen=True)
class _Sources:
    """Where each setting comes from, for messages: the file, unless `others` names another source."""

    file: Path
    others: Mapping[str, str]

    def error(self, name: str, reason: str) -> ConfigError:
        return ConfigError(f"{self.others.get(name, self.file)}: {reason}")


def _overridden(
    values: Mapping[str, Any], variables: Mapping[str, str], options: Mapping[str, Any], index: str | None
) -> dict[str, Any]:
    """The settings of the file, overridden by variables and then by flags. Lists in variables are parsed."""
    overrides: dict[str, Any] = {**variables, **options}
    for name in {"sink", "ray"} & options.keys():
        overrides[name] = merged(values.get(name), options[name])
    for name in {"on_failure", "on_drift"} & variables.keys() - options.keys():
        overrides[name] = _words(name, variables[name])
    if index and "home" in overrides:  # set for all indexes, so each gets a subfolder
        overrides["home"] = joined(overrides["home"], "/", index)
    values = {**values, **overrides}
    if isinstance(values.get("sinks"), str):
        values["sinks"] = [name.strip() for name in values["sinks"].split(",")]
    if isinstance(values.get("tokens"), str):
        pairs = (each.partition("=") for each in values["tokens"].split(",") if each.strip())
        values["tokens"] = {digest.strip(): tenant.strip() for digest, _, tenant in pairs}
    return values


def _converted(values: dict[str, Any], sources: _Sources) -> Config:
    """The settings as a `Config`, or ConfigError about the first wrong type or value."""
    try:
        values["fields"] = read_fields(values.get("fields", {}))
    except ValueError as error:
        raise sources.error("fields", str(error)) from error
    try:
        # Not strict: values in the environment are strings, such as "true" or "8".
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise sources.error(*_wrong_value(error, values)) from error


def _require_usable(config: Config, unused: set[str], sources: _Sources, environment: Mapping[str, str]) -> None:
    """ConfigError about the first name or folder that cannot be used. `unused` are the sinks that have options but are
    not used."""
    if unknown := unknown_sink(unused - {*config.sinks}, str(config.origin.sink_tables)):
        raise ConfigError(unknown)
    if misspelt := misspelt_sink(config.sinks):
        raise sources.error("sinks", misspelt)
    if wrong := wrong_token(config.tokens):
        raise sources.error("tokens", wrong)
    if config.endpoint is not None and may_contain_secret(config.endpoint):
        raise sources.error(
            "endpoint",
            "`endpoint` must be a URL without user, password or parameters: put a key into an environment variable and "
            "name it in `endpoint_key_variable`",
        )
    segments = (config.ray and config.ray.segments) or ""
    if unusable := wrong_address(config.chunks, config.home, segments):
        raise sources.error(*unusable)
    if found := folder_inside_bus(config.chunks, config.home, config.sink):
        name, reason = found
        of_sink = f"{SINK_PREFIX}{name.upper()}_FOLDER".replace("-", "_")
        raise ConfigError(f"{of_sink}: {reason}") if of_sink in environment else sources.error(name, reason)


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


def with_absolute_paths(config: Config) -> Config:
    """The same settings, with paths that stay the same if the process changes its folder."""
    config = _with_settings_file(config, Path.cwd())
    origin, values = config.origin, msgspec.structs.asdict(config)
    values["origin"] = msgspec.structs.replace(origin, file=origin.file and str(Path(origin.file).absolute()))
    nested = {name: values[name] for name in ("ray", "rerank") if values[name] is not None}
    changed = absolute_paths(values | {name: msgspec.structs.asdict(value) for name, value in nested.items()})
    return Config(**changed | {name: type(value)(**changed[name]) for name, value in nested.items()})


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
