"""LangChain's own standard tests of a retriever, over real engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from search.legs import Legs
from search.retrievers.langchain import ChunksinkRetriever
from tests.search.retrievers.support import LegsIndex
from tests.search.support import family, legs_over

FAMILIES = [family(f"{number}.md", f"A cat that has number {number}", "And more of it") for number in range(6)]


@pytest.fixture(scope="module")
def legs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("index"), FAMILIES) as legs:
        yield legs


class TestStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _over(self, legs: Legs) -> None:
        self._legs = legs

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return ChunksinkRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": LegsIndex(self._legs)}

    @property
    def retriever_query_example(self) -> str:
        return "cat"


def test_a_document_says_where_it_is_from(legs: Legs) -> None:
    retriever = ChunksinkRetriever(index=LegsIndex(legs), k=1, mode="keyword", context=1)
    (document,) = retriever.invoke('"number 3"')
    assert isinstance(document, Document)
    assert document.page_content == "A cat that has number 3\n\nAnd more of it"
    assert document.metadata["source_uri"] == "3.md"
    assert document.metadata["ranks"] == {"keyword": 1}
    assert "text" not in document.metadata


@pytest.mark.promise(11)
def test_no_call_names_another_tenant(legs: Legs) -> None:
    """Whose documents a chain sees is said by who builds it, not by what a model writes into a call."""
    index = LegsIndex(legs)
    retriever = ChunksinkRetriever(index=index, tenant="acme")
    retriever.invoke("cat", tenant="other")
    assert index.tenants == ["acme"]


def test_a_call_may_filter(legs: Legs, tmp_path: Path) -> None:
    retriever = ChunksinkRetriever(index=LegsIndex(legs))
    assert retriever.invoke("cat", filters=["source_type=none"]) == []
