"""Reranking over HTTP: the order of the server, and the fused order if it fails."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from chunksink.embeddings.errors import RerankFailed
from chunksink.embeddings.rerankers import open_reranker
from chunksink.search.answer import Answer
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.search.rerank import Reranking
from chunksink.settings.rerank import RerankOptions
from chunksink.sinks.reader import Sort
from tests.search.support import MODES, family
from tests.support.rerank_server import RerankServer, rerank_server

FAMILIES = [
    family("pets.md", "the cat sleeps", title="Pets"),
    family("sea.md", "a cat on a boat that sails far away"),
    family("law.md", "a cat in law and a dog"),
    family("copy.md", "a cat in law and a dog"),
]
KEY = "canary-key-77a1"


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with rerank_server() as server:
        yield server


@contextmanager
def reranked(legs: Legs, server: RerankServer, **options: Any) -> Iterator[Legs]:
    chosen = RerankOptions(model="m", url=server.url, **options)
    with closing(Reranking(open_reranker(chosen), chosen.top, chosen.deadline)) as reranking:
        yield replace(legs, reranking=reranking)


def ask(legs: Legs, text: str = "cat", mode: Mode = "hybrid", **more: Any) -> Answer:
    return search(legs, Question(text, mode=mode, **more))


def test_file_that_the_query_names_stays_first(legs: Legs, server: RerankServer) -> None:
    with reranked(legs, server) as ranking:
        first, second, *_ = ask(ranking, "sea.md")
    assert (first.source_uri, first.rerank) == ("sea.md", None)
    assert second.rerank is not None
    assert second.rerank.place > 1


class Hanging:
    """A reranker that answers when it is released."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def load(self) -> None:
        """Nothing to load."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.released.wait(60)
        return [0.0] * len(texts)

    def close(self) -> None:
        """Nothing to close."""


def test_query_does_not_wait_for_another_one_beyond_the_deadline() -> None:
    reranker = Hanging()
    reranking = Reranking(reranker, 3, 0.2)
    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(reranking.order, "cat", []) for _ in range(2)]
        try:
            assert all(isinstance(call.exception(20), RerankFailed) for call in calls)
        finally:
            reranker.released.set()


@pytest.mark.parametrize("mode", MODES)
def test_hits_have_the_order_of_the_reranker(legs: Legs, server: RerankServer, mode: Mode) -> None:
    """Titles count. One call scores all texts. Copies stay one hit."""
    before = ask(legs, mode=mode)
    with reranked(legs, server) as with_server:
        answer = ask(with_server, mode=mode)
    assert [hit.text for hit in answer] == [
        "a cat on a boat that sails far away",
        "a cat in law and a dog",
        "the cat sleeps",
    ]
    assert [hit.rerank.score for hit in answer if hit.rerank] == [35, 22, len("Pets\n\nthe cat sleeps")]
    assert len(answer[1].same_text) == 1
    (request,) = server.requests
    assert (request["model"], request["query"]) == ("m", "cat")
    places = {text: place for place, text in enumerate(request["documents"], start=1)}
    assert answer[0].rerank is not None
    assert answer[0].rerank.place == places[answer[0].text]
    assert {hit.chunk_id: hit.score for hit in answer} == {hit.chunk_id: hit.score for hit in before}
    assert answer.as_json(explain=True)["hits"][0]["explain"]["rerank"]["score"] == 35


def test_only_the_best_are_ranked_again_and_pages_fit(legs: Legs, server: RerankServer) -> None:
    fused = [hit.text for hit in ask(legs)]
    with reranked(legs, server, top=2) as with_server:
        texts = [hit.text for hit in ask(with_server)]
        pages = [ask(with_server, limit=1, offset=offset)[0].text for offset in range(3)]
    assert pages == texts
    assert {len(request["documents"]) for request in server.requests} == {2}
    assert texts[2:] == fused[2:]


def test_sorted_search_is_not_ranked_again(legs: Legs, server: RerankServer) -> None:
    with reranked(legs, server) as with_server:
        assert ask(with_server, sort=Sort("filename")).hits
        assert not ask(with_server, "zebra", mode="keyword").hits
    assert server.requests == []


def test_other_form_of_an_answer(legs: Legs, server: RerankServer) -> None:
    server.answer = 200, [{"index": number, "score": 0.1 * number} for number in range(4)]
    with reranked(legs, server) as with_server:
        answer = ask(with_server)
    assert next(hit.rerank.place for hit in answer if hit.rerank) == 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((500, {"error": f"Bearer {KEY} is bad"}), "answered 500"),
        ((200, {"results": [{"index": 0, "relevance_score": 1}]}), "did not return a score"),
        ((200, {"results": None}), "did not return a score"),
        ((200, [{"index": number, "score": float("nan")} for number in range(4)]), "not a finite number"),
        ((200, "no"), "did not return a score"),
    ],
)
def test_wrong_answer_keeps_the_fused_order(
    legs: Legs, server: RerankServer, answer: tuple[int, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RERANK_KEY", KEY)
    server.answer = answer
    with reranked(legs, server, key_variable="RERANK_KEY") as with_server:
        found = ask(with_server)
    assert server.keys == [f"Bearer {KEY}"]
    assert [hit.chunk_id for hit in found] == [hit.chunk_id for hit in ask(legs)]
    assert not any(hit.rerank for hit in found)
    assert found.not_reranked is not None
    assert reason in found.not_reranked
    assert KEY not in found.not_reranked


def test_late_scores_keep_the_fused_order(legs: Legs, server: RerankServer) -> None:
    server.hangs = True
    with reranked(legs, server, deadline=0.2) as with_server:
        found = ask(with_server)
        assert len(ask(with_server)) == 3
    assert len(server.requests) == 1, "for ten seconds no search waits for it again"
    assert [hit.chunk_id for hit in found] == [hit.chunk_id for hit in ask(legs)]
    assert found.not_reranked is not None


def test_missing_server_or_key_keeps_the_fused_order(legs: Legs, server: RerankServer) -> None:
    away = RerankServer()
    away.url = "http://127.0.0.1:9/rerank"
    secret = RerankServer()
    secret.url = server.url.replace("//", f"//user:{KEY}@")
    for one, options in ((away, {}), (secret, {}), (server, {"key_variable": "NO_SUCH_VARIABLE"})):
        with reranked(legs, one, **options) as with_server:
            found = ask(with_server)
        assert len(found) == 3
        assert found.not_reranked is not None
        assert KEY not in found.not_reranked
        assert found.notice is not None
        assert one.url not in found.notice, "the notice is for everybody"
    assert server.requests == []


def test_error_of_a_model_keeps_the_fused_order(legs: Legs) -> None:
    class Full:
        def load(self) -> None:
            pass

        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            raise RuntimeError("out of memory")

        close = load

    found = ask(replace(legs, reranking=Reranking(Full(), 20, 5.0)))
    assert len(found) == 3
    assert "out of memory" in (found.not_reranked or "")
