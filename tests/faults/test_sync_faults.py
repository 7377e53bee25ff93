"""Network faults in whole runs: a transient one changes nothing, a lasting one ends the run at the deadline.

Afterwards the other sink is up to date, unconfirmed families have no receipt, readers find every source, and the next
plain run completes the work. With `make soak` every fault is injected at every place. The engine is a
parameter of the fixture `engine`.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from chunksink.rebuild import executor
from chunksink.sinks.errors import SinkError
from tests.conftest import HEAVY
from tests.engines.servers import ChromaServer, MeilisearchServer, kill, run_chroma, run_meilisearch
from tests.faults import proxy as p
from tests.faults.homes import (
    LONG,
    SHORT,
    TIMEOUT,
    Engine,
    Faulty,
    assert_complete,
    assert_receipts_hold,
    chroma,
    faulty,
    is_poll,
    meilisearch,
    occurrence,
    oracles,
    since_occurrence,
    sources,
)
from tests.support.bus import projected

pytestmark = pytest.mark.promise(3)

PASSING = (
    list(product(p.BROKEN, range(len(p.BROKEN))))
    if HEAVY
    else [(fault, place) for place, fault in enumerate(p.BROKEN)][::3]
)
STAYING = (
    list(product(p.BROKEN, ["always", "since the write", "since the last"]))
    if HEAVY
    else [
        (p.SILENCE, "always"),
        (p.ANSWER_LOST, "since the write"),
        (p.CUT_ANSWER, "since the last"),
    ]
)
CALLS = 12  # of a sink in one run; each of them may take until its deadline


@pytest.fixture(autouse=True, scope="module")
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "EMBEDDED_AT_ONCE", 3)
        patch.setattr(executor, "WRITTEN_AT_ONCE", 3)
        yield


@pytest.fixture(scope="module", params=["meilisearch", "chroma"])
def engine(request: pytest.FixtureRequest) -> Engine:
    server = request.getfixturevalue(f"{request.param}_server")
    return meilisearch(server) if request.param == "meilisearch" else chroma(server)


@pytest.fixture(scope="module")
def wanted(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, str]]:
    return oracles(tmp_path_factory.mktemp("oracles"), engine)


@pytest.fixture(scope="module")
def made(
    engine: Engine, wanted: tuple[dict[str, str], ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Faulty]:
    with faulty(tmp_path_factory.mktemp("faulty"), engine) as made:
        yield made


@pytest.fixture(scope="module")
def requests(made: Faulty) -> list[str]:
    """The requests of a sync without polling, whose number depends on chance, and without retries on a busy machine."""
    while True:
        made.faults.clear()
        made.move()
        found = [line for line in made.requests(made.home.sync) if not is_poll(line)]
        if not made.faults:
            return found


@pytest.fixture(autouse=True)
def healed(made: Faulty) -> Iterator[None]:
    made.faults.clear()
    yield
    made.proxy.heal()


@pytest.mark.parametrize(("fault", "place"), PASSING, ids=str)
def test_transient_fault_changes_nothing(
    fault: p.Fault, place: int, made: Faulty, requests: list[str], wanted: tuple[dict[str, str], ...]
) -> None:
    """At the first request, at the last one, and at as many in between as there are faults."""
    number = 1 + place * (len(requests) - 1) // (len(p.BROKEN) - 1)
    made.move()
    made.proxy.inject(fault, occurrence(number))
    started = time.monotonic()
    outcome = made.home.sync()
    assert time.monotonic() - started < p.MAX_SILENCE, "some request has no timeout"
    assert made.proxy.faulted
    assert outcome.failed == {}
    assert made.faults
    made.proxy.heal()
    assert made.digests() == wanted[made.version]


@pytest.mark.parametrize(("fault", "place"), STAYING, ids=str)
def test_lasting_fault_ends_the_run_at_the_deadline(
    fault: p.Fault, place: str, made: Faulty, requests: list[str], wanted: tuple[dict[str, str], ...]
) -> None:
    before = made.receipts()
    when = {
        "always": p.always,
        "since the write": since_occurrence(1, made.engine.write),
        "since the last": since_occurrence(len(requests)),
    }
    made.move()
    made.proxy.inject(fault, when[place])
    started = time.monotonic()
    error = made.failing(made.home.sync)
    assert time.monotonic() - started < CALLS * (SHORT.deadline_seconds + TIMEOUT + 1)
    assert made.proxy.faulted
    assert made.proxy.url in str(error), "the message names the engine"
    assert "run the command again" in str(error)
    assert_complete(made.behind_it())
    assert_receipts_hold(made.receipts(), made.behind_it())
    if place == "always":
        assert made.receipts() == before
    assert made.beside_it() == projected(*sources(made.version))
    made.proxy.heal()
    made.home.sync()
    assert made.digests() == wanted[made.version]


@pytest.mark.parametrize("fault", [p.ANSWER_LOST, *([p.RESET, p.UNAVAILABLE] if HEAVY else [])], ids=str)
def test_run_survives_one_failure_of_every_request(
    fault: p.Fault, made: Faulty, wanted: tuple[dict[str, str], ...]
) -> None:
    for run in (made.home.sync, made.home.rebuild):
        made.faults.clear()
        made.move()
        made.proxy.inject(fault, p.each_once())
        outcome = run()
        made.proxy.heal()
        assert getattr(outcome, "failed", {}) == {}
        assert made.faults
        assert made.digests() == wanted[made.version]


@pytest.mark.parametrize("number", range(1, 4) if HEAVY else [1])
@pytest.mark.parametrize("when", ["before", "after"] if HEAVY else ["after"])
def test_server_killed_and_restarted_changes_nothing(
    when: str, number: int, engine: Engine, wanted: tuple[dict[str, str], ...], tmp_path: Path
) -> None:
    """The server is killed before it did the work, or after the work but before the answer."""
    with own_server(tmp_path, engine) as (made, running, start_again):

        def restart() -> None:
            kill(running.pid)
            start_again()

        fault = p.Fault("killed", request_bytes=0 if when == "before" else None, answer_bytes=0, act=restart)
        made.proxy.inject(fault, occurrence(number, made.engine.write if number == 1 else ""))
        assert made.home.sync().failed == {}
        assert made.faults
        assert len(made.proxy.faulted) == 1
        made.proxy.heal()
        assert made.digests() == wanted[1]


@pytest.mark.parametrize("limit", [resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS] if HEAVY else [])
@pytest.mark.parametrize("number", range(1, 8) if HEAVY else [])
def test_server_short_of_a_resource_recovers_after_a_restart(
    number: int, limit: int, engine: Engine, wanted: tuple[dict[str, str], ...], tmp_path: Path
) -> None:
    """Files, disk space or memory are short from one request on, until the server is restarted."""
    with own_server(tmp_path, engine) as (made, running, start_again):
        starve = partial(resource.prlimit, running.pid, limit, (3, resource.RLIM_INFINITY))
        made.proxy.inject(p.Fault("short", request_bytes=0, end="reset", act=starve), occurrence(number))
        made.patience = SHORT
        with suppress(SinkError):
            made.home.sync()
        made.patience = LONG
        assert made.proxy.faulted
        kill(running.pid)
        start_again()
        made.proxy.heal()
        assert made.home.sync().failed == {}
        assert made.digests() == wanted[1]


@contextmanager
def own_server(
    folder: Path, engine: Engine
) -> Iterator[tuple[Faulty, ChromaServer | MeilisearchServer, Callable[[], object]]]:
    """A home on a server that the test may damage, with a changed bus, and a function that starts the server again."""
    run = run_chroma if engine.name == "chroma" else run_meilisearch
    with ExitStack() as servers:
        running = servers.enter_context(run(data=folder / "data"))
        again = {} if isinstance(running, ChromaServer) else {"key": running.key}
        own = chroma(running) if isinstance(running, ChromaServer) else meilisearch(running)
        with faulty(folder / "home", own) as made:
            made.move()
            yield made, running, lambda: servers.enter_context(run(data=folder / "data", port=running.port, **again))
