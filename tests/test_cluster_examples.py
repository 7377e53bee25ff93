"""The files in `examples/cluster` are valid, and their commands exist."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click
import pytest
import yaml

from chunksink.cli import cli
from tests.conftest import ROOT

FOLDER = ROOT / "examples" / "cluster"


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


def test_an_unknown_option_would_be_found() -> None:
    with pytest.raises(click.UsageError):
        parse(["sync", "--no-such-option"])
