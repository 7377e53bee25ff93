"""`chunksink why`: everything known about one chunk."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.exits import Exit
from chunksink.home_cache import cached_vector
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import labelled, printable, show
from chunksink.rebuild.explain import Explanation, Occurrence, SinkCopy, why
from chunksink.rebuild.locks import reading_live
from chunksink.rebuild.state import NO_MODEL, State
from chunksink.session import open_one_sink
from chunksink.settings.config import Config


@click.command()
@click.argument("chunk_id")
@chunks_option
@home_option
@json_option
def command(chunk_id: str, as_json: bool) -> int:
    """Explain everything known about one chunk. CHUNK_ID is its id, a unique beginning of it, or the id of its
    document in the engines.

    Where it is in the chunks, whether that place counts or what replaced it, whether its source is held and why,
    whether its vector is cached, and for every engine what was confirmed and what the engine answers now. Exits with 5
    when an engine could not be asked.

    \b
    Examples:
      chunksink why 9c1f...
      chunksink why 9c1f... --json | jq '.sinks[].copy'
      chunksink search "tool return" --json | jq -r '.hits[0].chunk_id' | xargs chunksink why
    """
    config = config_from()
    with ExitStack() as stack:
        state = stack.enter_context(State.existing(config.home_path))
        live = stack.enter_context(reading_live(state))
        found = why(state, BusRoot(config.chunks_path), live, chunk_id, partial(open_one_sink, config, stack))
    cached = _cached(config, found)
    show(as_json, {**asdict(found), "cached_vector": cached}, _lines(found, cached))
    return Exit.ENGINE if any(sink.error for sink in found.sinks.values()) else Exit.OK


def _cached(config: Config, found: Explanation) -> dict[str, Any] | None:
    """The vector that the cache has of its text under the live model."""
    vector = cached_vector(config, found.model_fingerprint, (found.current or found.standings[-1]).text_hash)
    if vector is None:
        return None
    return {
        "ref": str(vector.ref),
        "dimension": vector.dimension,
        "precision": vector.precision,
        "tokens": vector.tokens,
    }


def _lines(found: Explanation, cached: dict[str, Any] | None) -> Iterator[str]:
    standing = found.current or found.standings[-1]
    yield labelled("chunk", printable(found.chunk_id))
    if found.document != found.chunk_id:
        yield labelled("document", found.document)
    yield labelled("source", f"{printable(found.source or '(not known)')}, family {found.family}")
    for each in found.standings:
        yield labelled("in", _place(each))
        yield labelled("", f"{each.verdict}: {printable(each.reason)}")
    if found.held:
        yield labelled("held", printable(found.held))
    yield labelled("text", standing.text_hash)
    yield labelled("vector", _vector(found, cached))
    yield labelled("generation", found.generation)
    for name, sink in found.sinks.items():
        yield labelled(name, _copy(sink, found))
        if sink.refused:
            yield labelled("", f"refused: {printable(sink.refused)}")
        if sink.error:
            yield labelled("", f"not asked: {printable(sink.error)}")


def _vector(found: Explanation, cached: dict[str, Any] | None) -> str:
    if cached:
        numbers = f"{cached['dimension']:,} dimensions, {cached['precision']}"
        return f"cached, {numbers}; `chunksink cache show {cached['ref']}`"
    if found.model_fingerprint == NO_MODEL.fingerprint:
        return "none: no sink of the live index holds vectors"
    return f"not cached for the live model ({found.model_fingerprint:.12})"


def _place(standing: Occurrence) -> str:
    line = f"line {standing.line:,}" if standing.line else "a file that changed or is gone since it was taken in"
    state = "" if standing.partition_state == "valid" else f", now {standing.partition_state}"
    source = f", source {printable(standing.source)}" if standing.source else ""
    return f"partition {standing.partition}{state}, {line}{source}, document {printable(standing.document_id)}"


def _copy(sink: SinkCopy, found: Explanation) -> str:
    counts = found.current is not None
    differs = f" (in {', '.join(sink.differs_in)})" if sink.differs_in else ""
    parts = [f"{sink.copy} in the engine{differs}"]
    parts.append(f"receipt {sink.receipt}" if sink.receipt != "none" else "no receipt")
    if sink.open_intent:
        parts.append("of unknown state, to be written again")
    if counts and sink.copy in ("absent", "different") and not (sink.refused or found.held):
        parts.append("`chunksink verify --repair` repairs it")
    if not counts and sink.copy == "present" and not found.held:
        parts.append("it should not be there; `chunksink sync` removes it")
    return "; ".join(parts)
