"""The answer to a search: hits, each with its source, its neighbours and the parts of its score."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, overload

from chunksink.chunkbus.wording import counted
from chunksink.search.access import Access
from chunksink.search.fusion import Share
from chunksink.search.link import Locator, link_of, locator_of
from chunksink.search.question import FusionName, Mode, Question
from chunksink.search.rerank import Reranked
from chunksink.sinks.custom_fields import NO_FIELDS, FieldSet
from chunksink.sinks.document import Document
from chunksink.sinks.fields import FILTERS
from chunksink.sinks.reader import FacetValue, Piece, Sort


@dataclass(frozen=True)
class Surrounded:
    """A document with the documents before and after it in its source."""

    document: Document
    before: tuple[Document, ...]
    after: tuple[Document, ...]
    matches: tuple[str, ...] = ()
    """The words of these texts that match the query, as written in the texts."""

    def as_json(self) -> dict[str, Any]:
        return {**as_json(self.document), **_context(self.before, self.after)}


OWN_FIELDS = tuple(
    name
    for name in FILTERS
    if name not in ("parent_id", "tenant_key", "schema_version", "title", "page_start", "page_end")
)
"""chunksink's filterable fields, except hashes, versions, and those that `reference` and `locator_of` return."""


def as_json(document: Document) -> dict[str, Any]:
    """A document as JSON, with the `OWN_FIELDS` that have a value."""
    stored = document.as_dict()
    return {**_passage(document), **{name: stored[name] for name in OWN_FIELDS if name in stored}}


def _passage(document: Document) -> dict[str, Any]:
    return {**reference(document), "text": document.text}


def _context(before: Iterable[Document], after: Iterable[Document]) -> dict[str, list[dict[str, Any]]]:
    """Neighbours as JSON, without `OWN_FIELDS`: nearly all of these are the same throughout a source."""
    return {"before": [_passage(document) for document in before], "after": [_passage(document) for document in after]}


def reference(document: Document) -> dict[str, Any]:
    """The ids, title and source of a document, and its place in the source."""
    return {
        "chunk_id": document.chunk_id,
        "parent_id": document.parent_id,
        "title": document.title,
        "source_uri": document.source_uri,
        "link": link_of(document),
        "locator": locator_of(document),
    }


