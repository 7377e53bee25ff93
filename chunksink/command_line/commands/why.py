"""`chunksink why`: everything known about one chunk."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.wording import printable, some
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, index_options, json_option, open_index
from chunksink.command_line.output import labelled, show
from chunksink.rebuild.state import NO_MODEL

if TYPE_CHECKING:
    from chunksink.rebuild.explain import Explanation, Occurrence, SinkCopy

_SHOWN = 3


@click.command()
@click.argument("name", metavar="CHUNK_ID|FILE")
@index_options
@json_option
def command(shared: SharedOptions, name: str, as_json: bool) -> int:
    """Explain everything known about one chunk. CHUNK_ID is its id, a unique prefix of it, or the id of its
    document in the engines. FILE is a name that `chunksink search` shows; its first chunk is explained.

    Shows where it occurs in the partitions and which occurrence is indexed, whether its source is held and why,
    whether its vector is cached, and what each engine confirmed and has now. Exits with 5 if an engine does not answer.

    \b
    Examples:
      chunksink why 9c1f...
      chunksink why handbook/tools.md
      chunksink why 9c1f... --json | jq '.sinks[].copy'
      chunksink search "tool return" --json | jq -r '.hits[0].chunk_id' | xargs chunksink why
    """
    with open_index(shared) as index:
        explanation = index.why(name)
    show(as_json, asdict(explanation), _lines(explanation))
    return Exit.ENGINE if any(sink.error for sink in explanation.sinks.values()) else Exit.OK


def _lines(explanation: "Explanation") -> Iterator[str]:
    occurrence = explanation.current or explanation.occurrences[-1]
    yield labelled("chunk", printable(explanation.chunk_id))
    if explanation.document != explanation.chunk_id:
        yield labelled("document", explanation.document)
    yield labelled("source", f"{printable(explanation.source)}, family {explanation.family}")
    for each in explanation.occurrences:
        yield labelled("in", _place(each))
        yield labelled("", f"{each.verdict}: {printable(each.reason)}")
    if explanation.held:
        yield labelled("held", printable(explanation.held))
    yield labelled("text", occurrence.text_hash)
    if explanation.context:
        yield labelled("context", printable(" > ".join(explanation.context.splitlines())))
    yield labelled("vector", _vector(explanation))
    yield labelled("generation", explanation.generation)
    for name, sink in explanation.sinks.items():
        yield labelled(name, _copy(sink, explanation))
        if sink.refused:
            yield labelled("", f"refused: {printable(sink.refused)}")
        if sink.error:
            yield labelled("", f"no answer: {printable(sink.error)}")
    if explanation.other_chunks:
        yield labelled("others", some([printable(each) for each in explanation.other_chunks], _SHOWN))


def _vector(explanation: "Explanation") -> str:
    if cached := explanation.cached_vector:
        numbers = f"{cached['dimension']:,} dimensions, {cached['precision']}"
        return f"cached, {numbers}; `chunksink cache show {cached['ref']}`"
    if explanation.model_fingerprint == NO_MODEL.fingerprint:
        return "none: no sink of the live index has vectors"
    return f"not cached for the live model ({explanation.model_fingerprint:.12})"


def _place(occurrence: "Occurrence") -> str:
    line = f", line {occurrence.line:,}" if occurrence.line else ""
    state = "" if occurrence.partition_state == "valid" else f", now {occurrence.partition_state}"
    source = f", source {printable(occurrence.source)}" if occurrence.source else ""
    return f"partition {occurrence.partition}{state}{line}{source}, document {printable(occurrence.document_id)}"


def _copy(sink: "SinkCopy", explanation: "Explanation") -> str:
    is_current = explanation.current is not None
    differs = f" (in {', '.join(sink.differs_in)})" if sink.differs_in else ""
    parts = [f"{sink.copy} in the engine{differs}"]
    parts.append(f"receipt {sink.receipt}" if sink.receipt != "none" else "no receipt")
    if sink.open_intent:
        parts.append("of unknown state, to be written again")
    if is_current and sink.copy in ("absent", "different") and not (sink.refused or explanation.held):
        parts.append("`chunksink verify --repair` repairs it")
    if not is_current and sink.copy == "present" and not explanation.held:
        parts.append("surplus: `chunksink sync` removes it")
    return "; ".join(parts)
