"""The configuration: misspelt names, unknown tables and wrong values are errors that name their source."""

import re
from pathlib import Path

import pytest

from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.embeddings.settings import EncoderSettings
from chunksink.settings.config import SETTINGS, Config, meaning_of
from chunksink.settings.errors import ConfigError
from chunksink.settings.load import load_config


def load(tmp_path: Path, toml: str | bytes | None = None, env: dict[str, str] | None = None, **flags: object) -> Config:
    file = tmp_path / "chunksink.toml"
    if toml is not None:
        file.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return load_config(flags, env or {}, file.parent)


def test_defaults_when_nothing_is_set_are_folders_beside_the_file(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.bus.path, config.home_path) == (tmp_path / "chunks", tmp_path / ".chunksink")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False)])
def test_boolean_when_set_by_the_environment_overrides_the_file(text: str, value: bool, tmp_path: Path) -> None:
    toml = f"require_source_checksum = {str(not value).lower()}"
    config = load(tmp_path, toml, {"CHUNKSINK_REQUIRE_SOURCE_CHECKSUM": text})
    assert config.require_source_checksum is value
    with pytest.raises(ConfigError, match=r"^CHUNKSINK_REQUIRE_SOURCE_CHECKSUM: `require_source_checksum`"):
        load(tmp_path, toml, {"CHUNKSINK_REQUIRE_SOURCE_CHECKSUM": f"{text}2"})


@pytest.mark.parametrize(
    ("toml", "name"),
    [
        ('chunk = "x"', "`chunk` (did you mean chunks?)"),
        ("zzz = 1", "`zzz`;"),
        ('[origin]\nfile = "x"', "`origin`"),
        ('chunks = ""', "`chunks`"),
        ('home = "a\\u0000b"', "`home`"),
        ('require_source_checksum = "perhaps"', "`require_source_checksum`"),
        ("sinks = 3", "`sinks"),
        ("tenants = true", "`tenants` must be one of optional, required, not true"),
        ('engine = "spark"', "`engine` must be one of local, ray, not 'spark'"),
        ("[sink]\nfts = 3", "`sink"),
        ("chunks = ", ""),
        (b"\xff\xfe", ""),
    ],
)
def test_file_when_it_cannot_be_used_is_named_with_the_setting(toml: str | bytes, name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, toml)
    assert name in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "chunksink.toml"))


@pytest.mark.parametrize(
    ("toml", "line", "column"),
    [("home = 'h'\nchunks = ", 2, 10), ("home = 'h'\n\nchunks 'c'\n", 3, 8), ("home = [1,\n2\n", 3, 1)],
)
def test_file_when_it_is_not_toml_is_named_with_line_and_column(
    toml: str, line: int, column: int, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"chunksink\.toml .*line {line}, column {column}\b"):
        load(tmp_path, toml)


def test_sink_when_misspelt_names_its_source_and_suggests_the_nearest(tmp_path: Path) -> None:
    for source, toml, env, flags in (
        ("chunksink\\.toml", "sinks = ['ft']", {}, {}),
        ("CHUNKSINK_SINKS", "", {"CHUNKSINK_SINKS": "chroma,ft"}, {}),
        ("the flag or argument `sinks`", "", {}, {"sinks": ["ft"]}),
    ):
        with pytest.raises(ConfigError, match=rf"{source}: .*'ft' \(did you mean fts\?\)"):
            load(tmp_path, toml, env, **flags)


@pytest.mark.parametrize(
    ("flags", "setting", "allowed"),
    [
        ({"precision": "float16"}, "precision", "auto, float32, bfloat16, int8"),
        ({"sink": "fts"}, "sink", "[sink.fts]"),
        ({"patience": 0}, "patience", "> 0.0"),
        ({"sinks": "fts,,chroma"}, "sinks", 'sinks = ["fts"]'),
        ({"sinks": []}, "sinks", 'sinks = ["fts"]'),
        ({"tokens": {"a": 1}}, "tokens", "`str`"),
    ],
)
def test_value_when_wrong_names_the_setting_and_what_is_allowed(
    flags: dict[str, object], setting: str, allowed: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=re.escape(allowed)) as caught:
        load_config(flags, {}, tmp_path)
    assert str(caught.value).startswith(f"the flag or argument `{setting}`: `{setting}")


def test_value_when_wrong_names_the_source_that_set_it(tmp_path: Path) -> None:
    file, variables = tmp_path / "chunksink.toml", {"CHUNKSINK_PRECISION": "half"}
    cases: list[tuple[str, str, dict[str, str], dict[str, object]]] = [
        (str(file), "precision = 'half'", {}, {}),
        (f"[index.a] of {file}", "precision = 'int8'\n[index.a]\nprecision = 'half'", {}, {"index": "a"}),
        ("CHUNKSINK_PRECISION", "precision = 'int8'", variables, {}),
        ("the flag or argument `precision`", "", variables, {"precision": "double"}),
        (str(file), "home = 'chunks/manifest'", {}, {}),
        (str(file), "[rerank]\nkey_variable = 'KEY'", {}, {}),
        ("the flag or argument `home`", "", {}, {"home": str(tmp_path / "chunks" / "canonical")}),
        ("CHUNKSINK_SINK_FTS_FOLDER", "", {"CHUNKSINK_SINK_FTS_FOLDER": str(tmp_path / "chunks" / "manifest")}, {}),
        ("CHUNKSINK_TOKENS", "", {"CHUNKSINK_TOKENS": "secret=acme"}, {}),
    ]
    for source, toml, environment, flags in cases:
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, toml, environment, **flags)
        assert str(caught.value).startswith(f"{source}: "), (source, str(caught.value))


