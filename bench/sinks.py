"""How fast sinks load and replace, against a bare loop of the same engine's calls on the same documents."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import quantiles
from time import process_time
from typing import TYPE_CHECKING, Any

import httpx

from bench import bare_loops, corpora
from bench.harness import Case, Figure, Measurement, ratio
from bench.processes import Server, served
from chunksink.sinks.custom_fields import NO_FIELDS

if TYPE_CHECKING:
    from chunksink.sinks.document import Family

AT_ONCE = 500  # families between flushes
REPLACED = 500  # families that are written again with other words
_EDITED = f"one chunk in each of {REPLACED} sources edited, against rewriting the sources, "
ENGINES = ("meilisearch", "chroma", "chroma-server", "fts", "jsonl", "postgres")
FIELDS_IN = ("fts", "chroma", "meilisearch")
FACETS = {"a facet, p95": ["project"], "three facets, p95": ["project", "labels", "owner"]}
QUERIES = 100


@dataclass(frozen=True)
class Loaded:
    """Seconds to load everything and to replace a part of it, and the bare loop's seconds to load the same."""

    load: float
    replace: float
    edit: float
    """Seconds to change one document in each of the replaced families."""
    bare: float
    batches: int
    """The number of batches that Meilisearch processed while families were replaced."""


def measure(case: Measurement) -> None:
    documents = case.number("documents")
    bus, changed = case.scratch / "bus", case.scratch / "changed"
    corpora.write_bus(bus, documents, words=150)
    corpora.write_bus(changed, REPLACED * corpora.FAMILY, words=150, changed=range(REPLACED), version=1)
    families, newer = (list(corpora.families(folder)) for folder in (bus, changed))
    engines = case.text("engines").split(",")
    with served(*engines) as servers:
        turns = {
            engine: partial(_load, engine, servers.get(engine), case.scratch / engine, families, newer)
            for engine in engines
        }
        for engine, loads in case.turns(turns).items():
            case.keep(f"{engine}, documents a second", [documents / one.load for one in loads])
            case.keep(f"{engine}, bare loop, documents a second", [documents / one.bare for one in loads])
            case.keep(f"{engine}, {REPLACED} families replaced, seconds", [one.replace for one in loads])
            case.found(engine, ratio([one.load for one in loads], [one.bare for one in loads]))
            case.found(_EDITED + engine, ratio([one.edit for one in loads], [one.replace for one in loads]))
            if engine == "meilisearch":
                case.found("Meilisearch batches while families are replaced", max(one.batches for one in loads))


def measure_fields(case: Measurement) -> None:
    """Load with and without custom fields in turns, each relative to a bare loop with the same documents. Then time
    facets, in milliseconds of processor time."""
    loads = case.number("documents")
    families = {}
    for name, fields in (("with", corpora.CUSTOM_FIELDS), ("without", NO_FIELDS)):
        corpora.write_bus(case.scratch / name, loads, words=150, custom=name == "with")
        families[name] = list(corpora.families(case.scratch / name, fields))
    with served(*FIELDS_IN) as servers:
        for engine in FIELDS_IN:
            turns = {
                name: partial(_load, engine, servers.get(engine), case.scratch / engine, some, ())
                for name, some in families.items()
            }
            found = case.turns(turns)
            more, plain = ([one.load / one.bare for one in found[name]] for name in ("with", "without"))
            case.keep(f"{engine}, with fields, of a bare loop's time", more)
            case.keep(f"{engine}, without fields, of a bare loop's time", plain)
            case.found(engine, ratio(more, plain))
    _measure_facets(case)


def _measure_facets(case: Measurement) -> None:
    from chunksink.sinks.contract import Marker
    from chunksink.sinks.fts import FtsSink
    from chunksink.sinks.projection import PROJECTION_VERSION

    texts, vocabulary = corpora.natural_texts(case.number("chunks"), 150)
    corpora.write_bus(case.scratch / "facets", len(texts), texts=texts, custom=True)
    sink = FtsSink(case.scratch / "home")
    with closing(sink.create(Marker("bench", "filled", PROJECTION_VERSION))) as build:
        _fill(build, list(corpora.families(case.scratch / "facets", corpora.CUSTOM_FIELDS)))
    chance = random.Random(5)
    queries = [  # words of all frequencies: the logarithm of the rank is random
        [vocabulary[int(len(vocabulary) ** chance.random()) - 1] for _ in range(chance.randint(1, 3))]
        for _ in range(QUERIES)
    ]
    with closing(sink.reader("filled")) as reader:
        for name, fields in FACETS.items():
            took = []
            for words in queries:
                started = process_time()
                reader.facets(" ".join(words), [f"fields.{field}" for field in fields])
                took.append(1000 * (process_time() - started))
            case.found(name, quantiles(case.keep(f"{name}, ms", took), n=20)[-1])


