"""LangChain's own standard tests of a retriever, over real engines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from chunksink.chunkbus.errors import extra_needed
from chunksink.retrievers.langchain import ChunksinkRetriever
from chunksink.search.errors import InvalidQuestion, NothingAnswered
from chunksink.search.legs import Legs
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from tests.chunksink.retrievers.support import CUSTOM, TICKETS, LegsIndex
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


def test_document_has_its_text_and_source(legs: Legs) -> None:
    retriever = ChunksinkRetriever(index=LegsIndex(legs), k=1, mode="keyword", context=1)
    (document,) = retriever.invoke('"number 3"')
    assert isinstance(document, Document)
    assert document.page_content == "A cat that has number 3\n\nAnd more of it"
    assert document.metadata["source_uri"] == "3.md"
    assert document.metadata["ranks"] == {"keyword": 1}
    assert "text" not in document.metadata
    assert document.metadata["same_text"] == []


def test_copies_are_one_document(tmp_path: Path) -> None:
    with legs_over(tmp_path, [family(f"v{n}/a.md", "a moored boat") for n in range(2)]) as legs:
        (document,) = ChunksinkRetriever(index=LegsIndex(legs), k=5, collapse=True).invoke("boat")
    (other,) = document.metadata["same_text"]
    assert {document.metadata["source_uri"], other["source_uri"]} == {"v0/a.md", "v1/a.md"}


def test_k_counts_chunks_unless_sources_are_collapsed(tmp_path: Path) -> None:
    with legs_over(tmp_path, [family("a.md", "a cat", "a cat and a mat", "the cat")]) as legs:
        index = LegsIndex(legs)
        assert len(ChunksinkRetriever(index=index, k=3).invoke("cat")) == 3
        assert len(ChunksinkRetriever(index=index, k=3, collapse=True).invoke("cat")) == 1


def test_document_has_its_source_by_the_name_that_langchain_uses(tmp_path: Path) -> None:
    custom = FieldSet.of({"source": FieldOptions(path="metadata.origin")})
    sources = [
        family("a.md", "a cat"),
        family("b.md", "a boat", metadata={"source": "their own"}),
        family("c.md", "a levy", custom=custom, metadata={"origin": "a field"}),
    ]
    with legs_over(tmp_path, sources) as legs:
        retriever = ChunksinkRetriever(index=LegsIndex(replace(legs, fields=custom)), k=1, mode="keyword")
        found = [retriever.invoke(word)[0].metadata["source"] for word in ("cat", "boat", "levy")]
    assert found == ["a.md", "their own", "a field"]


@pytest.mark.promise(11)
@pytest.mark.parametrize("other_tenant", ["other", None])
def test_call_with_another_tenant_is_an_error(other_tenant: Any, legs: Legs) -> None:
    """The author of a chain decides which tenant it sees. A model that writes a call does not."""
    index = LegsIndex(legs)
    retriever = ChunksinkRetriever(index=index, tenant="acme")
    with pytest.raises(InvalidQuestion, match="tenant"):
        retriever.invoke("cat", tenant=other_tenant)
    assert index.tenants == []
    retriever.invoke("cat", tenant="acme")
    retriever.invoke("cat")
    assert index.tenants == ["acme", "acme"]


@pytest.mark.promise(11)
def test_call_can_select_a_tenant(tmp_path: Path) -> None:
    mine = family("a.md", "A cat that is mine", tenant_id="acme")
    yours = family("b.md", "A cat that is yours", tenant_id="other")
    with legs_over(tmp_path, [mine, yours]) as legs:
        retriever = ChunksinkRetriever(index=LegsIndex(legs))
        assert len(retriever.invoke("cat")) == 2
        assert [found.page_content for found in retriever.invoke("cat", tenant="acme")] == ["A cat that is mine"]
        assert [found.page_content for found in retriever.bind(tenant="other").invoke("cat")] == ["A cat that is yours"]
        for nobody in (None, "", 5):
            with pytest.raises(InvalidQuestion, match="tenant"):
                retriever.invoke("cat", tenant=nobody)


@pytest.mark.promise(11)
def test_misspelt_tenant_is_an_error(legs: Legs) -> None:
    index = LegsIndex(legs)
    with pytest.raises(ValidationError, match="tenant_id"):
        ChunksinkRetriever(index=index, tenant_id="acme")  # type: ignore[call-arg]
    retriever = ChunksinkRetriever(index=index)
    for call in (retriever.invoke, retriever.bind(tenant_id="acme").invoke):
        with pytest.raises(TypeError, match="takes no limit, tenant_id; it takes k, mode, filters, tenant"):
            call("cat", limit=1, tenant_id="acme")
    assert index.tenants == []


async def test_asynchronous_call_has_the_same_arguments(legs: Legs) -> None:
    index = LegsIndex(legs)
    retriever = ChunksinkRetriever(index=index)
    with pytest.raises(TypeError, match="takes no top_k"):
        await retriever.ainvoke("cat", top_k=1)
    assert len(await retriever.ainvoke("cat", k=2)) == 2
    await retriever.ainvoke("cat", tenant="acme")
    assert index.tenants == [None, "acme"]


def test_call_accepts_filters_and_langchains_arguments(legs: Legs) -> None:
    retriever = ChunksinkRetriever(index=LegsIndex(legs), name="ours", tags=["a"], metadata={"b": 1})
    assert len(retriever.invoke("cat", {"tags": ["c"]}, k=2, verbose=True, run_id=uuid4())) == 2
    assert retriever.invoke("cat", filters=["source_type=none"]) == []


def test_outage_is_an_error(legs: Legs) -> None:
    nobody = replace(legs, keyword=None, semantic=None, unavailable={"keyword": "fts is out of reach"})
    with pytest.raises(NothingAnswered, match="no answer from keyword search: fts is out of reach"):
        ChunksinkRetriever(index=LegsIndex(nobody), mode="keyword").invoke("cat")


def test_documents_have_custom_fields_and_metadata_and_filters_use_them(tmp_path: Path) -> None:
    with legs_over(tmp_path, TICKETS) as legs:
        index = LegsIndex(replace(legs, fields=CUSTOM))
        retriever = ChunksinkRetriever(index=index, filters=["priority>=2", "due=2026"])
        (document,) = retriever.invoke("cat")
    metadata = {name: document.metadata[name] for name in ("priority", "due", "note")}
    assert metadata == {"priority": 2, "due": "2026-01-31T00:00:00Z", "note": "kept"}


def test_values_of_the_same_name_are_all_kept(tmp_path: Path) -> None:
    custom = FieldSet.of({"score": FieldOptions(type="number"), "note": FieldOptions(path="metadata.remark")})
    metadata = {"score": 7, "remark": "a field", "note": "no field", "id": "T-1", "other": "x"}
    ticket = family("a.md", "a cat", custom=custom, metadata=metadata)
    with legs_over(tmp_path, [ticket]) as legs:
        (document,) = ChunksinkRetriever(index=LegsIndex(replace(legs, fields=custom))).invoke("cat")
    found = document.metadata
    assert (found["id"], found["metadata.id"]) == (ticket.documents[0].id, "T-1")
    assert (found["note"], found["metadata.note"]) == ("a field", "no field")
    assert (found["score"] < 7, found["fields.score"]) == (True, 7)
    assert (found["other"], found.keys() & {"metadata.other", "fields.note"}) == ("x", set())


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core.callbacks", "langchain"),
        ("llamaindex", "llama_index.core.retrievers", "llamaindex"),
    ],
)
def test_missing_package_names_its_extra(
    module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"chunksink.retrievers.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module(f"chunksink.retrievers.{module}")
    assert extra_needed(extra) in str(caught.value)
    assert (caught.value.name, type(caught.value.__cause__)) == (package, ModuleNotFoundError)