def test_argument_when_unknown_suggests_the_nearest_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`modle` \(did you mean model\?\)"):
        load(tmp_path, modle="x")
    with pytest.raises(ConfigError, match="`colour`;"):
        load(tmp_path, colour="red")


def test_every_setting_has_a_meaning() -> None:
    assert [name for name in SETTINGS if not meaning_of(name).description] == []


def test_defaults_of_configuration_and_encoder_agree() -> None:
    config, settings = Config(), EncoderSettings()
    assert config.model == DEFAULT_MODEL
    assert (config.embed_context, settings.embed_context) == ("title, headings", ""), "older indexes have no context"
    for name in EncoderSettings.__dataclass_fields__.keys() - {"embed_context"}:
        assert getattr(config, name) == getattr(settings, name)


# -- tables of sinks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toml", "table"),
    [
        ("[sink.chorma]\n", "chorma"),
        ("[sink]\nChroma.folder = 'x'\n", "Chroma"),
        ("[sink.chroma]\n[index.a.sink.chorma]\nfolder = 'x'\n", "chorma"),
    ],
)
@pytest.mark.parametrize("index", [None, "a"])
def test_sink_table_when_misspelt_suggests_the_nearest_sink(
    toml: str, table: str, index: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"chunksink\.toml: \[sink\.{table}\] .*\(did you mean chroma\?\)"):
        load(tmp_path, toml, index=index if "index" in toml else None)


def test_sink_table_when_unknown_names_its_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"chunksink\.toml: \[sink\.zzz\]") as caught:
        load(tmp_path, "[sink.zzz]\n")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"this call: \[sink\.ftz\] .*\(did you mean fts\?\)"):
        load(tmp_path, "", sink={"ftz": {"folder": "x"}})


@pytest.mark.parametrize(
    "toml",
    [
        "sinks = ['fts']\n[sink.chroma]\nfolder = 'x'\n",  # installed, but not in use
        "sinks = ['paper']\n[sink.paper]\nfolder = 'x'\n",  # checked when it is opened
        "model = 'm'\n[index.a]\nsinks = ['paper']\n[index.a.sink.paper]\nfolder = 'x'\n",
    ],
)
def test_sink_table_when_installed_or_in_use_is_allowed(toml: str, tmp_path: Path) -> None:
    load(tmp_path, toml, {"CHUNKSINK_SINK_OTHER_PROGRAM": "x"})


def test_field_that_is_a_list_cannot_be_sorted_by() -> None:
    """Engines order lists differently."""
    with pytest.raises(ConfigError, match=r"\[fields\.labels\]"):
        load_config({"fields": {"labels": {"type": "strings", "sort": True}}}, environment={})
    with pytest.raises(ConfigError, match=r"one of string, number, boolean, datetime, strings"):
        load_config({"fields": {"labels": {"type": "int"}}}, environment={})


@pytest.mark.parametrize("address", ["s3:/bucket/prefix", "GS:/bucket", Path("az://container/prefix")])
def test_address_with_one_slash_is_refused_with_the_right_form(address: str | Path, tmp_path: Path) -> None:
    scheme = str(address).partition(":")[0]
    for flags, toml in (({"chunks": address}, ""), ({}, f"chunks = '{address}'\n")):
        with pytest.raises(ConfigError, match=f"`chunks`.* {scheme}://BUCKET/PREFIX"):
            load(tmp_path, toml, **flags)
    for flags, toml in (({"ray": {"segments": str(address)}}, ""), ({}, f"[ray]\nsegments = '{address}'\n")):
        with pytest.raises(ConfigError, match=rf"`segments` in \[ray\].* {scheme}://BUCKET/PREFIX"):
            load(tmp_path, toml, **flags)
    with pytest.raises(ConfigError, match="`home`"):
        load(tmp_path, "", home=address)


@pytest.mark.parametrize("place", ["", "s3://bucket/segments"])
def test_segments_are_in_the_home_or_the_named_place(place: str, tmp_path: Path) -> None:
    named = {"ray": {"segments": place}} if place else {}
    config = load_config({"home": tmp_path / "home", **named}, environment={})
    assert config.segments == (place or str(tmp_path / "home" / "segments"))


def test_flag_for_one_option_of_ray_keeps_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "chunksink.toml").write_text('[ray]\naddress = "auto"\nworkers = 2\n')
    config = load_config({"ray": {"workers": 3}}, environment={}, place=tmp_path)
    assert config.ray is not None and (config.ray.address, config.ray.workers) == ("auto", 3)


@pytest.mark.parametrize("table", [{"workers": 0}, {"gpus_per_worker": -1}, {"nodes": 2}])
def test_wrong_option_of_ray_is_refused(table: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="ray"):
        load_config({"ray": table}, environment={})


def test_commands_of_a_call_override_those_of_the_environment() -> None:
    config = load_config({"on_failure": ["mine"]}, {"CHUNKSINK_ON_FAILURE": "theirs", "CHUNKSINK_ON_DRIFT": "page -q"})
    assert (config.on_failure, config.on_drift) == (("mine",), ("page", "-q"))
