"""OpenVINO graphs give the library's vectors, are created once, and are replaced or skipped if unusable."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, redirect_stderr
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from chunksink.embeddings import graphs
from chunksink.embeddings.convert import convert, main, sample_texts
from chunksink.embeddings.encoder import ModelInfo, acceptable_precisions
from chunksink.embeddings.errors import GraphUnavailable, GraphUnreadable, ModelUnsupported
from chunksink.embeddings.fingerprint import digest_of_files, file_digests
from chunksink.embeddings.graphs import expected_runtime, graph_of
from chunksink.embeddings.openvino_runtime import OpenVinoRuntime
from chunksink.embeddings.precision import has_bfloat16
from chunksink.embeddings.resolve import ResolvedModel
from chunksink.embeddings.torch_runtime import form_of, read_model
from chunksink.embeddings.transformer import TransformerEncoder
from tests.conftest import HEAVY
from tests.embeddings.conftest import TEXTS
from tests.embeddings.helpers import REAL, cosines, load_model, load_with_torch, model_like

LOAD = """
import sys
from pathlib import Path
from chunksink.embeddings.settings import EncoderSettings, open_encoder
encoder = open_encoder(EncoderSettings(sys.argv[1], precision="float32"), model_cache=Path(sys.argv[2]))
print(encoder.info.runtime, *encoder.encode(["the cat sat on the mat"])[0, :4].round(4))
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of conversions, by their arguments."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch, made: Path) -> list[list[str]]:
    """The arguments of every conversion. Each runs in this process, where torch is already loaded.

    Outside `make soak`, a model is really converted only once: later conversions copy the result.
    """
    done: list[list[str]] = []

    def run(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        done.append(arguments[5:])
        model, target, *source = map(Path, arguments[5:])
        known = made / f"{digest_of_files(file_digests(model))}-{len(source)}"
        if known.exists() and not HEAVY:
            shutil.copytree(known, target, dirs_exist_ok=True)
            return subprocess.CompletedProcess(arguments, 0, "", "")
        with redirect_stderr(io.StringIO()) as errors:
            code = main(arguments[5:])
        if code == 0:
            shutil.copytree(target, known, dirs_exist_ok=True)
        return subprocess.CompletedProcess(arguments, code, "", errors.getvalue())

    monkeypatch.setattr(graphs, "subprocess", SimpleNamespace(**vars(subprocess) | {"run": run}))
    return done


@pytest.mark.parametrize("kind", ["distilbert", *(["bert", "mpnet", "xlm-roberta"] if HEAVY else [])])
def test_graph_vectors_equal_those_of_the_library(tiny_folder: Path, tmp_path: Path, kind: str) -> None:
    from sentence_transformers import SentenceTransformer

    folder = tiny_folder if kind == "bert" else model_like(tiny_folder, tmp_path / "model", kind)
    found, target = ResolvedModel("tiny", folder, "folder"), tmp_path / "graph"
    target.mkdir()
    convert(found, target)
    form = form_of(read_model(found, "cpu"), found)
    info = ModelInfo("tiny", "", form.dimension, form.layout.max_length, "float32", "float32", "truncate")
    texts = [*TEXTS, "", "😀", "CAT\ncat"]
    theirs = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(texts)
    runtime = OpenVinoRuntime(target, "float32")
    for runtime.width_step in 1, 16:
        with closing(TransformerEncoder(runtime, info, form.layout, token_budget=99)) as encoder:
            ours = encoder.encode(texts)
        assert cosines(ours, theirs).min() > 0.99999
        assert np.allclose(np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1), rtol=1e-4)


def test_graph_that_fails_on_padding_is_refused(tiny_folder: Path, tmp_path: Path) -> None:
    """There, attention to near tokens alone has nothing to attend to, and OpenVINO computes NaN."""
    folder = model_like(tiny_folder, tmp_path / "model", "modernbert")
    (tmp_path / "graph").mkdir()
    with pytest.raises(GraphUnavailable, match="differ too much"):
        convert(ResolvedModel("tiny", folder, "folder"), tmp_path / "graph")


