"""Vectors of queries: simultaneous queries are computed in one batch, and each gets its own vector."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chunksink.embeddings import graphs, load, resolve
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.errors import EncoderOutOfMemory, ModelUnavailable, TextRefused
from chunksink.embeddings.graphs import ExpectedRuntime
from chunksink.live import LiveSearch
from chunksink.search.access import EVERYTHING
from chunksink.search.query_vectors import QueryEncoder, QueryModel
from chunksink.search.question import Question
from chunksink.settings.config import Config
from tests.chunksink.shell import Models, Shell
from tests.embeddings.helpers import HashEncoder
from tests.support.bus import source

SECONDS = 20


class Gate(HashEncoder):
    """An encoder that waits until it is released. It refuses or fails for texts that contain those words."""

    def __init__(self, like: HashEncoder) -> None:
        super().__init__(dimension=like.dimension, name=like.info.name)
        self.batches: list[list[str]] = []
        self.computing = threading.Event()
        self.go_on = threading.Event()
        self.interrupted = False
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.batches.append(list(texts))
        self.computing.set()
        assert self.go_on.wait(SECONDS)
        if any("refuse" in text for text in texts):
            raise TextRefused("not this one")
        if any("fail" in text for text in texts):
            raise EncoderOutOfMemory("too much")
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        assert not self.closed, "while it computed"
        vectors = super().encode(texts)
        for text, vector in zip(texts, vectors, strict=True):
            if "nothing" in text:
                vector[:] = np.nan if "nan" in text else 0
        return vectors


@pytest.fixture
def gate(shell: Shell, models: Models, monkeypatch: pytest.MonkeyPatch) -> Gate:
    shell.begin("queried", "sync", p1=[source("a.md", "a cat")])
    (like, _other) = models.known.values()
    gate = Gate(like)
    monkeypatch.setattr(load, "load_encoder", lambda *_a, **_k: gate)
    return gate


@pytest.fixture
def model(shell: Shell, gate: Gate) -> Iterator[QueryModel]:
    with closing(QueryEncoder()) as queries:
        yield queries.of(shell.live().model, shell.live().encoder)


def asked_at_once(model: QueryModel, gate: Gate, first: str, others: Sequence[str]) -> list[Any]:
    """The result or the error of each query. All but the first arrive while the first is computed."""

    def ask(text: str) -> Any:
        arrived.release()
        try:
            return model(text)
        except Exception as error:
            return error

    arrived = threading.Semaphore(0)
    with ThreadPoolExecutor(1 + len(others)) as pool:
        answers = [pool.submit(ask, first)]
        assert gate.computing.wait(SECONDS)
        answers += [pool.submit(ask, text) for text in others]
        for _ in range(1 + len(others)):
            assert arrived.acquire(timeout=SECONDS)
        while set(others) - set(model._waiting):
            time.sleep(0.001)
        gate.go_on.set()
        return [answer.result(SECONDS) for answer in answers]


def test_queries_during_a_batch_form_the_next_batch(model: QueryModel, gate: Gate) -> None:
    others = [f"query {number}" for number in range(6)]
    vectors = asked_at_once(model, gate, "first", others)
    assert gate.batches[0][0] == "first"
    assert [sorted(batch) for batch in gate.batches[1:]] == [others]
    plain = HashEncoder(dimension=gate.dimension, name=gate.info.name)
    assert np.array_equal(vectors, plain.encode(["first", *others]))
    assert model("query 3") is vectors[4]  # from the cache
    assert len(gate.batches) == 2


def test_first_batch_measures_the_similarity_of_unrelated_texts(model: QueryModel, gate: Gate) -> None:
    gate.go_on.set()
    assert model.floor() is None
    model("first")
    floor = model.floor()
    assert floor is not None
    assert 0.1 < floor < 0.4, "the vectors of this encoder are random"
    model("second")
    assert gate.batches[1] == ["second"]
    assert model.floor() == floor


def test_batch_is_limited_and_has_no_duplicates(model: QueryModel, gate: Gate) -> None:
    others = [f"query {number}" for number in range(20)]
    asked_at_once(model, gate, "first", ["first", *others, *others])
    assert [len(batch) for batch in gate.batches[1:]] == [16, 4]


def test_refused_query_does_not_affect_its_batch(model: QueryModel, gate: Gate) -> None:
    answers = asked_at_once(model, gate, "first", ["a", "refuse me", "b"])
    assert [isinstance(answer, TextRefused) for answer in answers] == [False, False, True, False]
    assert model("c") is not None  # a refusal starts no pause


def test_failed_batch_raises_in_every_waiting_thread(model: QueryModel, gate: Gate) -> None:
    """Each thread gets its own exception: one that is raised repeatedly grows with every question."""
    answers = asked_at_once(model, gate, "first", ["a", "fail", "b"])
    assert [isinstance(answer, EncoderOutOfMemory) for answer in answers] == [False, True, True, True]
    errors = []
    for _ in range(2):
        with pytest.raises(EncoderOutOfMemory, match=r"^too much$") as failed:
            model("later")
        errors.append(failed.value)
    assert errors[0] is not errors[1]
    assert len(gate.batches) == 2


def test_interrupted_query_does_not_affect_the_others(model: QueryModel, gate: Gate) -> None:
    gate.interrupted = True
    ended = []

    def ask(text: str) -> Any:
        try:
            return model(text)
        except KeyboardInterrupt:
            ended.append(text)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(ask, "first")
        assert gate.computing.wait(SECONDS)
        others = [pool.submit(ask, text) for text in ("first", "second")]
        while "second" not in model._waiting:
            time.sleep(0.001)
        gate.go_on.set()
        first.result(SECONDS)
        assert all(other.result(SECONDS) is not None for other in others)
    assert (ended, model._waiting) == (["first"], {})


@pytest.mark.parametrize("text", ["nothing", "nothing but nan"])
def test_query_with_an_unusable_vector_is_refused_alone(model: QueryModel, gate: Gate, text: str) -> None:
    answers = asked_at_once(model, gate, "first", ["a", text, "b"])
    assert [isinstance(answer, TextRefused) for answer in answers] == [False, False, True, False]
    with closing(LiveSearch(Config())) as live:
        answer = live.search(Question(f"cat {text}"), EVERYTHING)
    assert [hit.text for hit in answer.hits] == ["a cat"]
    assert answer.unavailable.keys() == {"semantic"}


def test_query_when_the_model_cannot_be_loaded_raises(model: QueryModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: object, **_options: object) -> None:
        raise ModelUnavailable("it is not here")

    monkeypatch.setattr(load, "load_encoder", fails)
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="that made the live index cannot be loaded: it is not here"):
            model("a cat")


@pytest.mark.parametrize(
    ("expected", "loads"),
    [
        (ExpectedRuntime(prepared=True), True),
        (ExpectedRuntime(reason="on the GPU"), True),
        (ExpectedRuntime(), False),  # a graph must be made first
    ],
)
def test_model_is_loaded_in_the_background_if_that_takes_seconds(
    model: QueryModel, gate: Gate, monkeypatch: pytest.MonkeyPatch, expected: ExpectedRuntime, loads: bool
) -> None:
    loaded: list[Gate] = []
    monkeypatch.setattr(load, "load_encoder", lambda *_a, **_k: loaded.append(gate) or gate)
    monkeypatch.setattr(resolve, "resolve_model", lambda *_a, **_k: None)
    monkeypatch.setattr(graphs, "expected_runtime", lambda *_: expected)
    model.prepare()
    for thread in threading.enumerate():
        if thread.name == "chunksink-load":
            thread.join(SECONDS)
    assert bool(loaded) is loads


def test_moved_model_is_loaded_from_its_new_place(shell: Shell, gate: Gate) -> None:
    live = shell.live()
    moved = replace(live.encoder, model="elsewhere")
    with closing(QueryEncoder()) as queries:
        assert queries.of(live.model, live.encoder) is queries.of(replace(live.model), replace(live.encoder))
        assert queries.of(live.model, live.encoder) is not queries.of(live.model, moved)


def test_close_during_a_batch_waits_for_it(model: QueryModel, gate: Gate) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(model, "first")
        assert gate.computing.wait(SECONDS)
        model.close()
        assert gate.closed == 0
        gate.go_on.set()
        assert answer.result(SECONDS) is not None
    assert gate.closed == 1
