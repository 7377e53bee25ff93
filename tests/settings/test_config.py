"""What a configuration may say: a misspelt name or table, and a value that cannot be, is an error."""

import re
from pathlib import Path

import pytest

from chunksink.embeddings.resolve import DEFAULT_MODEL
from chunksink.embeddings.settings import EncoderSettings
from chunksink.settings.config import MEANINGS, Config, ConfigError, load_config


def load(tmp_path: Path, toml: str | bytes | None = None, env: dict[str, str] | None = None, **flags: object) -> Config:
    file = tmp_path / "chunksink.toml"
    if toml is not None:
        file.write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    return load_config(flags, env or {}, file.parent)


def test_the_defaults_need_nothing(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert (config.chunks_path, config.home_path) == (tmp_path / "chunks", tmp_path / ".chunksink")


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False)])
def test_the_environment_can_say_yes_and_no(text: str, value: bool, tmp_path: Path) -> None:
    toml = f"require_source_checksum = {str(not value).lower()}"
    config = load(tmp_path, toml, {"CHUNKSINK_REQUIRE_SOURCE_CHECKSUM": text})
    assert config.require_source_checksum is value
    with pytest.raises(ConfigError, match="require_source_checksum"):
        load(tmp_path, toml, {"CHUNKSINK_REQUIRE_SOURCE_CHECKSUM": f"{text}2"})


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('chunk = "x"', "chunk; it may set chunks, home"),
        ('chunks = ""', "chunks"),
        ('home = "a\\u0000b"', "home"),
        ('require_source_checksum = "perhaps"', "require_source_checksum"),
        ("sinks = 3", "`sinks"),
        ("[sink]\nfts = 3", "`sink"),
        ("chunks = ", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(toml: str | bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, toml)
    assert told in str(caught.value)
    assert "chunksink.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"precision": "float16"},
            "`precision` is one of auto, float32, bfloat16, int8, not 'float16'. Settings come from",
        ),
        ({"sink": "fts"}, "`sink` holds tables, as [sink.fts]; which sinks are written is said by `sinks`"),
        ({"colour": "red"}, "this call sets colour; it may set chunks, home,"),
        ({"patience": 0}, "`patience`: Expected `float` > 0.0"),
        ({"sinks": "fts,,chroma"}, "`sinks` names one sink or more, none of them empty"),
        ({"sinks": []}, "`sinks` names one sink or more, none of them empty"),
        ({"tokens": {"a": 1}}, "`tokens[...]`: Expected `str`, got `int`"),
    ],
)
def test_what_is_wrong_with_a_value_is_said_with_what_would_fit(
    flags: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(said)}"):
        load_config(flags, {}, tmp_path)


def test_every_setting_is_explained() -> None:
    assert list(MEANINGS) == list(Config.__struct_fields__)


def test_the_two_defaults_of_an_encoder_agree() -> None:
    config, settings = Config(), EncoderSettings()
    assert config.model == DEFAULT_MODEL
    for name in EncoderSettings.__dataclass_fields__:
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
def test_a_misspelt_table_is_refused_with_the_known_ones(
    toml: str, table: str, index: str | None, tmp_path: Path
) -> None:
    told = rf"chunksink\.toml: \[sink\.{table}\] is of no sink, chroma is the nearest; there are: chroma, fts, jsonl"
    with pytest.raises(ConfigError, match=told):
        load(tmp_path, toml, index=index if "index" in toml else None)


def test_one_that_is_like_no_other_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\[sink\.zzz\] is of no sink; there are: chroma"):
        load(tmp_path, "[sink.zzz]\n")
    with pytest.raises(ConfigError, match=r"\[sink\.ftz\] is of no sink, fts is the nearest"):
        load(tmp_path, "", sink={"ftz": {"folder": "x"}})


@pytest.mark.parametrize(
    "toml",
    [
        "sinks = ['fts']\n[sink.chroma]\nfolder = 'x'\n",  # known, and not in use now
        "sinks = ['paper']\n[sink.paper]\nfolder = 'x'\n",  # told when it is opened: only then it is needed
        "model = 'm'\n[index.a]\nsinks = ['paper']\n[index.a.sink.paper]\nfolder = 'x'\n",
    ],
)
def test_what_is_installed_or_asked_for_may_have_options(toml: str, tmp_path: Path) -> None:
    load(tmp_path, toml, {"CHUNKSINK_SINK_OTHER_PROGRAM": "x"})
