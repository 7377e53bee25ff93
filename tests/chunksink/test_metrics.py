"""Metrics of a home: in a file, from `sync --watch`, and from `serve`."""

import json
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from hashlib import sha256
from pathlib import Path

import pytest
from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from chunksink.chunkbus.errors import StorageError
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.command_line import options
from chunksink.command_line.exits import Exit
from chunksink.metrics import registry_of
from chunksink.settings.config import Config
from tests.chunksink.shell import Shell
from tests.chunksink.test_serve_command import WORDS, running
from tests.conftest import ROOT
from tests.embeddings.endpoint import serve as serve_endpoint
from tests.engines.servers import free_port
from tests.journey.test_watch import watching
from tests.support.bus import FEBRUARY, source
from tests.support.users import as_nobody

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
LABELS = {
    "sink": {"", "fts", "chroma"},
    "command": {"ingest", "sync", "repair", "rebuild", "verify"},
    "stage": {"validate", "scan", "verify", "index", "load", "embed", "write"},
    "part": {"records", "vectors", "fts", "chroma", "other"},
    "depth": {"any", "deep"},
    "origin": {"computed", "reused"},
    "mode": {"hybrid", "keyword", "semantic", "engine"},
    "leg": {"keyword", "semantic", "engine"},
    "reason": {"invalid", "unavailable", "overloaded", "bug"},
}
"""Every value that a label may take."""
CANARY = "canary-7f31"


def samples(text: str, *, openmetrics: bool = False) -> dict[str, float]:
    """The values by name, including the labels as written."""
    families: list[Metric] = list((parse_openmetrics if openmetrics else parse)(text))
    return {
        each.name + "".join(f"{{{name}={value}}}" for name, value in sorted(each.labels.items()) if value): each.value
        for family in families
        for each in family.samples
    }


def written(shell: Shell, *command: str) -> dict[str, float]:
    ended = shell(*command, "--metrics-file", "chunksink.prom")
    assert ended.code in (Exit.OK, Exit.REFUSED, Exit.INVALID_INPUT, Exit.DRIFT), ended
    return samples((shell.folder / "chunksink.prom").read_text())


def require_good_form(promtool: Path, text: str) -> None:
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_file_has_what_is_desired_indexed_refused_and_held(shell: Shell) -> None:
    shell.commit("p1", source("a.md", "a cat", "pure poison"), source("b.md", "a boat"))
    shell.commit("p2", source("c.md", "a tree"))
    found = written(shell, "sync")
    assert found["chunksink_families_desired"] == 3
    assert found["chunksink_chunks_desired"] == 4
    assert found["chunksink_chunks_indexed{sink=fts}"] == 4
    assert found["chunksink_chunks_indexed{sink=chroma}"] == 3
    assert found["chunksink_documents_refused{sink=chroma}"] == 1
    assert found["chunksink_current"] == 1
    assert found["chunksink_vectors_total{origin=computed}"] == 3
    assert found["chunksink_stage_seconds_total{sink=chroma}{stage=write}"] > 0
    assert found["chunksink_home_bytes{part=chroma}"] > 0
    shell.cut_off("p2")
    shell.commit("p1", source("b.md", "a boat sails", version="2", at=FEBRUARY), at=FEBRUARY)
    shell.lose("b.md")
    found = written(shell, "verify")
    assert found["chunksink_families_held"] == 2, "a removed source is held as long as a partition is invalid"
    assert found["chunksink_partitions_broken"] == 1
    assert found["chunksink_drift"] == 1
    assert found["chunksink_last_verify_success{depth=any}"] == 0
    assert "chunksink_last_verify_success{depth=deep}" not in found
    assert found["chunksink_lag_seconds"] > 0


def test_failures_of_the_last_ingest_are_counted(quick_shell: Shell) -> None:
    notes = quick_shell.folder / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n")
    (notes / "b.md").write_bytes(b"\x80")
    assert written(quick_shell, "ingest", "notes", "--sync")["chunksink_ingest_failures"] == 1
    (notes / "b.md").unlink()
    assert written(quick_shell, "ingest", "notes", "--sync")["chunksink_ingest_failures"] == 0


