"""`vectors_for`: order, deduplication, isolation of bad texts, and commits that are never lost."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import EncodedBatch, Passage, Vectors
from chunksink.embeddings.errors import (
    CacheUnavailable,
    EncoderOutOfMemory,
    EndpointUnavailable,
    TextRefused,
    WrongVectors,
)
from chunksink.embeddings.vectors import EmbedReport, vectors_for
from tests.embeddings.helpers import HashEncoder, embed, numbered, stream, text_hash


def test_vectors_come_in_order_and_each_text_is_computed_once(cache: VectorCache) -> None:
    encoder = HashEncoder()
    texts = [f"text {number % 70}" for number in range(1000)]
    report = EmbedReport()
    for text, item in zip(texts, vectors_for(stream(texts), encoder, cache, report, slice_texts=64), strict=True):
        assert item.vector is not None
        assert (item.vector == encoder.vector(text)).all()
        assert item.key.hex() == text_hash(text)[7:]
    assert sorted(encoder.asked) == sorted(set(texts))
    assert (report.texts, report.encoded, report.reused, report.refused) == (1000, 70, 930, 0)


def test_reused_is_zero_while_workers_are_ahead() -> None:
    """`encoded` includes vectors of other processes, also if this one has not yet asked for their texts."""
    assert EmbedReport(texts=2, encoded=5).reused == 0


def test_progress_is_reported_while_a_window_is_computed(cache: VectorCache) -> None:
    embed(numbered(40), HashEncoder(), cache)
    told: list[int] = []
    run = vectors_for(stream(numbered(100)), HashEncoder(), cache, on_encoded=told.append)
    next(iter(run))
    assert sum(told) == 60
    assert max(told) < 60


def test_odd_texts_have_vectors(cache: VectorCache) -> None:
    texts = ["", " ", "\0", "😀😀😀", "x" * 1_000_000, "\ud800", "é", "e\u0301"]
    items = embed(texts, HashEncoder(), cache)
    assert all(item.vector is not None for item in items)


@pytest.mark.parametrize("mixed_first", [True, False])
def test_float32_serves_all_and_bfloat16_only_those_that_accept_it(cache: VectorCache, mixed_first: bool) -> None:
    short, full = HashEncoder(precision="bfloat16"), HashEncoder(precision="float32")
    auto = HashEncoder(precision="bfloat16", requested="auto")
    # A machine without the hardware: `auto` computes float32, and still uses cached bfloat16 vectors.
    auto_elsewhere = HashEncoder(precision="float32", requested="auto")
    if mixed_first:
        embed(["a"], short, cache)
        for encoder in (auto, auto_elsewhere):
            assert embed(["a"], encoder, cache)[0].cached
        assert not embed(["a"], full, cache)[0].cached, "float32 asks for float32"
    else:
        embed(["a"], full, cache)
    for encoder in (short, auto, auto_elsewhere, full):
        encoder.asked.clear()
        assert embed(["a"], encoder, cache)[0].cached
        assert encoder.asked == []


class Poisoned(HashEncoder):
    """An encoder that cannot embed texts with a certain word."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        if any("refuse" in text for text in texts):
            raise TextRefused("not this one" if len(texts) == 1 else "not all of these")
        vectors = super().encode(texts)
        for number, text in enumerate(texts):
            if "nan" in text:
                vectors[number, 2] = np.nan
            if "zero" in text:
                vectors[number] = 0
        return vectors


def test_bad_text_does_not_block_the_others(cache: VectorCache) -> None:
    texts = [*numbered(40), "nan", "refuse", "zero", *(f"more {number}" for number in range(40)), "refuse too"]
    encoder = Poisoned()
    report = EmbedReport()
    items = list(vectors_for(stream(texts), encoder, cache, report))
    problems = {text: item.problem for text, item in zip(texts, items, strict=True) if item.vector is None}
    assert problems == {
        "nan": "the model returned a vector that is not finite",
        "zero": "the model returned a vector of zeros",
        "refuse": "not this one",
        "refuse too": "not this one",
    }
    assert (report.refused, report.encoded) == (4, 80)
    assert cache.read("SELECT count(*) FROM vector") == [(80,)]
    encoder.asked.clear()
    embed(texts, encoder, cache)
    assert set(encoder.asked) == {"nan", "zero"}, "what has no vector is tried again, what has one is not"


def test_text_without_a_vector_is_tried_once_per_report(cache: VectorCache) -> None:
    encoder, report = Poisoned(), EmbedReport()
    for _ in range(3):
        items = list(vectors_for(stream(["nan", "fine"]), encoder, cache, report))
        assert [item.problem is None for item in items] == [False, True]
    assert encoder.asked == ["nan", "fine"]
    assert (report.texts, report.encoded, report.reused, report.refused) == (6, 1, 2, 3)


