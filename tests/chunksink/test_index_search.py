"""`Index.search` and `Index.get_chunk` refuse alike what cannot be asked, with a message for whoever asks."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import chunksink
from chunksink.index import Index
from chunksink.search.errors import InvalidQuestion
from tests.chunksink.shell import Shell
from tests.support.bus import source


@pytest.fixture
def index(quick_shell: Shell) -> Iterator[Index]:
    quick_shell.commit("p1", source("a.md", "a cat", "a mat"))
    with chunksink.open() as index:
        index.sync()
        yield index


@pytest.mark.parametrize("chunk_id", [None, 7, b"x", ["x"]], ids=repr)
def test_a_chunk_id_is_a_text(chunk_id: Any, index: Index) -> None:
    with pytest.raises(InvalidQuestion, match=r"the chunk_id is a text, not .*: take that of a hit"):
        index.get_chunk(chunk_id)


@pytest.mark.parametrize("context", [-1, 21, 1.5, True, "1", None], ids=repr)
def test_the_context_is_limited_as_that_of_a_search(context: Any, index: Index) -> None:
    with pytest.raises(InvalidQuestion, match="context") as of_chunk:
        index.get_chunk("x", context=context)
    with pytest.raises(InvalidQuestion, match="context") as of_search:
        index.search("cat", context=context)
    assert str(of_chunk.value) == str(of_search.value)


def test_what_is_no_text_has_no_vector(index: Index) -> None:
    with pytest.raises(InvalidQuestion, match="the query is a text, not 5"):
        index.embed_query(5)  # type: ignore[arg-type]


def test_where_nothing_is_searched_by_meaning_no_query_is_embedded(index: Index) -> None:
    with pytest.raises(InvalidQuestion, match="no build of this index is searched by meaning"):
        index.embed_query("cat")


def test_facets_are_one_field_several_or_none(index: Index) -> None:
    for given, counted in ((None, set()), ("language", {"language"}), (["language", "year"], {"language", "year"})):
        assert set(index.search("cat", mode="keyword", facets=given).facets) == counted
    with pytest.raises(InvalidQuestion, match="the facets 5 are no list"):
        index.search("cat", facets=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("allowed", [-1, "3", True, None, 1.5], ids=repr)
def test_deletions_are_allowed_by_number(allowed: Any, index: Index) -> None:
    for run in (index.sync, index.repair, index.rebuild, partial(index.ingest, "notes")):
        with pytest.raises(ValueError, match="allow_deletions is a number of sources, 0 or more, not"):
            run(allow_deletions=allowed)