def test_totals_grow_over_runs(shell: Shell) -> None:
    shell.commit("p1", source("a.md", "a cat"))
    first = written(shell, "sync")
    shell.commit("p2", source("b.md", "a boat"))
    second = written(shell, "rebuild")
    computed, reused = (f"chunksink_vectors_total{{origin={origin}}}" for origin in ("computed", "reused"))
    assert (first[computed], second[computed]) == (1, 2)
    assert (first[reused], second[reused]) == (0, 1)
    assert (
        second["chunksink_last_run_timestamp_seconds{command=rebuild}"]
        > second["chunksink_last_run_timestamp_seconds{command=sync}"]
    )


def test_tokens_and_cost_are_those_that_the_endpoint_charges(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.commit("p1", source("a.md", "one two three"), source("b.md", "four five"))
    with serve_endpoint() as endpoint:
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", endpoint.url)
        monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", "1000000")
        found = written(shell, "sync")
        charged = sum(len(text.split()) for request in endpoint.requests for text in request["input"])
    assert found["chunksink_tokens_total"] == found["chunksink_cost_total"] == charged


def test_recall_is_that_of_the_last_deep_verify(shell: Shell) -> None:
    shell.synced(p1=[source("a.md", "a cat"), source("b.md", "a boat")])
    assert "chunksink_recall_mean_ratio{sink=chroma}" not in written(shell, "verify")
    found = written(shell, "verify", "--deep")
    assert found["chunksink_recall_mean_ratio{sink=chroma}"] == 1
    assert found["chunksink_last_verify_success{depth=deep}"] == 1


def test_labels_are_bounded_and_nothing_is_named(shell: Shell, promtool: Path) -> None:
    owned = source(f"{CANARY}.md", f"text of {CANARY}", tenant_id=f"tenant-{CANARY}")
    shell.commit(f"p-{CANARY}", owned, source("b.md", "pure poison"))
    written(shell, "ingest", str(ROOT / "examples" / "handbook"), "--partition", "docs", "--sync")
    written(shell, "rebuild")
    written(shell, "verify", "--deep", "--repair")
    text = (shell.folder / "chunksink.prom").read_text()
    require_good_form(promtool, text)
    assert CANARY not in text
    for name, value in re.findall(r'(\w+)="([^"]*)"', text):
        assert name == "version" or value in LABELS[name], (name, value)


def test_before_the_first_index_the_file_says_so(quick_shell: Shell, promtool: Path) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    assert quick_shell("verify", "--metrics-file", "a.prom").code == Exit.USAGE
    text = (quick_shell.folder / "a.prom").read_text()
    require_good_form(promtool, text)
    found = samples(text)
    assert (found["chunksink_live"], found["chunksink_home_readable"]) == (0, 1)


def test_file_that_cannot_be_written_changes_no_exit_code(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    ended = quick_shell("sync", "--metrics-file", "no-such-folder/a.prom")
    assert (ended.code, "no-such-folder/a.prom" in ended.err) == (Exit.OK, True)
    quick_shell.cut_off("p1")
    ended = quick_shell("sync", "--metrics-file", "no-such-folder/a.prom")
    assert ended.code == Exit.INVALID_INPUT


def test_file_with_another_suffix_is_refused_before_the_run(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    assert quick_shell("sync", "--metrics-file", "a.txt").code == Exit.USAGE
    assert not quick_shell.home.exists()


@pytest.mark.parametrize("arguments", [["--metrics-file", "a.prom"], ["--watch", "--metrics-port", "0"]])
def test_without_the_extra_the_run_does_not_begin(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(options, "find_spec", lambda _name: None)
    quick_shell.commit("p1", source("a.md", "a cat"))
    ended = quick_shell("sync", *arguments)
    assert (ended.code, "`metrics`" in ended.err) == (Exit.USAGE, True)
    assert not (quick_shell.home / "state.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--metrics-port", "0"],
        ["--watch", "--metrics-file", "a.prom"],
        ["--metrics-host", "localhost"],
        ["--watch", "--metrics-host", "localhost"],
        ["--watch", "--metrics-port", "0", "--metrics-host", ".example.org"],
    ],
)
def test_options_that_do_not_fit_are_refused(quick_shell: Shell, arguments: list[str]) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    assert quick_shell("sync", *arguments).code == Exit.USAGE


def test_taken_port_is_an_error_before_the_first_sync(quick_shell: Shell) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    with running(quick_shell.folder, **WORDS) as server:
        port = server.address.rstrip("/").rpartition(":")[2]
        ended = quick_shell("sync", "--watch", "--metrics-port", port)
    assert (ended.code, port in ended.err) == (Exit.USAGE, True)
    assert quick_shell("status").code == Exit.USAGE, "nothing was built"


def test_watch_serves_metrics(quick_shell: Shell, promtool: Path) -> None:
    quick_shell.commit("p1", source("a.md", "a cat"))
    port = free_port()
    with watching(quick_shell.folder, "--metrics-port", str(port)) as watcher:
        watcher.says("synced")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        assert watcher.interrupt() == Exit.INTERRUPTED
    require_good_form(promtool, text)
    assert samples(text)["chunksink_chunks_indexed{sink=fts}"] == 1


def test_serve_counts_searches_and_negotiates_the_form(quick_shell: Shell, promtool: Path) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with running(quick_shell.folder, **WORDS) as server:
        for path in ("/api/search?q=cat", "/?q=cat", "/?q=", "/api/search?q=cat&filter=color%3Dred"):
            server.get(path)
        assert server.get("/api/search?q=cat&mode=semantic")[0] == 400
        assert json.loads(server.get("/healthz")[1])
        text, openmetrics = (server.get("/metrics", Accept=accept)[1] for accept in ("text/plain", OPENMETRICS))
        assert server.end() == Exit.OK
    require_good_form(promtool, text)
    assert openmetrics.endswith("# EOF\n")
    for found in (samples(text), samples(openmetrics, openmetrics=True)):
        assert found["chunksink_search_seconds_count{mode=keyword}"] == 2, "checks of health are not counted"
        assert found["chunksink_search_errors_total{reason=invalid}"] == 1
        assert found["chunksink_search_errors_total{reason=unavailable}"] == 0
        assert found["chunksink_families_desired"] == 1


@pytest.mark.promise(11)
def test_metrics_of_serve_need_a_token_for_all_tenants(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    tokens = ",".join(f"{sha256(name.encode()).hexdigest()}={tenant}" for name, tenant in (("all", "*"), ("one", "a")))
    with running(quick_shell.folder, CHUNKSINK_TOKENS=tokens, **WORDS) as server:
        codes = [server.get("/metrics", token=token)[0] for token in ("", "wrong", "one", "all")]
        assert "error" in json.loads(server.get("/metrics")[1])
    assert codes == [401, 401, 403, 200]


def test_every_metric_is_documented(shell: Shell) -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    documented = {name for line in page.splitlines() if line.startswith("| `") for name in _names(line.split("|")[1])}
    shell.synced(p1=[source("a.md", "a cat"), source("b.md", "a boat")])
    assert shell("verify", "--deep").code == Exit.OK
    with running(shell.folder, **WORDS) as server:
        server.get("/api/search?q=cat")
        text = server.get("/metrics")[1]
    kinds = re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE)
    shown = {name for name, _ in kinds if not name.endswith("_created")}
    unseen = {"chunksink_recall_mean_ratio", "chunksink_recall_worst_ratio"} - shown
    assert documented - unseen == shown


def _names(cell: str) -> list[str]:
    return re.findall(r"`(chunksink_\w+)`", cell)


def test_home_that_cannot_be_read_is_reported_as_such(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert readable(quick_shell)
    quick_shell.folder.chmod(0o711)
    quick_shell.home.chmod(0)
    try:
        with as_nobody():
            assert not readable(quick_shell)
    finally:
        quick_shell.home.chmod(0o700)


def readable(shell: Shell) -> bool:
    return scraped(shell)["chunksink_home_readable"] == 1


def scraped(shell: Shell) -> dict[str, float]:
    return samples(generate_latest(registry_of(config_of(shell))).decode())


def config_of(shell: Shell) -> Config:
    return Config(home=str(shell.home.relative_to(shell.folder)), chunks=str(shell.root.path))


def test_chunks_that_cannot_be_read_hide_no_figure_of_the_home(
    quick_shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    assert quick_shell("verify").code == Exit.OK
    before = scraped(quick_shell)
    assert before["chunksink_chunks_readable"] == 1

    def fail(_root: FolderRoot) -> list[str]:
        raise StorageError("the object storage does not answer")

    unknown = {"chunksink_lag_seconds", "chunksink_partitions_pending"}
    with monkeypatch.context() as patch:
        patch.setattr(FolderRoot, "partition_keys", fail)
        found = scraped(quick_shell)
    assert [found[f"chunksink_{name}"] for name in ("home_readable", "live", "chunks_readable")] == [1, 1, 0]
    assert before.keys() - found.keys() == unknown
    assert found["chunksink_chunks_indexed{sink=fts}"] == 1
    shutil.move(quick_shell.root.path, quick_shell.folder / "elsewhere")
    found = scraped(quick_shell)
    assert (found["chunksink_chunks_readable"], before.keys() - found.keys()) == (0, unknown)


def test_scrapes_during_an_outage_wait_once(quick_shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    is_over = threading.Event()

    def hang(_root: FolderRoot) -> list[str]:
        is_over.wait(60)
        return []

    monkeypatch.setattr(FolderRoot, "partition_keys", hang)
    registry = registry_of(config_of(quick_shell), 3.0)
    try:
        generate_latest(registry)
        began = time.monotonic()
        assert samples(generate_latest(registry).decode())["chunksink_chunks_readable"] == 0
        assert time.monotonic() - began < 2
    finally:
        is_over.set()


def test_bucket_that_does_not_answer_delays_neither_searches_nor_the_end_of_serve(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, and never answers
        bucket = {
            "CHUNKSINK_CHUNKS": "s3://tests/silent",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        with running(quick_shell.folder, **WORDS, **bucket) as server:
            found = samples(server.get("/metrics")[1])
            assert server.texts("cat") == ["a cat"]
            assert server.end(signal.SIGTERM) == Exit.OK
    assert [found[f"chunksink_{name}"] for name in ("home_readable", "live", "chunks_readable")] == [1, 1, 0]


@pytest.mark.parametrize("error", ["HomeLocked", "OtherPlan"])
def test_run_that_did_nothing_is_not_the_last_run(quick_shell: Shell, error: str) -> None:
    quick_shell.synced(p1=[source("a.md", "a cat")])
    with RunLog(quick_shell.home, "sync") as log:
        log.finish("failed", error=error)
    assert scraped(quick_shell)["chunksink_last_run_success{command=sync}"] == 1


def test_file_of_an_ingest_without_an_index_has_no_metric_of_an_index(quick_shell: Shell) -> None:
    notes = quick_shell.folder / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n")
    (notes / "b.md").write_bytes(b"\x80")
    found = written(quick_shell, "ingest", "notes")
    assert found["chunksink_ingest_failures"] == 1
    assert found["chunksink_last_run_success{command=ingest}"] == 1
    assert "chunksink_live" not in found
    assert scraped(quick_shell)["chunksink_live"] == 0, "`serve` and `sync --watch` need an index"
    assert written(quick_shell, "sync")["chunksink_live"] == 1
