"""Runs the checks of `chunksink doctor`, and selects those that found a problem."""

import json

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell
from tests.support.bus import source

Checks = dict[str, dict[str, str]]
SOURCES = {name: [source(f"{name}.md", f"a cat of {name}")] for name in ("a", "b", "c")}


def checks(shell: Shell, code: Exit = Exit.ENGINE) -> Checks:
    ended = shell("doctor", "--json")
    assert ended.code == code, ended.out
    found: list[dict[str, str]] = json.loads(ended.out)
    return {check["name"]: check for check in found}


def problems(found: Checks) -> dict[str, str]:
    """The checks that are not ok. Each must have a remedy. Disk space is ignored, because this machine may be full."""
    wrong = {name: check for name, check in found.items() if check["verdict"] != "ok"}
    assert all(check["remedy"] for check in wrong.values())
    return {name: check["verdict"] for name, check in wrong.items() if name != "disk"}


def is_sound(shell: Shell) -> bool:
    return problems(checks(shell, Exit.OK)) == {}
