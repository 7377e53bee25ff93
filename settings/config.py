"""The configuration: `chunksink.toml`, then the environment, then flags; the later one wins.

Unknown names in the file are refused, since a misspelt setting that is silently ignored is worse than none; in the
environment other programs may share the prefix.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import structs

from chunksink.chunkbus.errors import ChunksinkError
from chunksink.settings.file_paths import expanded, from_folder, index_settings_of, misplaced, of_user
from chunksink.settings.sink_tables import tables_of, unknown_sink, with_environment

CONFIG_FILE = "chunksink.toml"
PREFIX = "CHUNKSINK_"
MEILI_URL = "MEILI_URL"
"""Where it is set, Meilisearch is the keyword sink by default."""
_OF_SINKS = f"{PREFIX}SINK_"
_LIKELY = 0.85
_WITH_MEILI = ("meilisearch", "chroma")
_FOLDERS = {"chunks": "chunks", "home": ".chunksink"}
_INDEX_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9-]{0,60}")
_SHA256 = re.compile("[0-9a-f]{64}")
_WRONG_VALUE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.(?P<name>\w+)(?P<deeper>[^`]*)`)?$", re.DOTALL)
_OF_NOTHING = sha256(b"").hexdigest()
_NAMES_IN_ENGINES = {("meilisearch", "index"): "chunks", ("chroma", "prefix"): "chunksink"}
"""Options that name what several homes on one server must not share, and their defaults."""


class ConfigError(ChunksinkError):
    """The configuration cannot be used; the message names the place and what is allowed there."""


FolderName = Annotated[str, msgspec.Meta(min_length=1, pattern=r"^[^\x00]*$")]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set. Relative folders are taken from where the command runs, or the file lies."""

    chunks: FolderName = _FOLDERS["chunks"]
    home: FolderName = _FOLDERS["home"]
    require_source_checksum: bool = False
    model: Name = "sentence-transformers/all-MiniLM-L6-v2"
    model_cache: FolderName | None = None
    precision: Literal["auto", "float32", "bfloat16", "int8"] = "auto"
    long_texts: Literal["windows", "truncate"] = "windows"
    max_length: Count | None = None
    query_prompt: str | None = None
    passage_prompt: str | None = None
    endpoint: Name | None = None
    endpoint_key_variable: Name | None = None
    endpoint_dimensions: Count | None = None
    token_price: Annotated[float, msgspec.Meta(ge=0)] | None = None
    sinks: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("fts", "chroma")
    sink: dict[str, dict[str, Any]] = {}
    tenants: Literal["optional", "required"] = "optional"
    tokens: dict[str, Name] = {}
    patience: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    documents_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None

    @property
    def chunks_path(self) -> Path:
        return Path(self.chunks)

    @property
    def home_path(self) -> Path:
        return Path(self.home)

    @property
    def model_cache_path(self) -> Path | None:
        """None for the user's own folder."""
        return Path(self.model_cache) if self.model_cache else None

    @property
    def why_these_sinks(self) -> str | None:
        """Why other sinks than the default ones are used although no setting names them."""
        return None

    def without_meili_url(self) -> "Config":
        """The same with the default sinks."""
        return Config(**structs.asdict(self) | {"sinks": Config().sinks})


class _OfMeiliUrl(Config, frozen=True, forbid_unknown_fields=True):
    """A configuration whose sinks are set by MEILI_URL."""

    @property
    def why_these_sinks(self) -> str | None:
        return (
            f"the sinks are {' and '.join(_WITH_MEILI)} because {MEILI_URL} is set and no setting names them: "
            f"`sinks` in {CONFIG_FILE}, or {variable('sinks')}, does"
        )


# What each setting means, for the documentation; a test sees to it that none is missing.
MEANINGS = {
    "chunks": "the bus root: a folder with `canonical/` and `manifest/`",
    "home": "where chunksink keeps its own records, the cache of vectors and the embedded index",
    "require_source_checksum": "refuse chunks whose provenance has no `source_checksum`",
    "model": "a folder, a name on the hub (`owner/name` or `owner/name@revision`), or what the endpoint calls it",
    "model_cache": "where models are kept that were prepared for this machine; by default in the user's cache folder",
    "precision": "`auto` computes in bfloat16 where the hardware does; `float32`; `bfloat16`; "
    "`int8` is faster and less precise",
    "long_texts": "texts longer than the model takes: the mean of `windows` over all of it, or `truncate`",
    "max_length": "lowers the model's maximum, in tokens; for an endpoint it is in characters",
    "query_prompt": 'put before queries; otherwise the model\'s own; `""` for none',
    "passage_prompt": "put before chunks; likewise",
    "endpoint": "address of an OpenAI-compatible endpoint, without `/embeddings`, that computes instead",
    "endpoint_key_variable": "name of the environment variable that holds its key",
    "endpoint_dimensions": "asked of models that can shorten their vectors",
    "token_price": "what a million tokens cost at the endpoint, for `chunksink plan`",
    "sinks": "where the index is written: names of sinks, with commas between them in the environment; "
    f"where `{MEILI_URL}` is set the default is `meilisearch,chroma`, unless the index already uses `fts`",
    "sink": "options of a sink: a table `[sink.NAME]`, in the environment `CHUNKSINK_SINK_NAME_OPTION`",
    "tenants": "`required` gives a search nothing that does not say for which tenant it asks; else `optional`",
    "tokens": "who may ask `chunksink serve`: sha256 of a token = tenant, `*` for all; in the environment with commas",
    "patience": "seconds for which a call is tried again when an engine does not answer or is overloaded",
    "documents_per_second": "the most that a sink is given on average, for engines that others use too",
}


