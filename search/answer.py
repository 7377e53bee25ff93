"""What a search answers: hits, each with its place, its neighbours and the arithmetic of its score."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from chunksink.search.access import Access
from chunksink.search.fusion import Share
from chunksink.search.link import Locator, link_of, locator_of
from chunksink.search.question import FusionName, Mode, Question
from chunksink.sinks.document import Document
from chunksink.sinks.reader import FacetValue, Piece


@dataclass(frozen=True)
class Surrounded:
    """A document with those before and after it in its source."""

    document: Document
    before: tuple[Document, ...]
    after: tuple[Document, ...]
    found: tuple[str, ...] = ()
    """Words of these texts that the query found, as they are written there."""

    def as_json(self) -> dict[str, Any]:
        return {
            **as_json(self.document),
            "before": [as_json(document) for document in self.before],
            "after": [as_json(document) for document in self.after],
        }


def as_json(document: Document) -> dict[str, Any]:
    return {**reference(document), "text": document.text}


def reference(document: Document) -> dict[str, Any]:
    """What it is called and where it stands."""
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
    """A source that answers, by its best chunk and with the score of that; or a chunk, where every one is asked for."""

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
    """Where the same stands in other sources."""
    snippet: tuple[Piece, ...] = ()
    """A part of the text around what was searched for; empty where no word of it was found."""
    before: tuple[Document, ...] = ()
    after: tuple[Document, ...] = ()

    def __repr__(self) -> str:
        name = self.title or self.source_uri or self.chunk_id
        return f"<SearchHit {self.score:.4f} {name!r:.60}: {self.text!r:.60}>"

    @property
    def ranks(self) -> dict[str, int]:
        """Where each leg had it, of those that found it."""
        return {share.leg: share.rank for share in self.shares if share.rank is not None}

    @property
    def highlights(self) -> list[str]:
        """The words of the text that were searched for."""
        return [piece.text for piece in self.snippet if piece.match]

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        told = {
            **as_json(self.document),
            "score": self.score,
            "highlights": self.highlights,
            "snippet": [asdict(piece) for piece in self.snippet],
            "ranks": self.ranks,
            "same_text": [reference(document) for document in self.same_text],
        }
        if self.before or self.after:
            told["context"] = {
                "before": [as_json(document) for document in self.before],
                "after": [as_json(document) for document in self.after],
            }
        if explain:
            told["explain"] = {
                "shares": [{**share._asdict(), "points": share.points} for share in self.shares],
                "document": self.document.fields(),
            }
        return told


def hit_of(
    document: Document, score: float, shares: tuple[Share, ...], same_text: tuple[Document, ...] = ()
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
    )


@dataclass(frozen=True)
class Answer:
    """A sequence of hits, and what is to be said of them.

    `unavailable` says which leg could not be asked, and why: the hits are then the other leg's.
    """

    query: str
    mode: Mode
    fusion: FusionName
    hits: tuple[SearchHit, ...]
    more: bool
    """Whether further hits follow after these."""
    facets: Mapping[str, list[FacetValue]]
    took_ms: float
    unavailable: Mapping[str, str] = field(default_factory=dict)
    notice: str | None = None
    """What else is to be known: why there is nothing although there are documents, or what was not asked."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """By words that stand nowhere such as may be meant; the notice says so too."""
    answered: bool = True
    """Whether anything could be asked: to find nothing is an answer, to ask nobody is none."""
    moved: bool = False
    """A leg showed another build than it was asked for: what readers see has changed meanwhile."""

    def __repr__(self) -> str:
        hits = f"{len(self.hits)} hit{'' if len(self.hits) == 1 else 's'}"
        return f"<Answer to {self.query!r:.60}: {hits}, {self.mode}{'' if self.answered else ', no engine answered'}>"

    @property
    def outage(self) -> str:
        """What could not be asked, and why, in words."""
        return "; ".join(f"no answer of {leg} search: {why}" for leg, why in self.unavailable.items())

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> SearchHit:
        return self.hits[place]

    def as_json(self, *, explain: bool = False) -> dict[str, Any]:
        return {
            "query": self.query,
            "mode": self.mode,
            "hits": [hit.as_json(explain=explain) for hit in self.hits],
            "more": self.more,
            "facets": {name: [asdict(value) for value in values] for name, values in self.facets.items()},
            "took_ms": round(self.took_ms, 1),
            "unavailable": dict(self.unavailable),
            "notice": self.notice,
            "meant": dict(self.meant),
        }


class Answers(Protocol):
    """Whoever answers questions, for as many threads as ask."""

    def search(self, question: Question, access: Access) -> Answer: ...

    def get(self, chunk_id: str, access: Access, context: int = 0, query: str = "") -> Surrounded | None: ...
