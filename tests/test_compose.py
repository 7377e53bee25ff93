"""`docker-compose.yml` is correct. No Docker is needed: the file is read, and its health checks run against the same
servers on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.command_line.exits import Exit
from tests.chunksink.test_serve_command import running
from tests.conftest import ROOT, need
from tests.engines.servers import ChromaServer, MeilisearchServer, PostgresServer, free_port
from tests.journey.support import chunksink
from tests.support.bus import commit, source
from tools.engines import MEILISEARCH_VERSION, PGVECTOR_VERSION

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

each_service = pytest.mark.parametrize("service", SERVICES.values(), ids=list(SERVICES))


def pinned(package: str) -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def test_the_images_are_the_official_ones_at_the_tested_versions() -> None:
    assert {name: service["image"] for name, service in SERVICES.items() if "build" not in service} == {
        "meilisearch": f"getmeili/meilisearch:v{MEILISEARCH_VERSION}",
        "chroma": f"chromadb/chroma:{pinned('chromadb')}",
        "postgres": f"pgvector/pgvector:{PGVECTOR_VERSION}",
    }


@each_service
def test_ports_are_open_to_this_machine_only(service: dict[str, Any]) -> None:
    assert service["ports"]
    for port in service["ports"]:
        # The port on the host may be chosen, the address may not.
        assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:\d+", port)
    assert service.get("network_mode") != "host"


@each_service
def test_data_lives_in_a_named_volume(service: dict[str, Any]) -> None:
    names = [volume.split(":")[0] for volume in service["volumes"] if not volume.endswith(":ro")]
    assert names
    assert set(names) <= set(COMPOSE["volumes"])


@each_service
def test_a_service_comes_back_by_itself(service: dict[str, Any]) -> None:
    assert service["restart"] == "unless-stopped"


@each_service
def test_keys_come_from_the_environment_and_must_be_given(service: dict[str, Any]) -> None:
    for name, value in service["environment"].items():
        if name in ("CHUNKSINK_TOKENS", "POSTGRES_PASSWORD"):
            # `serve` refuses to start without a token, see below; so does PostgreSQL without a password.
            assert value == f"${{{name}:-}}"
        elif re.search(r"KEY|TOKEN|SECRET|PASSWORD", name):
            assert re.fullmatch(rf"\$\{{{name}:\?[^}}]+\}}", value), f"{name} is written down or optional"


def test_meilisearch_has_a_key_and_neither_server_phones_home() -> None:
    meilisearch, chroma = SERVICES["meilisearch"]["environment"], SERVICES["chroma"]["environment"]
    assert meilisearch["MEILI_MASTER_KEY"].startswith("${MEILI_MASTER_KEY:?")
    assert meilisearch["MEILI_ENV"] == "production"
    assert meilisearch["MEILI_NO_ANALYTICS"] == "true"
    assert chroma["ANONYMIZED_TELEMETRY"] == "false"


def test_the_search_service_refuses_to_start_without_tokens(tmp_path: Path) -> None:
    command = SERVICES["search"]["command"]
    assert chunksink(tmp_path, *command, CHUNKSINK_TOKENS="").code == Exit.USAGE


def test_engines_start_without_the_profile_of_the_search_service() -> None:
    assert [name for name, service in SERVICES.items() if "profiles" not in service] == ["meilisearch", "chroma"]


def test_the_image_can_be_built_from_the_files_that_docker_gets(tmp_path: Path) -> None:
    """The wheel is built from the paths that `.dockerignore` allows, by the command of the Dockerfile."""
    source = tmp_path / "source"
    source.mkdir()
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        path = ROOT / line.removeprefix("!")
        if line.startswith("!") and path.is_dir():
            shutil.copytree(path, source / path.name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        elif line.startswith("!"):
            shutil.copy(path, source)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    options = ["--constraint", "constraints.txt", "--wheel-dir", tmp_path, "."]
    subprocess.run([*build, *options], cwd=source, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name.split("/")[1] for name in archive.namelist() if name.startswith("chunksink/")}
    assert {path.name for path in (ROOT / "chunksink").iterdir()} - {"__pycache__"} <= packed


def healthy(service: str, inside: int, port: int) -> bool:
    """Run a service's health check on this machine, with the container's port replaced by the real one."""
    kind, *command = SERVICES[service]["healthcheck"]["test"]
    assert kind == "CMD"
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here (it is in the image)")
    here = [re.sub(rf"(127\.0\.0\.1[:/]){inside}\b", rf"\g<1>{port}", word) for word in command]
    assert here != command, "the health check asks another port than the one that is published"
    done = subprocess.run(here, capture_output=True, check=False, timeout=30)
    return done.returncode == 0


def test_the_health_check_of_meilisearch_works(meilisearch_server: MeilisearchServer) -> None:
    assert healthy("meilisearch", 7700, meilisearch_server.port)
    assert not healthy("meilisearch", 7700, free_port())


def test_the_health_check_of_chroma_works(chroma_server: ChromaServer) -> None:
    assert healthy("chroma", 8000, chroma_server.port)
    assert not healthy("chroma", 8000, free_port())


def test_the_health_check_of_postgres_works(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(need("postgres").parent), prepend=os.pathsep)
    assert healthy("postgres", 5432, postgres_server.port)
    assert not healthy("postgres", 5432, free_port())


def test_the_health_check_of_the_search_service_works(tmp_path: Path) -> None:
    commit(FolderRoot(tmp_path / "chunks"), "p1", source("pets.md", "the cat sleeps"))
    assert chunksink(tmp_path, "rebuild", CHUNKSINK_SINKS="fts").code == Exit.OK
    tokens = f"{'0' * 64}=*"
    command = [*SERVICES["search"]["command"][1:], "--port", str(port := free_port())]
    with running(tmp_path, *command, CHUNKSINK_SINKS="fts", CHUNKSINK_TOKENS=tokens):
        assert healthy("search", 8765, port)
    assert not healthy("search", 8765, free_port())