def test_two_texts_under_one_hash_are_distinguished(cache: VectorCache) -> None:
    encoder = HashEncoder()
    items = list(vectors_for([Passage(text_hash("a"), "a"), Passage(text_hash("a"), "b")], encoder, cache))
    assert items[0].vector is not None
    assert items[1].vector is None
    assert "different text" in str(items[1].problem)


@pytest.mark.parametrize("shape", [(1, 15), (1, 17), (2, 16), (0, 16)])
def test_encoder_of_the_wrong_shape_is_stopped(cache: VectorCache, shape: tuple[int, int]) -> None:
    class Wrong(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            return np.ones(shape, dtype=np.float32)

    with pytest.raises(WrongVectors):
        embed(["a"], Wrong(), cache)
    assert cache.read("SELECT count(*) FROM vector") == [(0,)]


class Batching(HashEncoder):
    """Returns the vectors of the last text first, and may fail halfway."""

    def __init__(self, fail_after: int | None = None, forget: int | None = None) -> None:
        super().__init__(max_length=10)
        self.fail_after = fail_after
        self.forget = forget

    def encode_batches(self, texts: Sequence[str], contexts: Sequence[str] = ()) -> Iterator[EncodedBatch]:
        for done, position in enumerate(reversed(range(len(texts)))):
            if done == self.fail_after:
                raise EndpointUnavailable("gone")
            if position != self.forget:
                yield EncodedBatch([position], self.encode([texts[position]]), [len(texts[position])])


def test_encoder_that_returns_batches_in_its_own_order_is_supported(cache: VectorCache) -> None:
    texts = ["short", "a text longer than ten", "tiny"]
    encoder, report = Batching(), EmbedReport()
    for text, item in zip(texts, vectors_for(stream(texts), encoder, cache, report), strict=True):
        assert item.vector is not None
        assert (item.vector == encoder.vector(text)).all()
    assert report.over_length == 1
    again = EmbedReport()
    list(vectors_for(stream([*texts, texts[1]]), encoder, cache, again))
    assert again.over_length == 2, "counted for cached vectors and for repeated texts too"


def test_vectors_computed_before_a_failure_are_kept(cache: VectorCache) -> None:
    with pytest.raises(EndpointUnavailable):
        embed(numbered(10), Batching(fail_after=7), cache)
    rest = Batching()
    embed(numbered(10), rest, cache)
    assert sorted(rest.asked) == numbered(10)[:3]


def test_forgotten_batch_is_detected(cache: VectorCache) -> None:
    with pytest.raises(WrongVectors, match="left texts without a vector"):
        embed(numbered(4), Batching(forget=2), cache)


def test_errors_of_the_encoder_are_passed_on(cache: VectorCache) -> None:
    class Failing(HashEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            raise EncoderOutOfMemory("too large")

    with pytest.raises(EncoderOutOfMemory):
        embed(["a"], Failing(), cache)


def test_each_batch_is_committed_before_the_next_one(cache: VectorCache) -> None:
    committed = []

    class Watched(HashEncoder):
        def encode_batches(self, texts: Sequence[str], contexts: Sequence[str] = ()) -> Iterator[EncodedBatch]:
            for batch in super().encode_batches(texts, contexts):
                yield batch
                committed.append((cache.count_rows(self.fingerprint), len(batch.positions)))

    embed(numbered(1000), Watched(), cache)
    counts, sizes = zip(*committed, strict=True)
    assert len(counts) > 1
    assert list(counts) == list(itertools.accumulate(sizes))


def test_commit_that_fails_raises_for_the_reader(cache: VectorCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise CacheUnavailable("the disk is full")

    monkeypatch.setattr(cache, "put", full)
    with pytest.raises(CacheUnavailable, match="the disk is full"):
        embed(numbered(1000), HashEncoder(), cache)


def test_interrupt_keeps_the_computed_vectors(cache: VectorCache) -> None:
    class Interrupted(HashEncoder):
        def encode_batches(self, texts: Sequence[str], contexts: Sequence[str] = ()) -> Iterator[EncodedBatch]:
            yield EncodedBatch(range(700), self.encode(texts[:700]), [0] * 700)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(numbered(1000), Interrupted(), cache)
    assert cache.read("SELECT count(*) FROM vector") == [(700,)]


def test_stream_is_read_one_window_ahead_only(cache: VectorCache) -> None:
    """Memory does not grow with the stream: after the first item, one window of an endless stream has been read."""
    taken = itertools.count()
    endless = (Passage(text_hash(f"{number}"), f"{number}") for number in taken)
    run = vectors_for(endless, HashEncoder(), cache, slice_texts=50)
    next(run)
    assert next(taken) == 50
    taken = itertools.count()
    long = (Passage(f"{number:064x}", "x" * 1000) for number in taken)
    run = vectors_for(long, HashEncoder(), cache, slice_chars=10_000)
    next(run)
    assert next(taken) == 10
