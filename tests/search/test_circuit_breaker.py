"""An engine that keeps searches waiting is tried by one of them, at intervals."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from chunksink.search import circuit_breaker
from chunksink.search.circuit_breaker import with_circuit_breaker
from chunksink.search.legs import KeywordLeg, Legs
from chunksink.search.query import search
from chunksink.search.question import Question
from chunksink.sinks.capabilities import SupportsFamilies, capability
from chunksink.sinks.chroma import ChromaSink, Server
from chunksink.sinks.errors import BuildMissing, InvalidFilter, NotConfirmed, SinkError, Transient, Unreachable
from chunksink.sinks.meilisearch import MeilisearchReader, MeilisearchSink
from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.reader import Filter, Hit, HybridReader, KeywordReader, Sort, VectorReader
from tests.engines.other_servers import silent_server
from tests.search.support import Failing, family, meaning

TIMEOUT = 0.4
FAMILIES = [family("a.md", "a cat", "a mat")]


@pytest.fixture
def silent() -> Iterator[str]:
    with silent_server() as address:
        yield address


class Engine(Failing):
    """A reader whose searches raise `failure`, if it is set."""

    def __init__(self, failure: SinkError | None) -> None:
        super().__init__(AssertionError("only `search` is implemented"))
        self.failure = failure
        self.seconds = 0.0
        self.calls = 0
        self.refreshed = 0
        self.closed = False
        self.meanwhile: Callable[[], object] | None = None

    def search(
        self,
        query: str,
        limit: int = 10,
        filters: Sequence[Filter] = (),
        *,
        every: bool = False,
        sort: Sort | None = None,
    ) -> list[Hit]:
        self.calls += 1
        time.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        return [hit(query, every=every)]

    def refresh(self) -> None:
        self.refreshed += 1
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()

    def close(self) -> None:
        self.closed = True


def hit(query: str, *, every: bool = False) -> Hit:
    """A hit that contains the arguments of the search."""
    return Hit(query, str(every), 1.0)


def test_calls_after_a_slow_failure_fail_at_once() -> None:
    engine = Engine(NotConfirmed("no answer in time"))
    reader = with_circuit_breaker(engine, seconds=0.3)
    for _ in range(3):
        with pytest.raises(NotConfirmed):
            reader.search("cat")
    assert engine.calls == 1
    time.sleep(0.3)
    engine.failure = None
    assert [reader.search("cat", every=True) for _ in range(2)] == [[hit("cat", every=True)]] * 2
    reader.close()
    assert engine.closed


def test_one_call_tries_the_engine_after_the_pause() -> None:
    engine = Engine(NotConfirmed("no answer in time"))
    reader = with_circuit_breaker(engine, seconds=0.2)
    with pytest.raises(NotConfirmed):
        reader.search("cat")
    time.sleep(0.25)
    engine.seconds = 0.15
    failed: list[float] = []

    def ask() -> None:
        began = time.monotonic()
        with pytest.raises(NotConfirmed):
            reader.search("cat")
        failed.append(time.monotonic() - began)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert engine.calls == 2
    assert len([seconds for seconds in failed if seconds < 0.1]) == 7


def test_refresh_is_postponed_until_the_engine_answers() -> None:
    """It does not wait, does not fail, and does not count as an answer of the engine."""
    engine = Engine(NotConfirmed("no answer in time"))
    reader = with_circuit_breaker(engine, seconds=0.2)
    reader.refresh()
    assert engine.refreshed == 1
    with pytest.raises(NotConfirmed):
        reader.search("cat")
    time.sleep(0.25)
    reader.refresh()
    reader.refresh()
    assert engine.refreshed == 1
    engine.failure = None
    assert [reader.search("cat") for _ in range(2)] == [[hit("cat")]] * 2
    assert engine.refreshed == 2


def test_refresh_stays_due_if_it_fails_or_is_requested_meanwhile() -> None:
    engine = Engine(NotConfirmed("no answer in time"))
    reader = with_circuit_breaker(engine, seconds=0.0)

    def fails() -> None:
        raise NotConfirmed("no answer in time")

    with pytest.raises(NotConfirmed):
        reader.search("cat")
    reader.refresh()
    engine.failure, engine.meanwhile = None, fails
    with pytest.raises(NotConfirmed):
        reader.search("cat")
    engine.meanwhile = reader.refresh
    assert [reader.search("cat") for _ in range(3)] == [[hit("cat")]] * 3
    assert engine.refreshed == 3


@pytest.mark.parametrize(
    ("failure", "seconds", "calls"),
    [
        (Unreachable("refused at once"), 0.0, 2),
        (BuildMissing("removed"), 0.0, 2),
        (InvalidFilter("no such field"), 0.6, 2),
        (Unreachable("an address that never answers"), 0.6, 1),
        (Transient("PostgreSQL did not answer in time"), 0.6, 1),
        (Transient("too many connections"), 0.0, 2),
    ],
)
def test_only_slow_failures_open_the_breaker(
    failure: SinkError, seconds: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuit_breaker, "_LONG_SECONDS", 0.5)
    engine = Engine(failure)
    engine.seconds = seconds
    reader = with_circuit_breaker(engine)
    for _ in range(2):
        with pytest.raises(type(failure)):
            reader.search("cat")
    assert engine.calls == calls


def test_breaker_has_the_capabilities_of_its_reader(legs: Legs) -> None:
    assert legs.keyword is not None and legs.semantic is not None
    kinds = (KeywordReader, SupportsFamilies, VectorReader, HybridReader)
    for reader, expected in (
        (legs.keyword.reader, [KeywordReader, SupportsFamilies]),
        (legs.semantic.reader, [VectorReader]),
    ):
        breaker = with_circuit_breaker(reader)
        assert [kind for kind in kinds if capability(breaker, kind) is breaker] == expected
        assert [kind for kind in kinds if capability(breaker, kind) is None] == [
            kind for kind in kinds if kind not in expected
        ]


def test_breaker_forwards_all_calls(legs: Legs) -> None:
    assert legs.keyword is not None and legs.semantic is not None
    words, plain = with_circuit_breaker(legs.keyword.reader), legs.keyword.reader
    ids = [found.id for found in plain.search("cat")]
    filters = [Filter("language", any_of=("none",))]
    assert (words.marker(), words.get(ids)) == (plain.marker(), plain.get(ids))
    assert words.search("cat", filters=filters) == [] != words.search("cat") == plain.search("cat")
    assert words.snippets("cat", ids) == plain.snippets("cat", ids)
    assert words.max_score("cat") == plain.max_score("cat")
    assert words.facets("cat", ["language"]) == plain.facets("cat", ["language"])
    assert words.families(ids).keys() == set(ids) != set()
    vectors, nearest, vector = with_circuit_breaker(legs.semantic.reader), legs.semantic.reader, meaning("cat")
    assert vectors.query(vector, 1) == nearest.query(vector, 1) != []
    assert vectors.similarities(vector, ids) == nearest.similarities(vector, ids) != {}


def test_silent_meilisearch_costs_one_timeout(silent: str, legs: Legs) -> None:
    with closing(Connection(silent, "key", timeout=TIMEOUT)) as connection:
        keyword = KeywordLeg(with_circuit_breaker(MeilisearchReader(connection, "chunks")), "meilisearch", "words")
        stopped = replace(legs, keyword=keyword)
        began = time.monotonic()
        answers = [search(stopped, Question("cat", context=1, facets=("language",))) for _ in range(5)]
        assert TIMEOUT <= time.monotonic() - began < 2 * TIMEOUT + 1
    for answer in answers:
        assert [hit.text for hit in answer.hits] == ["a cat"]
        assert answer.unavailable.keys() == {"keyword"}


def test_silent_engine_times_out_after_the_search_timeout(silent: str) -> None:
    """The timeout of writes may be longer."""
    sinks = (
        MeilisearchSink(silent, "key", settings={}, search_timeout=TIMEOUT),
        ChromaSink(Server(silent, search_timeout=TIMEOUT)),
    )
    for sink in sinks:
        with closing(sink):
            began = time.monotonic()
            with pytest.raises(NotConfirmed):
                sink.reader("b1")
            assert TIMEOUT <= time.monotonic() - began < 5


def test_semantic_search_answers_if_the_keyword_engine_is_silent(legs: Legs) -> None:
    """Without it, the sources of the documents are read from the vector sink."""
    assert legs.semantic is not None
    silent_words = replace(
        legs,
        semantic=replace(
            legs.semantic, families=with_circuit_breaker(Failing(NotConfirmed("no answer in time"))).families
        ),
    )
    expected, answer = (search(each, Question("cat", mode="semantic")) for each in (legs, silent_words))
    assert [hit.parent_id for hit in answer] == [hit.parent_id for hit in expected] != []
    assert answer.unavailable == {}
