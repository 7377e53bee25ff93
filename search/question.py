"""What can be asked: one question to both indexes."""

from dataclasses import dataclass
from typing import Literal

from search.errors import InvalidQuestion
from sinks.reader import Filter

Mode = Literal["hybrid", "keyword", "semantic", "engine"]
"""`engine` is the hybrid search of a keyword engine that has one of its own, as Meilisearch has."""
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic", "engine")

FusionName = Literal["scores", "ranks"]
FUSIONS: tuple[FusionName, ...] = ("scores", "ranks")

KEYWORD, SEMANTIC, ENGINE = "keyword", "semantic", "engine"
LEGS_OF: dict[Mode, tuple[str, ...]] = {
    "hybrid": (KEYWORD, SEMANTIC),
    "keyword": (KEYWORD,),
    "semantic": (SEMANTIC,),
    "engine": (ENGINE,),
}

MOST_HITS = 10_000
MOST_CONTEXT = 20


@dataclass(frozen=True)
class Question:
    """`limit` hits after the first `offset` ones. With `collapse` each source answers once, by its best chunk; with
    `context` each hit brings so many chunks before and after it. Filters all hold; `facets` are fields to count."""

    text: str
    mode: Mode = "hybrid"
    limit: int = 10
    offset: int = 0
    filters: tuple[Filter, ...] = ()
    facets: tuple[str, ...] = ()
    collapse: bool = True
    context: int = 0
    fusion: FusionName = "scores"

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidQuestion(f"there is no mode {self.mode!r}; these are: {', '.join(MODES)}")
        if self.fusion not in FUSIONS:
            raise InvalidQuestion(f"there is no fusion {self.fusion!r}; these are: {', '.join(FUSIONS)}")
        if self.limit < 1 or self.offset < 0 or self.offset + self.limit > MOST_HITS:
            raise InvalidQuestion(
                f"hits {self.offset + 1} to {self.offset + self.limit} were asked for: they begin at 1 and end at "
                f"{MOST_HITS}; narrow the question with filters to see further"
            )
        if not 0 <= self.context <= MOST_CONTEXT:
            raise InvalidQuestion(f"{self.context} chunks of context: 0 to {MOST_CONTEXT} can be asked for")

    @property
    def last(self) -> int:
        """So many hits must be known."""
        return self.offset + self.limit