def config_file(place: Path | str | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """The file that is named, or that of a folder; else the one that `CHUNKSINK_CONFIG` names, or of this folder."""
    environment = os.environ if environment is None else environment
    named = place if place is not None else environment.get(variable("config"))
    if not named:
        return Path(CONFIG_FILE)
    if not isinstance(named, str | os.PathLike):
        raise ConfigError(f"{named!r:.100} is no configuration: name a file, or a folder")
    path = Path(of_user(os.fspath(named)))
    if path.is_dir():
        return path / CONFIG_FILE
    if not path.exists():
        raise ConfigError(f"there is no configuration at {path}: name a file, or a folder; `chunksink init` writes one")
    return path


def load_config(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, place: Path | str | None = None
) -> Config:
    """The configuration in force; `config_file` says of which file. A flag that is None was not given."""
    environment = os.environ if environment is None else environment
    _require_known(flags, "this call", ("index",))
    file = config_file(place, environment)
    read = _read_file(file)
    values = from_folder(read, file.parent, _FOLDERS)
    tables = tables_of(values, flags)
    chosen = flags.get("index") or environment.get(variable("index"))
    values = _of_index(values, chosen, file)
    if not chosen and read.keys() == {"index"} and (names := ", ".join(read["index"])):
        raise ConfigError(f"{file} sets nothing but indexes ({names}): name one, with --index or {variable('index')}")
    above = {name: environment[variable(name)] for name in _names() if variable(name) in environment}
    values["sink"] = with_environment(
        values | {"sinks": above.get("sinks", values.get("sinks"))},
        environment,
        prefix=_OF_SINKS,
        meilisearch_url=environment.get(MEILI_URL),
        of_its_own=partial(_of_its_own, chosen),
    )
    given = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in flags.items()
        if value is not None and name != "index"
    }
    if "sink" in given:
        given["sink"] = _merged(values["sink"], given["sink"])
    above |= given
    if chosen and "home" in above:  # it is said for all indexes
        above["home"] = _joined(above["home"], "/", chosen)
    values |= above
    if isinstance(values.get("sinks"), str):
        values["sinks"] = [name.strip() for name in values["sinks"].split(",")]
    if isinstance(values.get("tokens"), str):
        values["tokens"] = dict(_pair(each) for each in values["tokens"].split(",") if each.strip())
    kind = Config
    if environment.get(MEILI_URL) and "sinks" not in values:
        kind, values["sinks"] = _OfMeiliUrl, _WITH_MEILI
    values = expanded(values)
    try:
        # Not strict: the environment can only say "true" or "8".
        config = msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_wrong_value(error)}. Settings come from {file}, {PREFIX}* and flags") from error
    wrong = unknown_sink(tables - {*config.sinks}) or _wrong_token(config.tokens)
    if wrong := wrong or misplaced(config.chunks, config.home, config.sink):
        raise ConfigError(f"{file}: {wrong}")
    return _with_settings_file(config, file.parent)


def _wrong_value(error: msgspec.ValidationError) -> str:
    """What is wrong with a setting, and what would fit. Unknown names were refused before."""
    found = _WRONG_VALUE.match(str(error))
    name = found["name"] if found else None
    if found is None or name is None:
        return str(error)
    if name == "sink" and not found["deeper"]:
        return '`sink` holds tables, as [sink.fts]; which sinks are written is said by `sinks`, as sinks = ["fts"]'
    if name == "sinks" and "length" in found["what"]:
        return '`sinks` names one sink or more, none of them empty: sinks = ["fts"], or `fts,chroma` in the environment'
    hint = get_type_hints(Config).get(name)
    if get_origin(hint) is Literal:
        return (
            f"`{name}` is one of {', '.join(get_args(hint))}, not {found['what'].removeprefix('Invalid enum value ')}"
        )
    return f"`{name}{found['deeper']}`: {found['what']}"


