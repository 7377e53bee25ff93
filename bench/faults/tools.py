"""The tools that are compared: their adapters, options and stores."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench.faults.stores import ChromaStore, LanceStore, Store

_CHROMA = ChromaStore("store", "source")
_OURS = ChromaStore("home/chroma/*", "source_uri")


@dataclass(frozen=True)
class Tool:
    """A tool as its documentation shows it. `remedy` are the options of the run after a fault."""

    title: str
    adapter: str
    store: Store
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    reports: str = ""
    """A pattern of output that reports a problem; an exit code other than 0 always does."""
    prunes: bool = True
    """Whether these options remove what came from removed sources."""

    def reported(self, code: int, output: str) -> bool:
        return code != 0 or bool(self.reports and re.search(self.reports, output))

    def remark(self, output: str) -> str:
        """The last line that reports a problem, or else the last line."""
        lines = output.strip().splitlines() or [""]
        return [line for line in lines if self.reported(0, line)][-1] if self.reported(0, output) else lines[-1]


_LANGCHAIN = ("langchain-core", "langchain-classic", "langchain-chroma", "chromadb")
_LLAMAINDEX = ("llama-index-core", "llama-index-vector-stores-chroma", "chromadb")
_COCOINDEX = ("cocoindex", "lancedb")
_ERRORS = r"\bERROR\b"
_NOTICES = r"drifted|had changed|older|rebuild|refused|repaired|was missing|rescanned"

TOOLS = {
    "chunksink": Tool("chunksink", "chunksink", _OURS, ("chunksink", "chromadb"), reports=_NOTICES),
    "chunksink-rebuild": Tool(
        "chunksink, then `sync --rebuild`",
        "chunksink",
        _OURS,
        ("chunksink", "chromadb"),
        remedy=("sync --rebuild",),
        reports=_NOTICES,
    ),
    "langchain-incremental": Tool(
        "LangChain `incremental`", "langchain", _CHROMA, _LANGCHAIN, ("cleanup=incremental",), prunes=False
    ),
    "langchain-full": Tool("LangChain `full`", "langchain", _CHROMA, _LANGCHAIN, ("cleanup=full",)),
    "langchain-force": Tool(
        "LangChain `full`, then `force_update`",
        "langchain",
        _CHROMA,
        _LANGCHAIN,
        ("cleanup=full",),
        ("cleanup=full", "force_update"),
    ),
    "llamaindex-upserts": Tool("LlamaIndex `upserts`", "llamaindex", _CHROMA, _LLAMAINDEX, ("upserts",), prunes=False),
    "llamaindex-delete": Tool(
        "LlamaIndex `upserts_and_delete`", "llamaindex", _CHROMA, _LLAMAINDEX, ("upserts_and_delete",)
    ),
    "cocoindex": Tool("CocoIndex", "cocoindex", LanceStore(), _COCOINDEX, reports=_ERRORS),
    "cocoindex-reprocess": Tool(
        "CocoIndex, then `--full-reprocess`",
        "cocoindex",
        LanceStore(),
        _COCOINDEX,
        remedy=("--full-reprocess",),
        reports=_ERRORS,
    ),
    "cocoindex-reset": Tool(
        "CocoIndex, then `--reset`", "cocoindex", LanceStore(), _COCOINDEX, remedy=("--reset",), reports=_ERRORS
    ),
}
