"""`chunksink init` writes a file that explains every setting, sets none, and loads."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import asdict

from chunksink.command_line.cli import run
from chunksink.command_line.commands.init import content
from chunksink.command_line.exits import Exit
from chunksink.settings.config import CONFIG_FILE, SETTINGS, Config
from chunksink.settings.load import load_config
from chunksink.settings.sink_tables import installed_sinks

SINKS = {found.name: found for found in installed_sinks() if found.dist and found.dist.name == "chunksink"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def uncommented() -> str:
    """The file with every commented setting enabled."""
    return re.sub(r"(?m)^# (\[|[a-z_]+ = )", r"\1", content())


def test_the_written_file_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["init"]) == Exit.OK
    assert "chunksink.toml" in capsys.readouterr().out
    loaded = asdict(load_config({}, {}))
    assert {name: loaded[name] for name in SETTINGS} == {name: asdict(Config())[name] for name in SETTINGS}
    lines = (folder / CONFIG_FILE).read_text().splitlines()
    assert all(line == "" or line.startswith("#") for line in lines)
    assert max(map(len, lines)) <= 120


def test_every_setting_is_in_it_and_shows_its_default(folder: Path) -> None:
    (folder / CONFIG_FILE).write_text(uncommented())
    found = load_config({}, {})
    settings = tomllib.loads(uncommented())
    assert set(settings) - {"index"} == set(SETTINGS)
    for field in msgspec.structs.fields(Config):
        if field.name in SETTINGS and field.default not in (None, msgspec.NODEFAULT):
            assert getattr(found, field.name) == field.default, field.name
    assert load_config({"index": "handbook"}, {}).chunks == "handbook/chunks"


@pytest.mark.parametrize("sink", SINKS)
def test_every_option_of_a_sink_is_in_it(sink: str) -> None:
    kind = getattr(import_module(SINKS[sink].module), f"{sink.capitalize()}Options")
    table = tomllib.loads(uncommented())["sink"][sink]
    assert set(table) == set(kind.__struct_fields__)
    assert msgspec.convert(table, kind, strict=False)
    for field in msgspec.structs.fields(kind):
        if field.default not in (None, ""):
            assert table[field.name] == field.default, field.name


def test_an_existing_file_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / CONFIG_FILE).write_text("patience = 5\n")
    assert run(["init"]) == Exit.USAGE
    assert "--force" in capsys.readouterr().err
    assert (folder / CONFIG_FILE).read_text() == "patience = 5\n"
    assert run(["init", "--force"]) == Exit.OK
    assert (folder / CONFIG_FILE).read_text() == content()