@dataclass(frozen=True)
class SearchHit:
    """The best chunk of a source with its score; with `collapse=False`, any chunk that matches."""

    chunk_id: str
    parent_id: str
    score: float
    title: str | None
    text: str
    source_uri: str | None
    link: str | None
    locator: Locator
    shares: tuple[Share, ...]
    document: Document
    same_text: tuple[Document, ...] = ()
    """Documents with the same text in other sources."""
    snippet: tuple[Piece, ...] = ()
    """The part of the text around the found words, without markup; empty if no word was found."""
    before: tuple[Document, ...] = ()
    after: tuple[Document, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The custom fields; times as ISO 8601."""
    rerank: Reranked | None = None
    """The reranker's score, and the hit's place before reranking; None if the reranker did not score this hit."""
    weak: bool = False
    """Whether it is hardly related to the query: neither its words nor its meaning match well."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The strings, numbers and booleans of the chunk's metadata that are not custom fields."""
        found: dict[str, Any] = json.loads(self.document.metadata or "{}")
        return found

    def __repr__(self) -> str:
        name = self.title or self.source_uri or self.chunk_id
        return f"<SearchHit {self.score:.4f} {name!r:.60}: {self.text!r:.60}>"

    @property
    def ranks(self) -> dict[str, int]:
        """The rank in each leg that found it."""
        return {share.leg: share.rank for share in self.shares if share.rank is not None}

    @property
    def highlights(self) -> list[str]:
        """The words of the snippet that match the query."""
        return [piece.text for piece in self.snippet if piece.match]

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        fields = {
            **as_json(self.document),
            "score": self.score,
            "fields": dict(self.fields),
            "metadata": self.metadata,
            "weak": self.weak,
            "highlights": self.highlights,
            "snippet": [asdict(piece) for piece in self.snippet],
            "ranks": self.ranks,
            "same_text": [reference(document) for document in self.same_text],
        }
        if self.before or self.after:
            fields["context"] = _context(self.before, self.after)
        if explain:
            fields["explain"] = {
                "shares": [{**share._asdict(), "points": share.points} for share in self.shares],
                "document": self.document.as_dict(),
                "rerank": asdict(self.rerank) if self.rerank is not None else None,
            }
        return fields


def hit_of(
    document: Document,
    score: float,
    shares: tuple[Share, ...],
    same_text: tuple[Document, ...] = (),
    fields: FieldSet = NO_FIELDS,
    rerank: Reranked | None = None,
) -> SearchHit:
    return SearchHit(
        chunk_id=document.chunk_id,
        parent_id=document.parent_id,
        score=score,
        title=document.title,
        text=document.text,
        source_uri=document.source_uri,
        link=link_of(document),
        locator=locator_of(document),
        shares=shares,
        document=document,
        same_text=same_text,
        fields={name: fields.display_value(name, value) for name, value in document.fields.items()},
        rerank=rerank,
    )


@dataclass(frozen=True)
class Answer:
    """A sequence of hits, with notices about them.

    `unavailable` maps the legs that failed (keyword, semantic or engine search) to the reasons. The hits come from the
    legs that answered.
    """

    query: str
    mode: Mode
    fusion: FusionName
    hits: tuple[SearchHit, ...]
    more: bool
    """Whether there are further hits."""
    facets: Mapping[str, list[FacetValue]]
    """In hybrid and engine mode, sources that keyword search does not find are counted only if another leg returned
    them for this page; see `counts_all`."""
    took_ms: float
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notice: str | None = None
    """A sentence for the reader: for example why nothing was found, or what was not searched."""
    not_reranked: str | None = None
    """Why the configured reranker did not decide the order. Like the reasons in `unavailable`, it may name
    servers and folders; `notice` does not."""
    suggestions: Mapping[str, str] = field(default_factory=dict)
    """Maps words that no document contains to similar words. Keyword search looked for these instead, except in
    phrases."""
    answered: bool = True
    """Whether any leg answered. If not, there may be matches although there are no hits."""
    evidence: float | None = None
    """How well the best keyword hit matches the query, 0..1. None if that did not decide the weights of the legs."""
    counts_all: bool = True
    """Whether the facets count all hits. If not, later pages may count more."""
    moved: bool = False
    """Whether a leg answered from an unexpected build, because the live index changed meanwhile."""
    sort: Sort | None = None
    """The field that the hits are sorted by. Sorted hits have no scores."""

    def __repr__(self) -> str:
        hits = counted(len(self.hits), "hit")
        return f"<Answer to {self.query!r:.60}: {hits}, {self.mode}{'' if self.answered else ', no engine answered'}>"

    @property
    def outage(self) -> str:
        """The unavailable legs and the reasons, as a sentence."""
        return "; ".join(f"no answer from {leg} search: {reason}" for leg, reason in self.unavailable.items())

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> SearchHit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[SearchHit, ...]: ...

    def __getitem__(self, place: int | slice) -> SearchHit | tuple[SearchHit, ...]:
        return self.hits[place]

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        return {
            "query": self.query,
            "mode": self.mode,
            "hits": [hit.as_json(explain=explain) for hit in self.hits],
            "more": self.more,
            "facets": {name: [asdict(value) for value in values] for name, values in self.facets.items()},
            "counts_all": self.counts_all,
            "took_ms": round(self.took_ms, 1),
            "unavailable": dict(self.unavailable),
            "notice": self.notice,
            "not_reranked": self.not_reranked,
            "suggestions": dict(self.suggestions),
        }


class SearchService(Protocol):
    """An index that answers questions. Thread-safe."""

    def search(self, question: Question, access: Access) -> Answer: ...

    def get(self, chunk_id: str, access: Access, context: int = 0, query: str = "") -> Surrounded | None: ...
