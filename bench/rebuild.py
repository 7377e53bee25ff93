"""Rebuilds against LangChain and LlamaIndex, and against bare loops of the engines.

Our figure is the time of a whole process of the command line, less the time that a process needs to import the same
libraries (and to load the model, if vectors are computed). It includes all fields, verification, and switching to the
new build. LangChain and LlamaIndex are timed within their process, from reading the chunks to the last stored document.
They store five fields of a chunk besides its text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import corpora
from bench.harness import Case, Figure, Measurement, ratio
from bench.processes import NO_PEERS, PEERS, chunksink, peer, python, served, start_up

WORDS = 150  # about 1,050 characters
NAMES = ("langchain", "llamaindex")
OURS = "chunksink"


def measure_cold(case: Measurement) -> None:
    from chunksink.embeddings.resolve import resolve_model

    size, bus = case.number("chunks"), case.scratch / "bus"
    corpora.write_bus(bus, size, texts=corpora.even(corpora.prose(case.data), size))
    model = str(resolve_model(network=False).folder)

    def ours(precision: str) -> float:
        # The peers truncate texts at the model's limit; so does this.
        settings = {"sinks": "fts,chroma", "long_texts": "truncate", "precision": precision}
        return chunksink("rebuild", bus, case.empty(), **settings).seconds - start_up(model=True)

    candidates: dict[str, Callable[[], float]] = {"auto": partial(ours, "auto"), "int8": partial(ours, "int8")}
    for name in _peers(case):
        candidates[name] = partial(_peer, case, name, bus, size, None, "--model", model)
    ours("int8")  # converts the model for OpenVINO, which happens once on each machine
    took = _turns(case, candidates)
    for precision in ("auto", "int8"):
        for name in [name for name in NAMES if name in took]:
            case.found(f"{precision}, speed against {name}", ratio(took[name], took[precision]))


def measure_warm(case: Measurement) -> None:
    size = case.number("chunks")
    bus = corpora.shared_bus(case.shared, size, words=WORDS)
    warm = corpora.warm_home(case.shared, bus, "fts", "chroma")
    candidates: dict[str, Callable[[], float]] = {
        OURS: partial(_rebuild, case, bus, warm, "fts,chroma"),
        "bare loop, chroma": partial(_bare, case, bus, "chroma"),
    }
    for name in _peers(case):
        filled = case.scratch / "filled" / name
        peer(name, "fill", bus, filled)
        candidates[name] = partial(_peer, case, name, bus, size, filled)
    took = _turns(case, candidates)
    case.found("against a bare loop that fills only Chroma", ratio(took[OURS], took["bare loop, chroma"]))
    for name in [name for name in NAMES if name in took]:
        case.found(f"speed against {name}", ratio(took[name], took[OURS]))


def measure_served(case: Measurement) -> None:
    bus = corpora.shared_bus(case.shared, case.number("chunks"), words=WORDS)
    warm = corpora.warm_home(case.shared, bus, "fts", "chroma")

    def on_new_server(call: Callable[[], float]) -> float:
        with served("meilisearch"):  # every turn needs an empty one
            return call()

    ours = "chunksink, meilisearch and chroma"
    loops = {"meilisearch": ("meilisearch",), "chroma": ("chroma",), "both at once": ("meilisearch", "chroma")}
    candidates: dict[str, Callable[[], float]] = {
        ours: partial(on_new_server, partial(_rebuild, case, bus, warm, "meilisearch,chroma"))
    }
    for name, engines in loops.items():
        candidates[name] = partial(on_new_server, partial(_bare, case, bus, *engines))
    took = _turns(case, candidates)
    slower = [max(pair) for pair in zip(took["meilisearch"], took["chroma"], strict=True)]
    case.found("against the bare loop of the slower engine", ratio(took[ours], slower))
    case.found("against both bare loops at once", ratio(took[ours], took["both at once"]))


def _peers(case: Measurement) -> tuple[str, ...]:
    if PEERS.exists():
        return NAMES
    case.note(NO_PEERS)
    return ()


def _turns(case: Measurement, candidates: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    start_up(model=True)  # the first one reads the libraries from the disk
    took = case.turns(candidates)
    for name, seconds in took.items():
        case.keep(f"{name}, seconds", seconds)
    return took


def _rebuild(case: Measurement, bus: Path, warm: Path, sinks: str) -> float:
    """Rebuild in a copy of a home whose cache has all vectors, so that no model is loaded."""
    return chunksink("rebuild", bus, case.copy(warm), sinks=sinks).seconds - start_up(model=False)


def _bare(case: Measurement, bus: Path, *engines: str) -> float:
    ran = python("bench.bare_loops", bus, case.empty(), *engines)
    return float(ran.document["seconds"])


def _peer(case: Measurement, name: str, bus: Path, size: int, filled: Path | None, *arguments: str) -> float:
    """With a filled cache the loop reads vectors, otherwise it computes them."""
    folder = case.copy(filled) if filled else case.empty()
    printed = peer(name, "warm" if filled else "cold", bus, folder, *arguments).document
    assert printed["chunks"] == size, printed
    return float(printed["seconds"])


CASES = (
    Case(
        "rebuild-cold",
        "a rebuild of fts and Chroma that computes vectors, against LangChain and LlamaIndex, which fill Chroma alone",
        (
            *(Figure(f"auto, speed against {name}", at_least=2.5) for name in NAMES),
            *(Figure(f"int8, speed against {name}", at_least=3.3) for name in NAMES),
        ),
        measure_cold,
        {"chunks": (400, 1_000), "rounds": (1, 3)},
    ),
    Case(
        "rebuild-warm",
        "a rebuild of fts and Chroma with all vectors cached, against loops that fill Chroma alone",
        (
            Figure("against a bare loop that fills only Chroma", "of the baseline's time", at_most=1.18),
            *(Figure(f"speed against {name}", at_least=1) for name in NAMES),
        ),
        measure_warm,
        {"chunks": (5_000, 20_000), "rounds": (1, 3)},
    ),
    Case(
        "rebuild-served",
        "a rebuild of Meilisearch and Chroma with all vectors cached, against bare loops of both",
        (
            Figure("against the bare loop of the slower engine", "of the baseline's time", at_most=1.18),
            Figure("against both bare loops at once", "of the baseline's time"),
        ),
        measure_served,
        {"chunks": (5_000, 20_000), "rounds": (1, 3)},
    ),
)
