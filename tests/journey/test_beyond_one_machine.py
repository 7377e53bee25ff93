"""Chunks in a bucket, vectors computed on Ray, the index in PostgreSQL; each part is killed once on the way."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chunksink.command_line.exits import Exit
from tests.conftest import HEAVY
from tests.engines.servers import PostgresServer, S3Server, run_postgres
from tests.journey.support import Ended, chunksink, command_line, environment

pytest.importorskip("ray")
pytestmark = pytest.mark.skipif(not HEAVY, reason="part of `make soak`")
PAGES = 300
SETTINGS = """
chunks = "{bucket}/chunks"
sinks = ["postgres"]
engine = "ray"

[ray]
workers = 2
segments = "{bucket}/segments"
"""


def killed_when(is_time: Callable[[], bool], folder: Path, variables: dict[str, str], *arguments: str) -> None:
    """Run a command and kill it after `seconds`. It may have ended before."""
    run = subprocess.Popen(
        command_line(*arguments),
        cwd=folder,
        env=environment(**variables),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while run.poll() is None and not is_time():
        time.sleep(0.02)
    run.kill()
    run.wait()


def test_every_part_is_killed_once(
    bucket: str, s3_server: S3Server, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    docs, database, home = tmp_path / "docs", tmp_path / "database", tmp_path / ".chunksink"
    docs.mkdir()
    for number in range(PAGES):
        text = f"# Page {number}\n\nThe quokka number {number} sleeps in tree {number * 7}.\n"
        (docs / f"page-{number}.md").write_text(text, encoding="utf-8")
    (tmp_path / "chunksink.toml").write_text(SETTINGS.format(bucket=bucket))

    def variables(server: PostgresServer) -> dict[str, str]:
        return s3_server.variables() | {"CHUNKSINK_SINK_POSTGRES_URL": server.url, "CHUNKSINK_PATIENCE": "2"}

    def run(server: PostgresServer, *arguments: str, code: int = Exit.OK) -> Ended:
        ended = chunksink(tmp_path, *arguments, **variables(server))
        assert ended.code == code, ended.err
        return ended

    with run_postgres(data=database) as server:
        killed_when(lambda: (home / "ingest.db").exists(), tmp_path, variables(server), "ingest", "docs")
        run(server, "ingest", "docs")
        killed_when(lambda: (home / "vectors.db").exists(), tmp_path, variables(server), "sync")
        run(server, "sync")
        (docs / "page-7.md").write_text("# Page 7\n\nA numbat has moved in.\n", encoding="utf-8")
        run(server, "ingest", "docs")
        server.kill()
        run(server, "sync", code=Exit.ENGINE)
    with run_postgres(data=database, key=server.key) as server:
        run(server, "sync")
        found = run(server, "search", "numbat", "--json").json
        assert found["hits"][0]["source_uri"].endswith("page-7.md")
        verified = run(server, "verify", "--deep", "--json").json
        assert verified["sinks"]["postgres"]["families"] == PAGES
        other = ("--home", "other")
        settings = {"CHUNKSINK_SINK_POSTGRES_SCHEMA": "other", "CHUNKSINK_ENGINE": "local"}
        rebuilt = chunksink(tmp_path, "rebuild", *other, "--json", **variables(server), **settings)
        assert rebuilt.code == Exit.OK, rebuilt.err
        again = chunksink(tmp_path, "verify", "--json", *other, **variables(server), **settings).json
        assert again["sinks"]["postgres"]["digest"] == verified["sinks"]["postgres"]["digest"]
