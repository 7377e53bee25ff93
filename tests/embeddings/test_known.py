"""A model that made the last build is known again without being loaded, and never where anything is another."""

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings import known, load, precision
from chunksink.embeddings.encoder import ModelInfo, info_of
from chunksink.embeddings.known import known_encoder
from chunksink.embeddings.settings import EncoderSettings, open_encoder, settled


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not there (`test_a_gpu_must_be_there`), wherever these tests run."""
    monkeypatch.setattr(load, "choose_device", lambda: "cpu")
    monkeypatch.setattr(known, "choose_device", lambda: "cpu")


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


@pytest.fixture
def wanted(folder: Path) -> EncoderSettings:
    return EncoderSettings(model=str(folder))


@pytest.fixture
def before(wanted: EncoderSettings) -> Iterator[tuple[EncoderSettings, ModelInfo]]:
    """What a build keeps of the encoder that made it."""
    with closing(open_encoder(wanted)) as encoder:
        yield settled(wanted, encoder), info_of(encoder)


def test_it_is_the_same_encoder(wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo]) -> None:
    with closing(open_encoder(wanted)) as loaded:
        found = known_encoder(wanted, *before)
        assert found is not None
        with closing(found):
            assert found.info == info_of(loaded)
            assert np.array_equal(found.encode(["the cat sat"]), loaded.encode(["the cat sat"]))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"long_texts": "truncate"}, {}),
        ({"max_length": 7}, {}),
        ({"query_prompt": "query: "}, {}),
        ({"endpoint": "http://127.0.0.1:9"}, {}),
        ({}, {"libraries": {"tokenizers": "0.0.1"}}),
        ({}, {"files": ""}),  # as an older release kept it
    ],
)
def test_with_other_settings_or_libraries_it_is_another(
    wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo], asked: dict[str, Any], told: dict[str, Any]
) -> None:
    made, info = before
    assert known_encoder(replace(wanted, **asked), made, replace(info, **told)) is None


def test_another_precision(wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo]) -> None:
    made, info = before
    other = "float32" if info.precision == "bfloat16" else "bfloat16"
    assert known_encoder(replace(wanted, precision=other), made, info) is None
    assert known_encoder(replace(wanted, precision=info.precision), made, info) is not None


@pytest.mark.parametrize("flags", [frozenset[str](), frozenset(("avx512_bf16",))], ids=["without", "with"])
def test_auto_on_another_processor(
    wanted: EncoderSettings,
    before: tuple[EncoderSettings, ModelInfo],
    flags: frozenset[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision, "_cpu_flags", lambda: flags)
    takes = "bfloat16" if flags else "float32"
    assert (known_encoder(wanted, *before) is not None) == (before[1].precision == takes)


def test_a_gpu_must_be_there(
    wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, info = before
    on_gpu = replace(info, device="cuda", precision="float32")
    wanted, made = replace(wanted, precision="float32"), replace(made, precision="float32")
    assert known_encoder(wanted, made, on_gpu) is None
    monkeypatch.setattr(known, "choose_device", lambda: "cuda")
    found = known_encoder(wanted, made, on_gpu)
    assert found is not None and found.info == on_gpu


def test_any_file_is_another(folder: Path, wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo]) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 2
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        assert known_encoder(wanted, *before) is None, path
        path.write_bytes(content)
    assert known_encoder(wanted, *before) is not None
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "ask: "}}))
    assert known_encoder(wanted, *before) is None


def test_the_model_is_gone(folder: Path, wanted: EncoderSettings, before: tuple[EncoderSettings, ModelInfo]) -> None:
    shutil.rmtree(folder)
    assert known_encoder(wanted, *before) is None
