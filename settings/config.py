"""All settings, each with its meaning. `docs/cli.md` and `chunksink init` get their texts from here.

`load` reads them from the file, the environment and flags.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from chunksink.chunkbus.storage import is_bucket
from chunksink.settings.fields import FieldOptions
from chunksink.settings.index_tables import FOLDERS
from chunksink.settings.ray import RayOptions
from chunksink.settings.rerank import RerankOptions
from chunksink.settings.sink_tables import nearest

if TYPE_CHECKING:
    from chunksink.chunkbus.layout import BusRoot

CONFIG_FILE = "chunksink.toml"
PREFIX = "CHUNKSINK_"
SINK_PREFIX = f"{PREFIX}SINK_"
MEILI_URL = "MEILI_URL"
"""The environment variable that makes Meilisearch the default keyword sink."""
MEILI_SINKS = ("meilisearch", "chroma")
"""The default sinks if `MEILI_URL` is set."""
FolderName = Annotated[str, Meta(min_length=1, pattern=r"^[^\x00]*$")]
Name = Annotated[str, Meta(min_length=1)]
Arguments = Annotated[tuple[Name, ...], Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Price = Annotated[float, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0)]


class Origin(msgspec.Struct, frozen=True):
    """Where the settings of a configuration come from."""

    file: str | None = None
    """The file that was read, or would have been if it existed; None for a configuration made in Python."""
    sink_tables: str | None = None
    """Where the options of sinks come from, for messages."""
    has_default_sinks: bool = False
    """Whether no setting names the sinks, so that they depend on MEILI_URL."""
    sinks_with_options: frozenset[str] = frozenset()
    """The sinks whose options were set, by the file or by variables. Default names of an index do not count."""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings. Relative paths in the file are relative to its folder, all others to the current one."""

    chunks: Annotated[
        FolderName,
        Meta(
            description="the bus root: a folder, or an address of object storage (`s3://…`), with `canonical/` and "
            "`manifest/`"
        ),
    ] = FOLDERS["chunks"]
    home: Annotated[
        FolderName,
        Meta(description="folder for chunksink's own records, the cache of vectors and the embedded index"),
    ] = FOLDERS["home"]
    require_source_checksum: Annotated[
        bool, Meta(description="refuse chunks whose provenance has no `source_checksum`")
    ] = False
    model: Annotated[
        Name,
        Meta(
            description="the embedding model: a folder, a name on the hub (`owner/name` or `owner/name@revision`), or "
            "the endpoint's name for it"
        ),
    ] = "sentence-transformers/all-MiniLM-L6-v2"
    model_cache: Annotated[
        FolderName | None,
        Meta(
            description="folder for models prepared for this machine; by default in the user's cache folder",
            examples=["~/.cache/chunksink/models"],
        ),
    ] = None
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "int8"],
        Meta(
            description="`auto` (bfloat16 if the hardware supports it, else float32), `float32`, `bfloat16`, or `int8` "
            "(faster and less precise)"
        ),
    ] = "auto"
    long_texts: Annotated[
        Literal["windows", "truncate"],
        Meta(
            description="how to embed texts longer than the model's maximum: `windows` (the mean of the vectors of all "
            "parts), or `truncate` (the beginning only)"
        ),
    ] = "windows"
    max_length: Annotated[
        Count | None,
        Meta(description="lowers the model's maximum, in tokens; for an endpoint in characters", examples=[256]),
    ] = None
    dimensions: Annotated[
        Count | None,
        Meta(
            description="stored length of the vectors, which the model must declare in `matryoshka_dimensions`; the "
            "cache keeps whole vectors",
            examples=[256],
        ),
    ] = None
    embed_context: Annotated[
        Literal["title, headings", ""],
        Meta(description='what is embedded before each text: `title, headings`, or `""` for nothing'),
    ] = "title, headings"
    query_prompt: Annotated[
        str | None,
        Meta(description='prefix for queries; by default the model\'s own; `""` for none', examples=["query: "]),
    ] = None
    passage_prompt: Annotated[
        str | None,
        Meta(description='prefix for chunks; by default the model\'s own; `""` for none', examples=["passage: "]),
    ] = None
    endpoint: Annotated[
        Name | None,
        Meta(
            description="URL of an OpenAI-compatible endpoint that computes the vectors, without `/embeddings`",
            examples=["http://127.0.0.1:11434/v1"],
        ),
    ] = None
    endpoint_key_variable: Annotated[
        Name | None,
        Meta(
            description="name of the environment variable that contains the endpoint's key",
            examples=["EMBEDDINGS_KEY"],
        ),
    ] = None
    endpoint_dimensions: Annotated[
        Count | None, Meta(description="length of the vectors, for models that can shorten them", examples=[256])
    ] = None
    fusion_weight: Annotated[
        Share | None,
        Meta(
            description="weight of keyword search in hybrid scores, 0 to 1; by default it depends on the query; "
            "`chunksink eval --tune` measures weights",
            examples=[0.4],
        ),
    ] = None
    token_price: Annotated[
        Price | None,
        Meta(description="price of a million tokens at the endpoint, for `chunksink plan`", examples=[0.02]),
    ] = None
    sinks: Annotated[
        tuple[Name, ...],
        Meta(
            min_length=1,
            description="where the index is written: names of sinks, in the environment variable separated by commas; "
            "if `MEILI_URL` is set the default is `meilisearch,chroma`, unless the index already uses `fts`",
        ),
    ] = ("fts", "chroma")
    sink: Annotated[
        dict[str, dict[str, Any]],
        Meta(description="options of a sink: a table `[sink.NAME]`, in the environment `CHUNKSINK_SINK_NAME_OPTION`"),
    ] = {}
    fields: Annotated[
        dict[str, FieldOptions],
        Meta(description="fields of your own for filters, facets, sorting and keyword search: a table `[fields.NAME]`"),
    ] = {}
    rerank: Annotated[
        RerankOptions | None,
        Meta(description="a model that reranks the best hits of each search: a table `[rerank]`"),
    ] = None
    engine: Annotated[
        Literal["local", "ray"],
        Meta(description="where `sync` and `rebuild` compute vectors: `local`, or workers on `ray`"),
    ] = "local"
    ray: Annotated[
        RayOptions | None, Meta(description="workers on Ray, and the place of their vectors: a table `[ray]`")
    ] = None
    tenants: Annotated[
        Literal["optional", "required"],
        Meta(
            description="`required`: a search that names no tenant gets no documents, and on the command line it is an "
            "error; `optional`: it searches the documents of all tenants"
        ),
    ] = "optional"
    tokens: Annotated[
        dict[str, Name],
        Meta(
            description="who may use `chunksink serve`: entries `SHA256-OF-A-TOKEN = TENANT`, with the tenant `*` for "
            "all tenants; in the environment variable separated by commas"
        ),
    ] = {}
    patience: Annotated[
        Seconds,
        Meta(description="seconds to keep retrying a call if an engine does not answer or is overloaded"),
    ] = 120.0
    documents_per_second: Annotated[
        Rate | None,
        Meta(
            description="highest average rate of writes to a sink, for engines that other programs use too",
            examples=[500],
        ),
    ] = None
    on_failure: Annotated[
        Arguments | None,
        Meta(
            description="a program and its arguments, run after a failed run, with a JSON report on standard input; "
            "in the environment variable written as a command line",
            examples=[["/usr/local/bin/page-somebody", "--service", "search"]],
        ),
    ] = None
    on_drift: Annotated[
        Arguments | None,
        Meta(
            description="like `on_failure`, but run after a `verify` that found differences",
            examples=[["/usr/local/bin/page-somebody", "--service", "search"]],
        ),
    ] = None
    notify_timeout: Annotated[
        Seconds, Meta(description="seconds after which a program of `on_failure` or `on_drift` is killed")
    ] = 30.0
    origin: Origin = Origin()
    """Not a setting: `load_config` adds it."""

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
        if not self.origin.has_default_sinks or self.sinks != MEILI_SINKS:
            return None
        return (
            f"the sinks are {' and '.join(MEILI_SINKS)} because {MEILI_URL} is set and no setting names sinks: "
            f"set `sinks` in {CONFIG_FILE}, or {variable('sinks')}, to choose others"
        )


SETTINGS = tuple(name for name in Config.__struct_fields__ if name != "origin")
"""The names that a configuration may contain."""


def meaning_of(setting: str) -> Meta:
    """The description of a setting, and an example if it has one."""
    meta: Meta = get_type_hints(Config, include_extras=True)[setting].__metadata__[-1]
    return meta


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def unknown_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Variables with our prefix that name no setting. They are allowed, since other programs may use the prefix."""
    settings = _variables()
    names = sorted(os.environ if environment is None else environment)
    return [
        name for name in names if name.startswith(PREFIX) and name not in settings and not name.startswith(SINK_PREFIX)
    ]


def nearest_variable(name: str) -> str | None:
    """The variable that was probably meant."""
    return nearest(name, sorted(_variables()), cutoff=0.85)


def _variables() -> set[str]:
    return {variable(setting) for setting in (*SETTINGS, "config", "index")}