def test_both_runtimes_share_a_fingerprint_and_vectors(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    long = " ".join(TEXTS[:20])
    with (
        closing(load_model(str(tiny_folder), precision="float32", model_cache=tmp_path)) as graph,
        closing(load_with_torch(str(tiny_folder), precision="float32")) as library,
    ):
        assert graph.info.runtime == "openvino"
        assert library.info.runtime == "sentence-transformers"
        assert graph.info.fingerprint == library.info.fingerprint
        assert cosines(graph.encode([*TEXTS, long]), library.encode([*TEXTS, long])).min() > 0.99999
    load_model(str(tiny_folder), precision="float32", model_cache=tmp_path).close()
    assert len(conversions) == 1


def truncate(folder: Path, _other: Path) -> None:
    file = folder / "model.bin"
    file.write_bytes(file.read_bytes()[:-100])


def replace_one_file(folder: Path, other: Path) -> None:
    shutil.copy(other / "model.bin", folder)


def replace_all_files(folder: Path, other: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(other, folder)


def spoil_the_record(folder: Path, _other: Path) -> None:
    (folder / graphs.RECORD).write_text('{"model": ')


def spoil_with_digests(folder: Path, _other: Path) -> None:
    """Damage the graph and update its digest, as if OpenVINO could no longer read this version."""
    (folder / "model.xml").write_text("<net/>")
    record = json.loads((folder / graphs.RECORD).read_text())
    record["files"]["model.xml"] = sha256(b"<net/>").hexdigest()
    (folder / graphs.RECORD).write_text(json.dumps(record))


@pytest.mark.parametrize(
    "damage", [truncate, replace_one_file, replace_all_files, spoil_the_record, spoil_with_digests]
)
def test_graph_of_another_model_is_created_again(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]], damage: Callable[[Path, Path], None]
) -> None:
    def encoded(folder: Path) -> Any:
        with closing(load_model(str(folder), precision="float32", model_cache=tmp_path / "cache")) as encoder:
            assert encoder.info.runtime == "openvino"
            return encoder.encode(TEXTS)

    expected = encoded(tiny_folder)
    (graph,) = (tmp_path / "cache").glob("*-float32")
    encoded(model_like(tiny_folder, tmp_path / "other", "distilbert"))
    (other,) = {*(tmp_path / "cache").glob("*-float32")} - {graph}
    damage(graph, other)
    assert np.array_equal(encoded(tiny_folder), expected)
    assert len(conversions) == 3