def _wrong_token(tokens: Mapping[str, str]) -> str | None:
    for hashed, tenant in tokens.items():
        if not _SHA256.fullmatch(hashed):  # it may be the token itself: it is not shown
            return f"`tokens` has for {tenant!r} not the sha256 of a token, which is 64 digits from 0 to f"
        if hashed == _OF_NOTHING:
            return "`tokens` has the sha256 of nothing, which everybody knows: the token was not there when it was made"
    return None


def _with_settings_file(config: Config, folder: Path) -> Config:
    table = config.sink.get("meilisearch", {})
    file = index_settings_of(folder)
    if file is None or "settings_file" in table or "meilisearch" not in config.sinks:
        return config
    return msgspec.structs.replace(config, sink={**config.sink, "meilisearch": {**table, "settings_file": file}})


def _pair(written: str) -> tuple[str, str]:
    token, _, tenant = written.partition("=")
    return token.strip(), tenant.strip()


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Those that begin like ours and name no setting. They may be another program's, so that none is refused."""
    settings = _variables()
    names = sorted(os.environ if environment is None else environment)
    return [
        name for name in names if name.startswith(PREFIX) and name not in settings and not name.startswith(_OF_SINKS)
    ]


def nearest_variable(name: str) -> str | None:
    """The one that is likely to be meant by such a name."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, sorted(_variables()), n=1, cutoff=_LIKELY)), None)


def _variables() -> set[str]:
    return {variable(setting) for setting in (*Config.__struct_fields__, "config", "index")}


def _of_index(values: dict[str, Any], chosen: str | None, file: Path) -> dict[str, Any]:
    """The settings of one of several indexes: those of its table stand above those that all share."""
    tables = _tables(values.pop("index", {}), "index", file)
    for name, table in tables.items():
        _require_known(table, f"[index.{name}] of {file}")
    if not chosen:
        return values
    if chosen not in tables:
        raise ConfigError(f"{file} has no [index.{chosen}]; it has: {', '.join(tables) or 'none'}")
    if not _INDEX_NAME.fullmatch(chosen):
        raise ConfigError(f"{file}: {chosen!r} cannot name an index: use letters, digits and hyphens")
    own = tables[chosen]
    twins = [
        name for name, table in tables.items() if name != chosen and "home" in own and table.get("home") == own["home"]
    ]
    if twins:
        raise ConfigError(f"{file}: [index.{chosen}] and [index.{twins[0]}] have one home; each needs its own")
    shared, sinks = (_tables(some.get("sink", {}), "sink", file) for some in (values, own))
    home = _joined(values.get("home", _FOLDERS["home"]), "/", chosen)
    return {**values, "home": home, **own, "sink": _merged(_apart(shared, chosen), sinks)}


def _apart(shared: dict[str, dict[str, Any]], chosen: str) -> dict[str, dict[str, Any]]:
    """The options that all indexes share, but for names and folders: there each has its own."""
    named = {sink: {option: default} for (sink, option), default in _NAMES_IN_ENGINES.items()}
    return {
        sink: {option: _of_its_own(chosen, sink, option, value) for option, value in table.items()}
        for sink, table in _merged(named, shared).items()
    }


def _of_its_own(chosen: str | None, sink: str, option: str, said: Any) -> Any:
    """What an index takes for what is said of an option for all of them."""
    if chosen and (sink, option) in _NAMES_IN_ENGINES:
        return _joined(said, "-", chosen)
    return _joined(said, "/", chosen) if chosen and option == "folder" else said


def _joined(given: Any, sign: str, name: str) -> Any:
    return f"{given}{sign}{name}" if isinstance(given, str) and given else given  # else refused by its type


def _merged(below: Any, above: Any) -> Any:
    """Tables in tables, entry by entry: the upper one wins."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{name: _merged(below.get(name), value) for name, value in above.items()}}


def _tables(found: Any, name: str, file: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(found, dict) or not all(isinstance(table, dict) for table in found.values()):
        raise ConfigError(f"{file}: `{name}` holds tables, as [{name}.NAME]")
    return found


def _require_known(values: Mapping[str, Any], where: str, also: tuple[str, ...] = ()) -> None:
    unknown = sorted(set(values) - set(_names()) - set(also))
    if unknown:
        raise ConfigError(f"{where} sets {', '.join(unknown)}; it may set {', '.join((*_names(), *also))}")


def _names() -> tuple[str, ...]:
    return Config.__struct_fields__


def _read_file(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    _require_known(values, str(file), ("index",))
    return values
