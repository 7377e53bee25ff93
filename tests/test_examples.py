"""The files in `examples/cluster` and `examples/scheduling` are valid, and their commands exist."""

from __future__ import annotations

import fcntl
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from chunksink.command_line.cli import cli
from tests.conftest import ROOT

FOLDER = ROOT / "examples" / "cluster"
SCHEDULING = ROOT / "examples" / "scheduling"
CRON = (SCHEDULING / "chunksink.cron").read_text()
UNITS = sorted(SCHEDULING.glob("*.service")) + sorted(SCHEDULING.glob("*.timer"))


def parse(arguments: list[str]) -> None:
    """Raises `UsageError` for an unknown command or option. Runs nothing."""
    name, *rest = arguments
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None, name
    command.make_context(name, rest, parent=context)


def test_the_cron_job_runs_a_command_that_exists() -> None:
    documents: dict[str, Any] = {each["kind"]: each for each in yaml.safe_load_all((FOLDER / "cronjob.yaml").open())}
    job = documents["CronJob"]["spec"]
    assert job["concurrencyPolicy"] == "Forbid"
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    parse(container["args"])
    [volume], [mount] = pod["volumes"], container["volumeMounts"]
    assert volume["name"] == mount["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == documents["PersistentVolumeClaim"]["metadata"]["name"]
    home = container["args"][container["args"].index("--home") + 1]
    assert home.startswith(mount["mountPath"])


def test_the_ray_cluster_names_a_command_that_exists() -> None:
    text = (FOLDER / "ray-cluster.yaml").read_text()
    cluster = yaml.safe_load(text)
    assert cluster["head_node_type"] in cluster["available_node_types"]
    [command] = re.findall(r"^#\s+chunksink (.+)$", text, re.MULTILINE)
    parse(shlex.split(command))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_of_systemd_is_valid_and_runs_a_command_that_exists(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text()
    for command in re.findall(r"^ExecStart=\S+/chunksink (.+)$", text, re.MULTILINE):
        parse(shlex.split(command))
    assert ("ExecStart=" in text) == (unit.suffix == ".service")
    if (checker := shutil.which("systemd-analyze")) is None:
        return
    for one in UNITS:  # a timer names its service
        here = one.read_text().replace("/opt/chunksink/bin/chunksink", sys.executable).replace("/srv/search", "/")
        (tmp_path / one.name).write_text(here)
    done = subprocess.run([checker, "verify", tmp_path / unit.name], capture_output=True, text=True, check=False)
    assert unit.name not in done.stderr, done.stderr


def test_cron_runs_commands_that_exist_one_at_a_time(tmp_path: Path) -> None:
    jobs = re.findall(r"cd /srv/search && (flock .*run\.lock) \S+/chunksink ([^>\n]+)", CRON)
    assert len(jobs) == CRON.count("/opt/chunksink/bin") == CRON.count("> /dev/null\n"), "cron mails problems only"
    for _, command in jobs:
        parse(shlex.split(command))
    skips, waits = (shlex.split(lock) for lock, _ in jobs)
    with (tmp_path / "run.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        skipped = subprocess.run([*skips, "touch", "ran"], cwd=tmp_path, check=False)
        assert skipped.returncode == 0
        assert not (tmp_path / "ran").exists()
        waiting = subprocess.Popen([*waits, "touch", "ran"], cwd=tmp_path)
        fcntl.flock(held, fcntl.LOCK_UN)
    assert waiting.wait(30) == 0
    assert (tmp_path / "ran").exists()


def test_the_airflow_dag_runs_commands_that_exist() -> None:
    text = (SCHEDULING / "airflow_dag.py").read_text()
    commands = re.findall(r"\{CHUNKSINK\} ([a-z][^|\"]*)", text)
    assert [command.split()[0] for command in commands] == ["ingest", "verify"]
    of_sync, of_verify = re.findall(r"(\|\| case .*esac)", text)
    for tolerance, results in ((of_sync, {0: 0, 3: 0, 6: 0, 5: 1, 7: 1}), (of_verify, {0: 0, 3: 0, 4: 1, 5: 1})):
        for code, expected in results.items():
            assert subprocess.run(["bash", "-c", f"(exit {code}) {tolerance}"], check=False).returncode == expected
    for command in commands:
        parse(shlex.split(command))


def test_an_unknown_option_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parse(["sync", "--no-such-option"])
