"""The context of a text: its content, how it is embedded, and how the cache separates vectors by it."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.context import context_before, context_hash, context_of
from chunksink.embeddings.encoder import Passage
from chunksink.embeddings.maintenance import drop, rows_of_texts, unneeded_rows, verify
from chunksink.embeddings.references import embedding_ref, raw_key
from chunksink.embeddings.stats import lengths, show
from chunksink.embeddings.tokens import Layout, cut
from chunksink.embeddings.vectors import EmbedReport, vectors_for
from tests.embeddings.conftest import WORDS
from tests.embeddings.endpoint import Server, connect
from tests.embeddings.helpers import HashEncoder, cosines, load_with_torch, text_hash

CONTEXT = "title, headings"


def passage(text: str, context: str) -> Passage:
    return Passage(text_hash(text) + context_hash(context).hex(), text, context)


@pytest.mark.parametrize(
    ("title", "headings", "context"),
    [
        (None, (), ""),
        ("", (), ""),
        ("Tools", (), "Tools"),
        (None, ("Tools", "Saws"), "Saws"),
        ("Tools", ("Tools", "Saws"), "Tools\nSaws"),
        ("Tools", ("Tools",), "Tools"),
        ("t" * 120, ("outer", "innermost"), "t" * 100 + "\ninnermost"),
        ("Tools", ("outer", "word " * 50), "Tools\n" + ("word " * 20).strip()),
    ],
)
def test_context_has_the_title_and_the_innermost_heading(
    title: str | None, headings: tuple[str, ...], context: str
) -> None:
    assert context_of(title, headings) == context


def test_heading_that_begins_the_text_is_not_repeated() -> None:
    assert context_before("## Saws\n\nThey cut.", "Tools\nSaws") == "Tools\n\n"
    assert (
        context_before("Saws", "Saws")
        == context_before("# Setup C#\n\nText", "Setup C#")
        == context_before("# Saws #", "Saws")
        == ""
    )
    assert context_before("Saws cut.", "Tools\nSaws") == "Tools\nSaws\n\n"
    assert context_before("anything", "") == ""


def test_empty_text_with_a_long_context_has_one_window(server: Server) -> None:
    layout = Layout((), (), max_length=10)
    assert cut(list(range(20)), 0, layout, "windows", context_length=20) == [list(range(5))]
    with closing(connect(server, max_length=10, embed_context=CONTEXT)) as encoder:
        encoder.encode([""], ["a context of more than ten characters"])
    assert server.requests[-1]["input"] == ["a context "[:5]]


def test_fingerprint_changes_only_with_a_context(tiny_folder: Path, server: Server) -> None:
    plain, off, on = (
        load_with_torch(str(tiny_folder), **options).info
        for options in ({}, {"embed_context": ""}, {"embed_context": CONTEXT})
    )
    assert plain.fingerprint == off.fingerprint != on.fingerprint
    assert connect(server).info.fingerprint != connect(server, embed_context=CONTEXT).info.fingerprint


def test_context_precedes_a_text_and_each_window_of_a_long_one(tiny_folder: Path, cache: VectorCache) -> None:
    plain = load_with_torch(str(tiny_folder), precision="float32", passage_prompt="passage : ")
    encoder = load_with_torch(str(tiny_folder), precision="float32", passage_prompt="passage : ", embed_context=CONTEXT)
    words = (WORDS[:10] * 8)[:75]  # beside 2 tokens of prompt and 2 of context, 26 fit: three windows of 25
    long = " ".join(words)
    report = EmbedReport()
    items = [passage("the cat", "dog mat"), passage(long, "dog mat"), passage("the cat", "")]
    short, mean, without = (item.vector for item in vectors_for(items, encoder, cache, report))
    assert short is not None and mean is not None and without is not None
    parts = plain.encode(["dog mat\n\n" + " ".join(words[start : start + 25]) for start in (0, 25, 50)])
    assert cosines(mean[None], parts.sum(axis=0)[None])[0] > 0.99999
    expected = plain.encode(["dog mat\n\nthe cat", "the cat"])
    assert cosines(np.stack([short, without]), expected).min() > 0.99999
    assert report.over_length == 1
    assert lengths(cache, encoder.info.fingerprint, [raw_key(items[1].key)]) == {raw_key(items[1].key): 81}


@pytest.mark.parametrize("context_length", [1, 3, 5, 30])
def test_text_gets_at_least_half_of_each_window(context_length: int) -> None:
    layout = Layout(prefix=(1,), suffix=(2,), max_length=12)
    body = list(range(100, 200))
    windows = cut(body, 2, layout, "windows", context_length)
    head = body[: min(2 + context_length, 5)]
    assert all(len(window) <= 12 and window[1 : 1 + len(head)] == head for window in windows)
    assert [token for window in windows for token in window[1 + len(head) : -1]] == body[2 + context_length :]
    [only] = cut(body, 2, layout, "truncate", context_length)
    assert only == [1, *head, *body[2 + context_length :][: 10 - len(head)], 2]


def test_endpoint_gets_the_context_in_each_window(server: Server, cache: VectorCache) -> None:
    encoder = connect(server, max_length=20, embed_context=CONTEXT, passage_prompt="p: ")
    items = [passage("short", "Title"), passage("0123456789" * 3, "Title"), passage("0123456789" * 3, "A long heading")]
    report = EmbedReport()
    list(vectors_for(items, encoder, cache, report))
    asked = {text for request in server.requests for text in request["input"]}
    assert {"p: Title\n\nshort", "p: Title\n\n0123456789", "p: A long hea0123456789"} <= asked
    assert all(len(text) <= 23 for text in asked if "0" in text and "keeper" not in text)
    assert report.over_length == 2


def test_cache_keeps_the_vectors_of_a_text_apart_by_context(cache: VectorCache) -> None:
    encoder = HashEncoder(embed_context=CONTEXT)
    items = [passage("a", context) for context in ("", "one", "two", "one")]
    vectors = [item.vector for item in vectors_for(items, encoder, cache)]
    assert encoder.asked == ["a", "one\n\na", "two\n\na"]
    assert all(item.cached for item in vectors_for(items, encoder, cache))
    ref = embedding_ref(encoder.fingerprint, items[1].key)
    shown = show(cache, ref)
    assert shown is not None
    assert (shown.vector == vectors[1]).all()
    assert verify(cache).is_sound
    plain = HashEncoder(name="plain")
    list(vectors_for(items, plain, cache))
    assert plain.asked == ["a"], "this model gets no context"


def test_row_moved_to_another_context_is_detected(cache: VectorCache) -> None:
    encoder = HashEncoder(embed_context=CONTEXT)
    list(vectors_for([passage("a", "one")], encoder, cache))
    with cache.transaction() as connection:
        connection.execute("UPDATE vector SET context_hash = ?", [context_hash("two")])
    report = EmbedReport()
    list(vectors_for([passage("a", "two")], encoder, cache, report))
    assert (report.corrupt, report.encoded) == (1, 1)


def test_surplus_is_found_by_text_and_context_and_forgotten_by_text(cache: VectorCache) -> None:
    encoder = HashEncoder(embed_context=CONTEXT)
    items = [passage(text, context) for text in ("a", "b") for context in ("one", "two")]
    list(vectors_for(items, encoder, cache))
    unneeded = unneeded_rows(cache, keys=[items[0].key], fingerprints=None)
    assert (unneeded.rows, unneeded.kept_rows) == (3, 1)
    drop(cache, rows_of_texts(cache, [text_hash("a")]))
    assert [item.cached for item in vectors_for(items, encoder, cache)] == [False, False, True, True]


def test_ten_thousand_contexts_of_one_text_are_looked_up_by_the_index(cache: VectorCache) -> None:
    encoder = HashEncoder(embed_context=CONTEXT)
    keys = [raw_key(passage("a", f"context {number}").key) for number in range(10_000)]
    cache.put(encoder.info, keys, np.ones((len(keys), 16), dtype=np.float32))
    statements: list[str] = []
    with cache.transaction() as connection:
        connection.set_trace_callback(statements.append)
    found = cache.lookup(encoder.fingerprint, keys[:1], dimension=16)
    assert len(found.positions) == 1
    [select] = [each for each in statements if "context_hash" in each]
    plan = " ".join(row[-1] for row in cache.read(f"EXPLAIN QUERY PLAN {select}"))
    assert "vector_key (fingerprint=? AND text_hash=? AND context_hash=?)" in plan


def test_endpoint_is_compared_with_vectors_in_their_contexts(server: Server, cache: VectorCache) -> None:
    """As with the cache of an earlier version, which lacks the fixed texts."""
    encoder = connect(server, embed_context=CONTEXT)
    list(vectors_for([passage("a", "Title")], encoder, cache))
    with cache.transaction() as connection:
        connection.execute("DELETE FROM vector WHERE context_hash = x''")
    items = list(vectors_for([passage("a", "Title"), passage("b", "Title")], encoder, cache))
    assert [item.cached for item in items] == [True, False]
    assert ["Title\n\na"] in [request["input"] for request in server.requests[-4:]]
