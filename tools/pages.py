"""Markdown that is made from the code; the generated parts of `docs/*.md` call these functions."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import msgspec

from chunksink.chunkbus import findings
from chunksink.cli import cli
from chunksink.exits import MEANINGS as EXIT_MEANINGS
from chunksink.ingest import codes
from chunksink.settings import config
from chunksink.sinks.fields import PROJECTION


def findings_table() -> str:
    return _codes_table(findings.MEANINGS)


def ingest_table() -> str:
    return _codes_table(codes.MEANINGS)


def _codes_table(meanings: Mapping[str, tuple[str, str]]) -> str:
    rows = ["| code | what is wrong | what to do |", "|---|---|---|"]
    rows += [f"| `{code}` | {_cell(what)} | {_cell(remedy)} |" for code, (what, remedy) in sorted(meanings.items())]
    return "\n".join(rows)


def projection_table() -> str:
    rows = ["| field | taken from, in order | meaning |", "|---|---|---|"]
    for rule in PROJECTION:
        paths = ", ".join(f"`{path}`" for path in rule.paths) or "derived"
        rows.append(f"| `{rule.name}` | {paths} | {_cell(rule.meaning)} |")
    return "\n".join(rows)


def exits_table() -> str:
    rows = ["| code | name | meaning |", "|---|---|---|"]
    rows += [f"| {code.value} | `{code.name}` | {meaning} |" for code, meaning in EXIT_MEANINGS.items()]
    return "\n".join(rows)


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    rows += [
        f"| `{field.name}` | {_default(field)} | {_cell(config.MEANINGS[field.name])} |"
        for field in msgspec.structs.fields(config.Config)
    ]
    return "\n".join(rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    """As it would be written in the environment."""
    if field.default is None or field.default is msgspec.NODEFAULT:
        return ""
    shown = ",".join(field.default) if isinstance(field.default, tuple) else str(field.default)
    return f"`{shown.lower() if isinstance(field.default, bool) else shown}`"


PROMISES = {
    1: "Pure: on a valid bus, a sync from any state ends in the same index as a rebuild from nothing.",
    2: "Crash-convergent: killed at any instant, the plain next run converges; no committed vector is computed again.",
    3: "No gap, no orphan: no source is absent while it is replaced, and afterwards nothing of the old one is left.",
    4: "Receipts after facts: written when the engine has confirmed, and never taken for proof.",
    5: "Zero-downtime rebuild: readers have the live generation until the flip; the one before can be brought back.",
    6: "Bad input is kept out before any write, and never deletes; a large removal stops at the brake.",
    7: "One refused document never blocks the others; it is named with its reason and tried again when it changes.",
    8: "The cache never lies: a vector is served only for its text and model, after its checksum matched.",
    9: "One writer, many readers: a second writer waits or leaves; nobody's lock is left behind.",
    10: "Time is not evidence: no clock of a run decides to delete or to skip.",
    11: "Tenants are apart: a search without the tenant it needs gets nothing, and others change no answer.",
    12: "Secrets stay secret: in no log, error, page or list of processes.",
}
_PROMISE = re.compile(r"mark\.promise\((\d+)\)")
_LONG_FORM = re.compile(r"from tests\.conftest import .*\b(HEAVY|examples|sampled)\b|CHUNKSINK_SOAK")


def promises_table() -> str:
    """Which test files carry the number of which promise, and which of them have a long form."""
    proving: dict[int, list[str]] = {number: [] for number in PROMISES}
    for file in sorted(Path("tests").glob("**/test_*.py")):
        text = file.read_text(encoding="utf-8")
        link = f"[{file.parent.name}/{file.stem}](../{file}){' +' if _LONG_FORM.search(text) else ''}"
        for number in sorted({int(found) for found in _PROMISE.findall(text)}):
            proving[number].append(link)
    rows = ["| | promise | tests |", "|---|---|---|"]
    rows += [f"| {number} | {_cell(PROMISES[number])} | {', '.join(files)} |" for number, files in proving.items()]
    return "\n".join(rows)


def commands_help() -> str:
    parent = click.Context(cli, info_name="chunksink", **cli.context_settings)
    return "\n\n".join(_help_below(cli, parent))


def _help_below(group: click.Group, parent: click.Context) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
        yield f"### {context.command_path}\n\n```text\n{command.get_help(context)}\n```"
        if isinstance(command, click.Group):
            yield from _help_below(command, context)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
