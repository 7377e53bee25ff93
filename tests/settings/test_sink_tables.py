"""Options of a sink that there is not are refused, wherever in the file they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chunksink.settings.config import ConfigError, load_config
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("toml", "table"),
    [
        ("[sink.chorma]\nfolder = 'x'\n", "chorma"),
        ("[sink.chorma]\n", "chorma"),
        ("[sink]\nChroma.folder = 'x'\n", "Chroma"),
        ("[sink.chroma]\n[index.a.sink.chorma]\nfolder = 'x'\n", "chorma"),
        ("sinks = ['chroma']\n[sink.chorma]\n[index.a]\nsinks = ['fts']\n", "chorma"),
    ],
)
@pytest.mark.parametrize("index", [None, "a"])
def test_a_misspelt_table_is_refused_with_the_known_ones(
    toml: str, table: str, index: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "chunksink.toml"
    file.write_text(toml)
    told = rf"chunksink\.toml: \[sink\.{table}\] is of no sink, chroma is the nearest; there are: chroma, fts, jsonl"
    with pytest.raises(ConfigError, match=told):
        load_config({"index": index if "index" in toml else None}, {}, file)


def test_one_that_is_like_no_other_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "chunksink.toml").write_text("[sink.zzz]\n")
    with pytest.raises(ConfigError, match=r"\[sink\.zzz\] is of no sink; there are: chroma"):
        load_config({}, {}, tmp_path)
    with pytest.raises(ConfigError, match=r"\[sink\.ftz\] is of no sink, fts is the nearest"):
        load_config({"sink": {"ftz": {"folder": "x"}}}, {}, tmp_path)


@pytest.mark.parametrize(
    "toml",
    [
        "sinks = ['fts']\n[sink.chroma]\nfolder = 'x'\n",  # known, and not in use now
        "sinks = ['paper']\n[sink.paper]\nfolder = 'x'\n",  # told when it is opened: only then it is needed
        "model = 'm'\n[index.a]\nsinks = ['paper']\n[index.a.sink.paper]\nfolder = 'x'\n",
    ],
)
def test_what_is_installed_or_asked_for_may_have_options(toml: str, tmp_path: Path) -> None:
    (tmp_path / "chunksink.toml").write_text(toml)
    load_config({}, {}, tmp_path)


def test_a_sink_of_another_program_in_the_environment_is_left_alone(tmp_path: Path) -> None:
    load_config({}, {"CHUNKSINK_SINK_OTHER_PROGRAM": "x"}, tmp_path)


def test_what_another_package_brings_is_known(tmp_path: Path) -> None:
    metadata = tmp_path / "paper-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: paper\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[chunksink.sinks]\npaper = paper:open_sink\n")
    (tmp_path / "chunksink.toml").write_text("[sink.paper]\nfolder = 'x'\n")
    program = "from chunksink.settings.config import load_config; print(load_config({}, {}).sink)"
    paths = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=paths, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'paper': {'folder': 'x'}}\n"