def test_unwritable_graph_cache_falls_back_to_the_library(tiny_folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.write_text("a file where a folder must be")
    with closing(load_model(str(tiny_folder), precision="float32", model_cache=cache)) as encoder:
        assert encoder.info.runtime.startswith(f"sentence-transformers (the model cache {cache} cannot be written")
        with closing(load_with_torch(str(tiny_folder), precision="float32")) as library:
            assert np.array_equal(encoder.encode(TEXTS), library.encode(TEXTS))
    with pytest.raises(ModelUnsupported, match="int8"):
        load_model(str(tiny_folder), precision="int8", model_cache=cache)


def test_model_without_a_possible_graph_is_tried_once(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text()) | {"include_prompt": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    for _ in range(2):
        with closing(load_model(str(folder), precision="float32", model_cache=tmp_path / "cache")) as encoder:
            assert encoder.info.runtime == "sentence-transformers (its pooling leaves out the prompt)"
            assert encoder.encode(["the cat"]).shape == (1, 32)
    assert len(conversions) == 1


def test_unloadable_graph_is_created_again_once_then_left_to_the_library(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreadable:
        def __init__(self, *_: object) -> None:
            raise GraphUnreadable("OpenVINO cannot load it: no")

    monkeypatch.setattr("chunksink.embeddings.openvino_runtime.OpenVinoRuntime", Unreadable)
    with closing(load_model(str(tiny_folder), precision="float32", model_cache=tmp_path)) as encoder:
        assert encoder.info.runtime == "sentence-transformers (OpenVINO cannot load it: no)"
        assert encoder.encode(["the cat"]).shape == (1, 32)
    assert len(conversions) == 2


def test_unloadable_int8_graph_is_created_again_from_a_new_float32_graph(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    pytest.importorskip("nncf")
    files = digest_of_files(file_digests(tiny_folder))
    model = ResolvedModel("tiny", tiny_folder, "folder")
    for renew in (False, True):
        graph_of(model, files, tmp_path, quantized=True, renew=renew)
    assert len(conversions) == 4


@pytest.mark.parametrize(
    ("error", "cause", "code"),
    [
        (ModelUnsupported("cannot load"), OSError(errno.ENOSPC, "No space left on device"), 1),
        (ModelUnsupported("cannot load"), MemoryError(), 1),
        (ModelUnsupported("cannot load"), ConnectionError("offline mode is enabled"), 1),
        (RuntimeError("Check failed: std::bad_alloc"), None, 1),
        (ModelUnsupported("cannot load"), OSError("there is no tokenizer"), graphs.REFUSED),
        (GraphUnreadable("OpenVINO cannot load it: no"), None, 1),
        (GraphUnavailable("its pooling leaves out the prompt"), None, graphs.REFUSED),
    ],
)
def test_conversion_that_fails_transiently_is_no_refusal(
    error: Exception, cause: Exception | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error from cause

    monkeypatch.setattr("chunksink.embeddings.convert.convert", fail)
    with redirect_stderr(io.StringIO()):
        assert main([str(tmp_path), str(tmp_path)]) == code


def test_runtime_of_a_model_is_known_before_loading(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    found = ResolvedModel("tiny", tiny_folder, "folder")

    def expected(cache: Path) -> tuple[bool, bool]:
        runtime = expected_runtime(found, "float32", cache)
        return not runtime.reason, runtime.prepared

    assert expected(tmp_path / "cache") == (True, False)
    load_model(str(tiny_folder), precision="float32", model_cache=tmp_path / "cache").close()
    assert expected(tmp_path / "cache") == (True, True)
    (tmp_path / "file").touch()
    assert expected(tmp_path / "file") == (False, False)


def test_existing_graph_works_without_torch(tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]) -> None:
    with closing(load_model(str(tiny_folder), precision="float32", model_cache=tmp_path)) as encoder:
        expected = encoder.encode(["the cat sat on the mat"])[0, :4]
    missing = "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'sentence_transformers']))\n"
    output = subprocess.run(
        [sys.executable, "-c", missing + LOAD, tiny_folder, tmp_path], capture_output=True, text=True, check=True
    ).stdout.split()
    assert output[0] == "openvino"
    assert np.allclose([float(number) for number in output[1:]], expected, atol=2e-4)


def test_processor_with_fewer_instructions_gives_equal_vectors(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    with closing(load_model(str(tiny_folder), precision="float32", model_cache=tmp_path)) as encoder:
        expected = encoder.encode(["the cat sat on the mat"])[0, :4]
    output = subprocess.run(
        [sys.executable, "-c", LOAD, tiny_folder, tmp_path],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert output[0] == "openvino"
    assert np.allclose([float(number) for number in output[1:]], expected, atol=2e-4)


def test_processor_without_avx2_uses_the_library(
    tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chunksink.embeddings.precision._cpu_flags", lambda: frozenset(("sse2", "avx")))
    with closing(load_model(str(tiny_folder), model_cache=tmp_path)) as encoder:
        assert encoder.info.runtime == "sentence-transformers (this processor lacks AVX2)"
        assert encoder.encode(["the cat"]).shape == (1, 32)


@pytest.mark.skipif(not HEAVY, reason="three processes create a graph; CHUNKSINK_SOAK_HEAVY")
def test_process_killed_while_creating_a_graph_lets_two_others_continue(tiny_folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(tiny_folder), str(tmp_path)]
    killed = subprocess.Popen(command, start_new_session=True)
    while not list(tmp_path.glob(".*-float32-*")):
        assert killed.poll() is None
        time.sleep(0.01)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (process.communicate()[0] for process in both)
    assert first == second
    assert first.startswith("openvino")
    assert [path.name for path in tmp_path.glob(".*")] == []
    assert len(list(tmp_path.glob("*-float32"))) == 1


def test_conversion_ends_when_its_parent_is_killed(tiny_folder: Path, tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", LOAD, str(tiny_folder), str(tmp_path)])
    watched = psutil.Process(parent.pid)
    while not (children := watched.children()):
        assert parent.poll() is None
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    _, running = psutil.wait_procs(children, timeout=60)
    assert [each for each in running if each.status() != psutil.STATUS_ZOMBIE] == []


def test_int8_graph_is_made_from_float32_and_stays_int8(
    tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]
) -> None:
    pytest.importorskip("nncf")
    with closing(load_model(str(tiny_folder), precision="int8", model_cache=tmp_path)) as encoder:
        vectors = encoder.encode(TEXTS)
        assert encoder.info.precision == "int8"
        hint = encoder._runtime._graph.get_property("INFERENCE_PRECISION_HINT")  # type: ignore[attr-defined]
        assert (hint.to_string() == "bf16") == has_bfloat16("cpu")
    with closing(load_model(str(tiny_folder), precision="float32", model_cache=tmp_path)) as wide:
        assert wide.info.fingerprint == encoder.info.fingerprint
        found = cosines(vectors, wide.encode(TEXTS))
    assert 0.9 < found.min() < 0.99999
    assert len(conversions) == 2
    assert (
        acceptable_precisions("float32")
        < acceptable_precisions("auto")
        == acceptable_precisions("bfloat16")
        < acceptable_precisions("int8")
    )
    assert "int8" not in acceptable_precisions("auto")


@pytest.mark.skipif(not HEAVY, reason="the real model is converted twice; CHUNKSINK_SOAK_HEAVY")
def test_int8_of_the_real_model_is_close(real_folder: Path) -> None:
    pytest.importorskip("nncf")
    with (
        closing(load_model(str(real_folder), precision="int8", long_texts="truncate")) as narrow,
        closing(load_model(str(real_folder), precision="float32", long_texts="truncate")) as wide,
    ):
        assert narrow.info.runtime == "openvino"
        assert np.median(cosines(narrow.encode(REAL), wide.encode(REAL))) > 0.98


def test_runtime_sends_no_telemetry(tiny_folder: Path, tmp_path: Path, conversions: list[list[str]]) -> None:
    load_model(str(tiny_folder), precision="float32", model_cache=tmp_path).close()
    watched = (
        LOAD + "print({name: module for name, module in sys.modules.items() if 'telemetry' in name.split('.')[0]})"
    )
    output = subprocess.run(
        [sys.executable, "-c", watched, tiny_folder, tmp_path], capture_output=True, text=True, check=True
    ).stdout
    assert output.splitlines()[-1] == "{'openvino_telemetry': None}"


def test_sample_texts_cover_many_languages_and_lengths() -> None:
    texts = sample_texts()
    assert len(texts) == len(set(texts)) >= 40
    assert min(map(len, texts)) < 100
    assert max(map(len, texts)) > 600
