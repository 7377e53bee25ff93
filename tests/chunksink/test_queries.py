"""Vectors of queries: computed once with the model of the live index, and cached."""

import gc
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from weakref import ReferenceType, ref

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


def test_vector_of_a_query_is_computed_once(model: QueryModel, gate: Gate) -> None:
    gate.go_on.set()
    vector = model("a query")
    plain = HashEncoder(dimension=gate.dimension, name=gate.info.name)
    assert np.array_equal(vector, plain.encode(["a query"])[0])
    assert model("a query") is vector
    assert len(gate.batches) == 1


def test_queries_at_once_get_their_own_vectors(model: QueryModel, gate: Gate) -> None:
    gate.go_on.set()
    texts = [f"query {number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        vectors = list(pool.map(model, texts))
    assert np.array_equal(vectors, HashEncoder(dimension=gate.dimension, name=gate.info.name).encode(texts))


def test_first_query_measures_the_similarity_of_unrelated_texts(model: QueryModel, gate: Gate) -> None:
    gate.go_on.set()
    assert model.floor() is None
    model("first")
    floor = model.floor()
    assert floor is not None
    assert 0.1 < floor < 0.4, "the vectors of this encoder are random"
    model("second")
    assert gate.batches[1] == ["second"]
    assert model.floor() == floor
    assert model.floor("second") == floor
    assert model.floor("blorfen") == pytest.approx(1), "as similar as made-up words are to each other"


def test_refused_query_starts_no_pause(model: QueryModel, gate: Gate) -> None:
    gate.go_on.set()
    with pytest.raises(TextRefused):
        model("refuse me")
    assert model("another") is not None


def test_failure_starts_a_pause(model: QueryModel, gate: Gate) -> None:
    """Each query gets its own exception: one that is raised repeatedly grows with every question."""
    gate.go_on.set()
    errors = []
    for text in ("fail", "later", "later"):
        with pytest.raises(EncoderOutOfMemory, match=r"^too much$") as failed:
            model(text)
        errors.append(failed.value)
    assert len(set(map(id, errors))) == 3
    assert len(gate.batches) == 1


@pytest.mark.parametrize("text", ["nothing", "nothing but nan"])
def test_query_with_an_unusable_vector_is_refused(model: QueryModel, gate: Gate, text: str) -> None:
    gate.go_on.set()
    with pytest.raises(TextRefused):
        model(text)
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


def test_queries_at_once_try_to_load_a_missing_model_once(model: QueryModel, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def fails(*_arguments: object, **_options: object) -> None:
        tries.append(1)
        time.sleep(0.5)  # the others wait meanwhile
        raise ModelUnavailable("it is not here")

    monkeypatch.setattr(load, "load_encoder", fails)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(model, f"query {number}") for number in range(4)]
        failures = [one.exception(SECONDS) for one in waiting]
    assert ({type(one) for one in failures}, len(tries)) == ({ModelUnavailable}, 1)


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


def test_closed_model_is_freed_without_garbage_collection(
    shell: Shell, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[ReferenceType[HashEncoder]] = []

    def load_encoder(*_arguments: object, **_options: object) -> HashEncoder:
        encoder = HashEncoder(dimension=gate.info.dimension, name=gate.info.name)
        loaded.append(ref(encoder))
        return encoder

    monkeypatch.setattr(load, "load_encoder", load_encoder)
    with closing(QueryEncoder()) as queries:
        model = queries.of(shell.live().model, shell.live().encoder)
        gc.disable()
        try:
            assert model("cat") is not None
            assert loaded[0]() is not None
            queries.close()
            assert loaded[0]() is None
        finally:
            gc.enable()


def test_close_during_a_query_waits_for_it(model: QueryModel, gate: Gate) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(model, "first")
        assert gate.computing.wait(SECONDS)
        model.close()
        assert gate.closed == 0
        gate.go_on.set()
        assert answer.result(SECONDS) is not None
    assert gate.closed == 1
