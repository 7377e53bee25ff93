"""Opens the readers of one generation, and the model for its queries."""

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chunksink.chunkbus.errors import ChunkBusError
from chunksink.embeddings.settings import EncoderSettings
from chunksink.rebuild.locks import reading_live
from chunksink.rebuild.state import Generation, State
from chunksink.search.circuit_breaker import with_circuit_breaker
from chunksink.search.legs import EngineLeg, KeywordLeg, Legs, SemanticLeg
from chunksink.search.query_vectors import QueryEncoder
from chunksink.search.question import ENGINE, KEYWORD, SEMANTIC
from chunksink.settings.config import Config
from chunksink.settings.errors import ConfigError
from chunksink.sinks.capabilities import SupportsFamilies, SupportsReader, capability
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.document import Document
from chunksink.sinks.errors import SinkError
from chunksink.sinks.projection import fields_in
from chunksink.sinks.reader import HybridReader, KeywordReader, VectorReader
from chunksink.sinks.registry import require_sink
from chunksink.wiring import chunk_documents, open_one_sink


@dataclass(frozen=True, eq=False)
class View:
    """One generation. If it is the live one, a lease keeps its builds from being removed."""

    generation: Generation
    projections: Mapping[str, str]
    """For each build, the projection (how chunks become documents) that was on record when the view was opened. If one
    changes, the view is opened again."""
    legs: Legs
    close: Callable[[], None]

    def refresh(self) -> None:
        """Make later writes visible in every reader, even if one of them fails."""
        with ExitStack() as stack:
            for reader in self.legs.readers():
                stack.callback(reader.refresh)


def open_view(
    config: Config,
    queries: QueryEncoder,
    needed: Collection[str] | None = None,
    generation: Generation | None = None,
) -> View:
    """Open the live generation of a home. Raises NoGeneration if there is none. The view lists legs that failed.

    With `needed`, sinks are opened only until these legs are found. With `generation`, that one is opened instead of
    the live one, without a lease.
    """
    with ExitStack() as stack:
        with State.existing(config.home_path) as state:
            generation = generation or stack.enter_context(reading_live(state))
            projections = state.projections()
        encoder = generation.encoder.with_key_of(EncoderSettings.of(config))
        generation = replace(generation, encoder=encoder)
        legs = _legs(config, generation, queries, stack, needed)
        fields = fields_in(legs.fields, [projections.get(generation.builds[sink], "") for sink in legs.sinks()])
        lacking = [field.name for field in legs.fields.fields if field not in fields.fields]
        legs = replace(legs, fields=fields, lacking=lacking)
        return View(generation, projections, legs, stack.pop_all().close)


def _legs(
    config: Config, generation: Generation, queries: QueryEncoder, stack: ExitStack, needed: Collection[str] | None
) -> Legs:
    """The first sink with keyword search, the first with vector search and the first with a hybrid search of its own,
    in the order of the configuration.

    Sinks that are no longer configured are not kept up to date, so they are skipped.
    """
    legs: dict[str, Any] = {}
    failed: dict[str, str] = {}
    if generation.holds_vectors and (needed is None or {SEMANTIC, ENGINE} & set(needed)):
        queries.of(generation.model, generation.encoder).prepare()
    for name in dict.fromkeys(config.sinks):
        if needed is not None and legs.keys() >= set(needed):
            break
        build_id = generation.builds.get(name)
        if build_id is None:
            require_sink(name)
            continue
        try:
            sink = open_one_sink(config, stack, name)
            readable = capability(sink, SupportsReader)
            if readable is None:
                continue
            reader = stack.enter_context(closing(with_circuit_breaker(readable.reader(build_id))))
        except (SinkError, ConfigError) as error:  # the other sinks may still answer
            failed[name] = str(error)
            continue
        if KEYWORD not in legs and (keyword := capability(reader, KeywordReader)) is not None:
            legs[KEYWORD] = KeywordLeg(keyword, name, build_id)
        if not generation.holds_vectors:
            continue
        if ENGINE not in legs and sink.wants_vectors and (hybrid := capability(reader, HybridReader)) is not None:
            legs[ENGINE] = EngineLeg(hybrid, queries.of(generation.model, generation.encoder), name, build_id)
        if SEMANTIC not in legs and (nearest := capability(reader, VectorReader)) is not None:
            model = queries.of(generation.model, generation.encoder)
            legs[SEMANTIC] = SemanticLeg(nearest, model, name, build_id, floor=model.floor)
    if KEYWORD in legs and SEMANTIC in legs:
        resolver = capability(legs[KEYWORD].reader, SupportsFamilies)
        if resolver is not None:
            legs[SEMANTIC] = replace(legs[SEMANTIC], families=resolver.families)
    reason = "; ".join(failed.values())
    possible = (KEYWORD, SEMANTIC, ENGINE) if generation.holds_vectors else (KEYWORD,)
    unavailable = {leg: reason for leg in possible if reason and leg not in legs}
    return Legs(
        legs.get(KEYWORD),
        legs.get(SEMANTIC),
        unavailable,
        partial(_from_chunks, config),
        legs.get(ENGINE),
        FieldSet.of(config.fields),
        reranking=queries.reranking(config.rerank),
        keyword_weight=config.fusion_weight,
    )


def _from_chunks(config: Config, families: Mapping[str, str]) -> list[Document]:
    """Read documents from the chunks on disk. `families` maps the ids of the wanted documents to their families. Empty
    if the chunks are unreadable or have changed."""
    try:
        documents = list(chunk_documents(config, sorted(set(families.values()))))
    except (ChunkBusError, OSError):
        return []
    return [document for document in documents if document.id in families]
