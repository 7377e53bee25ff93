"""Which capabilities each sink, build and reader has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.sinks.capabilities import (
    SupportsAddress,
    SupportsFamilies,
    SupportsPrepare,
    SupportsPublicName,
    SupportsReader,
    SupportsScrub,
    SupportsSettings,
    SupportsVersion,
    capability,
)
from chunksink.sinks.chroma import ChromaSink
from chunksink.sinks.conformance.samples import DIMENSIONS, marker
from chunksink.sinks.contract import Sink
from chunksink.sinks.fts import FtsSink
from chunksink.sinks.jsonl import JsonlSink
from chunksink.sinks.meilisearch import MeilisearchSink
from chunksink.sinks.memory import MemorySink
from chunksink.sinks.reader import HybridReader, KeywordReader, VectorReader

OF_SINKS = {
    SupportsAddress,
    SupportsPrepare,
    SupportsPublicName,
    SupportsReader,
    SupportsSettings,
    SupportsVersion,
}
OF_READERS = {HybridReader, KeywordReader, SupportsFamilies, VectorReader}
EMBEDDED: dict[str, tuple[Callable[[Path], Sink], set[type], bool, set[type]]] = {
    "memory": (lambda _: MemorySink(), {SupportsReader, SupportsPublicName}, False, {VectorReader}),
    "fts": (
        FtsSink,
        {SupportsReader, SupportsAddress, SupportsVersion},
        True,
        {KeywordReader, SupportsFamilies},
    ),
    "jsonl": (JsonlSink, {SupportsPublicName, SupportsAddress}, True, set()),
    "chroma": (
        ChromaSink.embedded,
        {SupportsReader, SupportsAddress, SupportsVersion, SupportsPrepare},
        False,
        {VectorReader},
    ),
}


def capabilities(owner: object, kinds: set[type]) -> set[type]:
    return {kind for kind in kinds if capability(owner, kind) is not None}


@pytest.mark.parametrize("name", EMBEDDED)
def test_each_embedded_engine_has_its_capabilities(name: str, tmp_path: Path) -> None:
    open_sink, of_sink, scrubbed, of_reader = EMBEDDED[name]
    sink = open_sink(tmp_path)
    signed = marker()
    build = sink.create(signed, DIMENSIONS)
    assert capabilities(sink, OF_SINKS) == of_sink
    assert (capability(build, SupportsScrub) is not None) == scrubbed
    build.close()
    if (readable := capability(sink, SupportsReader)) is not None:
        reader = readable.reader(signed.build_id)
        assert capabilities(reader, OF_READERS) == of_reader
        reader.close()
    sink.close()


def test_meilisearch_has_settings_and_a_public_name() -> None:
    sink = MeilisearchSink("http://127.0.0.1:9", None, settings={})
    assert capabilities(sink, OF_SINKS) == OF_SINKS - {SupportsPrepare}
    sink.close()


class Plain:
    """Part of a capability is none of it."""

    def update_settings(self, build_id: str, dimensions: int | None = None) -> list[str]:
        return []


def test_a_capability_needs_all_its_methods() -> None:
    assert capability(Plain(), SupportsSettings) is None
    assert capability(None, SupportsReader) is None