def _load(
    engine: str, server: Server | None, folder: Path, families: Sequence[Family], newer: Sequence[Family]
) -> Loaded:
    from chunksink.sinks.contract import Marker
    from chunksink.sinks.projection import PROJECTION_VERSION
    from chunksink.sinks.registry import open_sink

    folder.mkdir()
    options = {"url": server.url} if server else {}
    sink: Any = open_sink(engine.removesuffix("-server"), folder / "home", options)
    with closing(sink.create(Marker("bench", "empty", PROJECTION_VERSION), corpora.DIMENSIONS)) as empty:
        _fill(empty, ())  # which creates the indexes that a bare loop copies
    build = sink.create(Marker("bench", "filled", PROJECTION_VERSION), corpora.DIMENSIONS)
    count = sum(len(family.documents) for family in families)
    load = bare_loops.seconds(lambda: _fill(build, families))
    assert build.count() == count
    loops: dict[str, Callable[[], float]] = {
        "meilisearch": lambda: bare_loops.meilisearch(families),
        "chroma": lambda: bare_loops.chroma(families, folder / "bare"),
        "chroma-server": lambda: bare_loops.chroma_server(families, options["url"]),
        "fts": lambda: bare_loops.fts(families, Path(sink.address("empty")["path"])),
        "jsonl": lambda: bare_loops.jsonl(families, folder / "bare"),
        "postgres": lambda: bare_loops.postgres(families, options["url"], sink.address("empty")["table"]),
    }
    bare = loops[engine]()
    before = _batches(engine)
    replace = bare_loops.seconds(lambda: _fill(build, newer))
    batches = _batches(engine) - before
    edit = bare_loops.seconds(lambda: _fill(build, [_edited(family) for family in newer]))
    assert build.count() == count
    build.close()
    for name in ("empty", "filled"):
        sink.drop(name)
    sink.close()
    shutil.rmtree(folder)
    return Loaded(load, replace, edit, bare, batches)


def _edited(family: Family) -> Family:
    from chunksink.chunkbus.canonical import text_hash
    from chunksink.sinks.document import Document, Family, document_hash

    changed, *others = family.documents
    fields = changed.as_dict() | {"text": "edited", "text_hash": text_hash("edited")}
    edited = Document.from_fields(fields | {"document_hash": document_hash(fields)})
    return Family([edited, *others], family.vectors)


def _fill(build: Any, families: Sequence[Family]) -> None:
    from chunksink.sinks.capabilities import SupportsSearchSettings, capability

    for start in range(0, len(families), AT_ONCE):
        build.replace(families[start : start + AT_ONCE])
    assert build.flush() == []
    if (searched := capability(build, SupportsSearchSettings)) is not None:
        searched.update_search_settings()


def _batches(engine: str) -> int:
    """The number of batches that Meilisearch has processed."""
    if engine != "meilisearch":
        return 0
    headers = {"Authorization": f"Bearer {os.environ['MEILI_MASTER_KEY']}"}
    return int(httpx.get(f"{os.environ['MEILI_URL']}/batches?limit=1", headers=headers).json()["total"])


CASES = (
    Case(
        "sinks",
        "loading a sink, against a bare loop of the same engine's calls",
        (
            *(Figure(engine, "of the baseline's time", at_most=1.18) for engine in ENGINES),
            *(Figure(_EDITED + engine, "of the baseline's time", at_most=0.35) for engine in ENGINES),
            Figure("Meilisearch batches while families are replaced", "batches", at_most=2),
        ),
        measure,
        {"documents": (10_000, 50_000), "rounds": (1, 3), "engines": (",".join(ENGINES),) * 2},
    ),
    Case(
        "fields",
        "ten custom fields: loading with them, against loading without; processor time of fts facets",
        (
            *(Figure(engine, "of the baseline's time", at_most=1.1) for engine in FIELDS_IN),
            *(Figure(name, "ms", at_most=60) for name in FACETS),
        ),
        measure_fields,
        {"documents": (5_000, 50_000), "chunks": (20_000, 100_000), "rounds": (3, 3)},
    ),
)
