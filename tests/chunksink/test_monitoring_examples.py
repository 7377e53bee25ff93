"""The files in `examples/monitoring`, loaded by a real Prometheus that scrapes `chunksink serve`."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.chunksink.test_serve_command import WORDS, running
from tests.conftest import ROOT
from tests.embeddings.endpoint import serve as serve_endpoint
from tests.engines.servers import free_port
from tests.support.bus import FEBRUARY, source
from tests.support.waiting import eventually

EXAMPLES = ROOT / "examples" / "monitoring"
PATIENCE = 60.0
CONFIGURATION = """
global: {{scrape_interval: 500ms, evaluation_interval: 500ms}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: chunksink, static_configs: [targets: ["{target}"]]}}]
"""
NOT_HERE = re.compile("search_fallbacks|recall_")
"""No leg fails, and the server has no vectors."""
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Prometheus:
    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **values: str) -> Any:
        with _opener.open(f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(values)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def shows(self, expression: str) -> bool:
        return bool(self.get("query", query=expression)["result"])

    def rules(self) -> dict[str, dict[str, Any]]:
        return {rule["name"]: rule for group in self.get("rules")["groups"] for rule in group["rules"]}


@contextmanager
def prometheus(program: Path, folder: Path, target: str) -> Iterator[Prometheus]:
    configuration, address = folder / "prometheus.yml", f"127.0.0.1:{free_port()}"
    configuration.write_text(CONFIGURATION.format(rules=EXAMPLES / "alerts.yml", target=target))
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'series'}",
                f"--web.listen-address={address}",
            ],
            stdout=log,
            stderr=log,
        )
    server = Prometheus(f"http://{address}")

    def has_scraped() -> bool:
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        try:
            return server.shows("count_over_time(chunksink_build_info[1m]) >= 2")
        except OSError:
            return False

    try:
        eventually(has_scraped)
        yield server
    finally:
        process.kill()
        process.wait()


def test_each_panel_shows_something_and_each_rule_is_evaluated(
    shell: Shell, promtool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panels = json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]
    expressions = [target["expr"].replace("$job", ".*") for panel in panels for target in panel["targets"]]
    shell.commit("p1", source("a.md", "a cat"), source("b.md", "a boat"))
    with serve_endpoint() as endpoint:
        monkeypatch.setenv("CHUNKSINK_ENDPOINT", endpoint.url)
        monkeypatch.setenv("CHUNKSINK_TOKEN_PRICE", "1")
        assert shell("sync").code == Exit.OK
        assert shell("verify", "--deep").code == Exit.OK
        shell.commit("p2", source("c.md", "a tree"))
        shell.cut_off("p2")
        shell.commit("p1", source("b.md", "a boat sails", version="2", at=FEBRUARY), at=FEBRUARY)
        shell.lose("b.md")
        assert shell("verify").code == Exit.DRIFT
    with running(shell.folder, **WORDS) as server:
        target = re.sub(r"^http://|/$", "", server.address)
        with prometheus(promtool.with_name("prometheus"), shell.folder, target) as scraper:
            server.get("/api/search?q=cat")
            for expression in expressions:
                if not NOT_HERE.search(expression):
                    eventually(partial(scraper.shows, expression))
            eventually(lambda: all(rule["health"] == "ok" for rule in scraper.rules().values()))
            # A rule that was evaluated before the first scrape is healthy, too.
            eventually(lambda: scraper.rules()["ChunksinkDrift"]["state"] == "firing")
            rules = scraper.rules()
    for inactive in ("NothingToSearch", "ChunksNotReadable", "Absent", "NeverVerified"):
        assert rules[f"Chunksink{inactive}"]["state"] == "inactive"
    assert rules["ChunksinkPartitionsBroken"]["state"] == "pending"


def test_rules_have_a_remedy_and_good_form(promtool: Path) -> None:
    rules = EXAMPLES / "alerts.yml"
    done = subprocess.run([promtool, "check", "rules", "--lint-fatal", rules], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    text = rules.read_text()
    assert text.count("remedy:") == text.count("- alert:")


def test_files_name_metrics_that_exist() -> None:
    text = "".join(file.read_text() for file in EXAMPLES.iterdir())
    documented = set(re.findall(r"`(chunksink_\w+)`", (ROOT / "docs" / "monitoring.md").read_text()))
    named = {re.sub(r"_(bucket|count)$", "", name) for name in re.findall(r"chunksink_\w+", text)}
    assert named <= documented
