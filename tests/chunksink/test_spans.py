"""OpenTelemetry spans of runs and searches: their names and attributes, and that they cost nothing when off."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import chunksink
from chunksink.chunkbus import spans
from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.journey.support import environment, newly_started
from tests.support.bus import FEBRUARY, source
from tests.support.rerank_server import rerank_server

CANARY = "canary-4d22"
WORDS = {"CHUNKSINK_SINKS": "fts"}


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The spans that an application with its own provider gets."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", lambda: provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def paths(found: Sequence[ReadableSpan]) -> set[str]:
    """The path of each span: the names from its root down."""
    by_id = {one.context.span_id: one for one in found if one.context is not None}

    def path(one: ReadableSpan) -> str:
        return one.name if one.parent is None else f"{path(by_id[one.parent.span_id])} > {one.name}"

    return set(map(path, found))


def test_run_has_spans_for_stages_batches_and_engine_calls(shell: Shell, exported: InMemorySpanExporter) -> None:
    shell.synced(p1=[source("a.md", "a cat")])
    exported.clear()
    shell.commit("p1", source("a.md", "a dog", version="2", at=FEBRUARY), at=FEBRUARY)
    assert shell("sync").code == Exit.OK
    found = exported.get_finished_spans()
    assert paths(found) >= {
        "run sync",
        "run sync > validate",
        "run sync > index",
        "run sync > index > embed",
        "run sync > index > batch",
        "run sync > index > batch > fts replace",
        "run sync > index > batch > chroma replace",
        "run sync > index > batch > chroma flush",
        "run sync > fts count",
    }
    (root,) = [one for one in found if one.parent is None]
    assert root.attributes is not None
    assert (root.attributes["status"], bool(root.attributes["run_id"])) == ("ok", True)


def test_failed_run_names_the_class_of_its_error_only(shell: Shell, exported: InMemorySpanExporter) -> None:
    shell.commit("p1", source(f"{CANARY}.md", "a cat"))
    shell.cut_off("p1")
    assert shell("rebuild").code == Exit.INVALID_INPUT
    (root,) = [one for one in exported.get_finished_spans() if one.parent is None]
    assert root.attributes is not None
    assert (root.attributes["status"], root.attributes["error.type"]) == ("failed", "InvalidBus")


def test_question_has_spans_for_legs_fusion_and_reranking(
    shell: Shell, exported: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.synced(p1=[source("a.md", f"a cat of {CANARY}"), source("b.md", "a cat at sea")])
    with rerank_server() as reranker:
        (shell.folder / "chunksink.toml").write_text(f'[rerank]\nmodel = "any"\nurl = "{reranker.url}"\n')
        exported.clear()
        with chunksink.open() as index:
            assert len(index.search(f"cat {CANARY}")) == 2
    found = exported.get_finished_spans()
    assert paths(found) == {
        "question",
        "question > begin keyword",
        "question > begin semantic",
        "question > leg keyword",
        "question > leg semantic",
        "question > fusion",
        "question > rerank",
    }
    assert CANARY not in "".join(one.to_json() for one in found)


ASKED_FOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, False),
        (ASKED_FOR, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        (ASKED_FOR | {"OTEL_TRACES_EXPORTER": "none"}, False),
        (ASKED_FOR | {"OTEL_SDK_DISABLED": "TRUE"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
    ],
)
def test_usual_variables_decide(variables: dict[str, str], asked: bool) -> None:
    assert spans._is_configured(variables) == asked


@pytest.mark.parametrize("variables", [{}, ASKED_FOR | {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_imported_when_off(quick_shell: Shell, variables: dict[str, str]) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    program = (
        "import sys, chunksink\nwith chunksink.open() as index: index.sync(); index.search('cat')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=quick_shell.folder,
        env=environment(**WORDS, **variables),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_spans_of_a_process_reach_the_exporter(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    ended = newly_started(quick_shell.folder, "sync", OTEL_TRACES_EXPORTER="console", **WORDS)
    assert ended.code == Exit.OK
    first = json.JSONDecoder().raw_decode(ended.out[ended.out.index("{") :])[0]
    assert first["resource"]["attributes"]["service.name"] == "chunksink"
    assert '"name": "run sync"' in ended.out


def test_exporter_that_does_not_answer_delays_only_the_end(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        ended, seconds = timed(quick_shell.folder, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    _, usual = timed(quick_shell.folder)
    assert (ended.returncode, b"exporter" in ended.stderr) == (Exit.OK, True)
    assert seconds < usual + 20


def timed(folder: Path, **variables: str) -> tuple["subprocess.CompletedProcess[bytes]", float]:
    began = time.monotonic()
    command = [sys.executable, "-m", "chunksink", "sync"]
    ended = subprocess.run(
        command, cwd=folder, env=environment(**WORDS, **variables), capture_output=True, timeout=120, check=False
    )
    return ended, time.monotonic() - began


def test_unknown_exporter_is_a_warning(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    ended = newly_started(quick_shell.folder, "sync", OTEL_TRACES_EXPORTER="no-such", **WORDS)
    assert (ended.code, "no-such" in ended.err) == (Exit.OK, True)


@pytest.mark.parametrize(
    ("variables", "missing", "named"),
    [
        (ASKED_FOR, "opentelemetry", True),
        (ASKED_FOR, "opentelemetry.exporter.otlp.proto.grpc.trace_exporter", True),
        ({"OTEL_TRACES_EXPORTER": "no-such"}, None, False),
        (ASKED_FOR | {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, None, False),
    ],
)
def test_the_extra_is_a_remedy_only_for_a_missing_package(
    variables: dict[str, str],
    missing: str | None,
    named: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if missing is not None:
        monkeypatch.setitem(sys.modules, missing, None)
    assert (spans._tracer.__wrapped__(), "`otel`" in caplog.text, "OTEL_" in caplog.text) == (None, named, not named)
