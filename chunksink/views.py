"""What one generation is searched through: its readers, opened by what they can do, and the model of its queries."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from chunkbus.layout import BusRoot
from chunksink.wiring import open_one_sink
from settings.config import Config

if TYPE_CHECKING:
    from embeddings.encoder import Vectors
    from rebuild.state import Generation
    from search.legs import Legs
    from sinks.document import Document

_REMEMBERED = 512
"""Queries whose vectors are kept: whoever pages or changes a filter asks the same again."""
_QUERY_SECONDS = 5.0
"""A search waits so long for an endpoint; then it answers by words."""
_PAUSE_SECONDS = 10.0
"""After a failure the model is left alone for so long: not every search should wait for what is not there."""


@dataclass(frozen=True, eq=False)
class View:
    """One generation under a lease: nobody removes it while it is read."""

    generation: "Generation"
    legs: "Legs"
    close: Callable[[], None]

    def refresh(self) -> None:
        """See what was written since."""
        for reader in self.legs.readers():
            reader.refresh()


def open_view(config: Config, queries: "Queries") -> View:
    """The live generation of a home; NoGeneration where there is none. A leg that cannot be opened is named in it."""
    from rebuild.lease import reading_live
    from rebuild.state import State

    stack = ExitStack()
    try:
        with State.existing(config.home_path) as state:
            generation = stack.enter_context(reading_live(state))
        legs = _legs(config, generation, queries, stack)
    except BaseException:
        stack.close()
        raise
    return View(generation, legs, stack.close)


def _legs(config: Config, generation: "Generation", queries: "Queries", stack: ExitStack) -> "Legs":
    """The first sink that can search words and the first that can find neighbours, in the order of the configuration.

    A sink that is not configured any more is not kept up to date, so it is not asked.
    """
    from search.legs import EngineLeg, KeywordLeg, Legs, SemanticLeg
    from search.question import ENGINE, KEYWORD, SEMANTIC
    from sinks.errors import SinkError

    legs: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name in dict.fromkeys(config.sinks):
        build_id = generation.builds.get(name)
        if build_id is None:
            continue
        try:
            reader = _reader(config, name, build_id, stack)
        except SinkError as error:
            failed[name] = str(error)
            continue
        if KEYWORD not in legs and hasattr(reader, "search"):
            legs[KEYWORD] = KeywordLeg(reader, name, build_id)
        if not generation.holds_vectors:
            continue
        if ENGINE not in legs and hasattr(reader, "hybrid"):
            legs[ENGINE] = EngineLeg(reader, queries.of(generation), name, build_id)
        if SEMANTIC not in legs and hasattr(reader, "query"):
            legs[SEMANTIC] = SemanticLeg(reader, queries.of(generation), name, build_id)
    reason = "; ".join(failed.values())
    possible = (KEYWORD, SEMANTIC, ENGINE) if generation.holds_vectors else (KEYWORD,)
    unavailable = {leg: reason for leg in possible if reason and leg not in legs}
    return Legs(legs.get(KEYWORD), legs.get(SEMANTIC), unavailable, partial(_from_chunks, config), legs.get(ENGINE))


def _reader(config: Config, name: str, build_id: str, stack: ExitStack) -> Any:
    from search.resting import Resting

    sink: Any = open_one_sink(config, stack, name)
    if not hasattr(sink, "reader"):
        return None
    return stack.enter_context(closing(Resting(sink.reader(build_id))))


def _from_chunks(config: Config, wanted: Mapping[str, str]) -> "list[Document]":
    """Documents as the chunks on disk have them; none where those have moved or cannot be read."""
    from chunkbus.errors import ChunkBusError
    from rebuild.catalog import Catalog
    from rebuild.records import Records
    from rebuild.state import State

    with State.existing(config.home_path) as state:
        catalog = Catalog(state)
        records = Records(BusRoot(config.chunks_path), catalog)
        try:
            found = list(records.read(catalog.families(sorted(set(wanted.values())))))
        except (ChunkBusError, OSError):
            return []
    return [document for family in found for document in family.documents if document.id in wanted]


class Queries:
    """Encodes queries with the model that made an index, loaded on the first one. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, _QueryModel] = {}

    def of(self, generation: "Generation") -> "Callable[[str], Vectors]":
        """The same model for every generation that was made with it: to load it takes seconds."""
        with self._lock:
            return self._made.setdefault(generation.model_fingerprint, _QueryModel(generation))

    def close(self) -> None:
        with self._lock:
            for model in self._made.values():
                model.close()
            self._made.clear()


class _QueryModel:
    def __init__(self, generation: "Generation") -> None:
        from embeddings.lazy import LazyEncoder
        from embeddings.settings import open_encoder

        self._name = generation.encoder.model
        opened = partial(open_encoder, generation.encoder, patience_seconds=_QUERY_SECONDS)
        self._encoder = LazyEncoder(generation.model, opened)
        self._lock = threading.Lock()
        self._vectors: dict[str, Vectors] = {}
        self._failure: tuple[float, Exception] | None = None

    def __call__(self, text: str) -> "Vectors":
        if (vector := self._vectors.get(text)) is not None:
            return vector
        with self._lock, self._pausing():
            vector = self._encoder.encode_query(text)
            if len(self._vectors) >= _REMEMBERED:
                self._vectors.pop(next(iter(self._vectors)))
            self._vectors[text] = vector
        return vector

    def close(self) -> None:
        self._encoder.close()

    @contextmanager
    def _pausing(self) -> "Iterator[None]":
        from embeddings.errors import EmbeddingsError, ModelChanged, ModelError

        if self._failure is not None and monotonic() - self._failure[0] < _PAUSE_SECONDS:
            raise self._failure[1]
        try:
            yield
        except EmbeddingsError as error:
            if isinstance(error, ModelError) and not isinstance(error, ModelChanged):
                error = type(error)(f"the model {self._name} that made the live index cannot be loaded: {error}")
            self._failure = (monotonic(), error)
            raise error from None
        self._failure = None
