"""The tools that are compared: their adapters, options and stores."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.faults.stores import ChromaStore, LanceStore, Store

PACKAGES = {
    "chunksink": ("chunksink", "chromadb"),
    "langchain": ("langchain-core", "langchain-classic", "langchain-chroma", "chromadb"),
    "llamaindex": ("llama-index-core", "llama-index-vector-stores-chroma", "chromadb"),
    "cocoindex": ("cocoindex", "lancedb"),
}
STORES: dict[str, Store] = {
    "chunksink": ChromaStore("home/chroma", "source_uri"),
    "langchain": ChromaStore("store", "source"),
    "llamaindex": ChromaStore("store", "source"),
    "cocoindex": LanceStore(),
}
_REPORTS = {
    "chunksink": re.compile("repaired|refused|rebuild is due"),
    "cocoindex": re.compile(r"\bERROR\b"),
}
"""Output that reports a problem although the exit code is 0."""


@dataclass(frozen=True)
class Tool:
    """A tool as its documentation shows it. `remedy` has the options of the run after a fault."""

    title: str
    adapter: str
    options: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()

    @property
    def store(self) -> Store:
        return STORES[self.adapter]

    def remark(self, code: int, output: str) -> str:
        """The last line that reports a problem; empty if nothing was reported."""
        lines = output.strip().splitlines()
        pattern = _REPORTS.get(self.adapter)
        found = [line for line in lines if pattern is not None and pattern.search(line)]
        return found[-1] if found else lines[-1] if code and lines else ""


TOOLS = {
    "chunksink": Tool("chunksink", "chunksink"),
    "chunksink-rebuild": Tool("chunksink, then `sync --rebuild`", "chunksink", (), ("sync --rebuild",)),
    "langchain-incremental": Tool("LangChain `incremental`", "langchain", ("incremental",)),
    "langchain-full": Tool("LangChain `full`", "langchain", ("full",)),
    "langchain-force": Tool("LangChain `full`, then `force_update`", "langchain", ("full",), ("full", "force_update")),
    "llamaindex-upserts": Tool("LlamaIndex `upserts`", "llamaindex", ("upserts",)),
    "llamaindex-delete": Tool("LlamaIndex `upserts_and_delete`", "llamaindex", ("upserts_and_delete",)),
    "cocoindex": Tool("CocoIndex", "cocoindex"),
    "cocoindex-reprocess": Tool("CocoIndex, then `--full-reprocess`", "cocoindex", (), ("--full-reprocess",)),
    "cocoindex-reset": Tool("CocoIndex, then `--reset`", "cocoindex", (), ("--reset",)),
}
KEEPS_REMOVED = ("langchain-incremental", "llamaindex-upserts")
"""These options leave the chunks of removed sources in the store, as documented."""
