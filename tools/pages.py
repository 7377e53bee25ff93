"""Tables generated from the code, for the parts of `docs/*.md` that cog fills."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import msgspec

from chunksink.chunkbus import findings
from chunksink.command_line.cli import cli
from chunksink.command_line.exits import Exit
from chunksink.ingest import codes
from chunksink.search.filters import filter_fields
from chunksink.settings.config import SETTINGS, Config, meaning_of
from chunksink.sinks.custom_fields import NO_FIELDS
from chunksink.sinks.fields import PROJECTION, SORTABLE


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


def filters_table() -> str:
    meanings = {rule.name: rule.meaning for rule in PROJECTION}
    rows = ["| field | values | filters | sort | meaning |", "|---|---|---|---|---|"]
    for name, field in sorted(filter_fields(NO_FIELDS).items()):
        ways = "bounds" if field.has_order else "patterns" if field.has_patterns else ""
        sort = "yes" if name in SORTABLE else ""
        rows.append(f"| `{name}` | {field.type} | {ways} | {sort} | {_cell(meanings[name])} |")
    return "\n".join(rows)


def exits_table() -> str:
    rows = ["| code | name | meaning |", "|---|---|---|"]
    rows += [f"| {code.value} | `{code.name}` | {code.meaning} |" for code in Exit]
    return "\n".join(rows)


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    rows += [
        f"| `{field.name}` | {_default(field)} | {_cell(str(meaning_of(field.name).description))} |"
        for field in msgspec.structs.fields(Config)
        if field.name in SETTINGS
    ]
    return "\n".join(rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    """The default, written as in an environment variable."""
    if field.default is None or field.default is msgspec.NODEFAULT:
        return ""
    shown = ",".join(field.default) if isinstance(field.default, tuple) else str(field.default)
    return f"`{shown.lower() if isinstance(field.default, bool) else shown}`"


PROMISES = {
    1: "Pure: on a valid bus, a sync from any state ends in the same index as a rebuild from nothing.",
    2: "Crash-convergent: after a kill at any instant, or on a full disk, the next run converges; "
    "no committed vector is computed again.",
    3: "No gap, no orphan: a source is never absent while it is replaced, and nothing of its old version is left.",
    4: "Receipts after facts: a receipt is written when the engine has confirmed, and is never taken as proof.",
    5: "Zero-downtime rebuild: readers use the live generation until the flip; the previous one can be restored.",
    6: "Bad input is rejected before any write, and never deletes; the brake stops a large removal.",
    7: "One refused document never blocks the others; it is reported with its reason, and retried when it changes.",
    8: "The cache never lies: a vector is used only for its text and model, and only if its checksum matches.",
    9: "One writer, many readers: a second writer waits or exits; the lock of a dead run is taken over.",
    10: "Time is not evidence: no decision to delete or to skip depends on the clock of a run.",
    11: "Tenants are separate: a search without a required tenant gets no documents; other tenants change no answer.",
    12: "Secrets stay secret: they are in no log, error, page or process list.",
}
_PROMISE = re.compile(r"mark\.promise\((\d+)\)")
_LONG_FORM = re.compile(r"from tests\.conftest import .*\b(HEAVY|examples|sampled)\b")


def promises_table() -> str:
    """The test files for each promise, with the number of its tests. `+` marks files with a long form."""
    proving: dict[int, list[str]] = {number: [] for number in PROMISES}
    for file in sorted(Path("tests").glob("**/test_*.py")):
        text = file.read_text(encoding="utf-8")
        link, plus = f"[{file.parent.name}/{file.stem}](../{file})", "+" if _LONG_FORM.search(text) else ""
        for number, tests in sorted(_marked(ast.parse(text)).items()):
            proving[number].append(f"{link} {tests}{plus}")
    rows = ["| | promise | tests |", "|---|---|---|"]
    rows += [f"| {number} | {_cell(PROMISES[number])} | {', '.join(files)} |" for number, files in proving.items()]
    return "\n".join(rows)


def _marked(module: ast.Module) -> Counter[int]:
    """How many test functions of a module have the mark of each promise."""
    tests = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    of_all = [ast.unparse(node) for node in module.body if ast.unparse(node).startswith("pytestmark")]
    marks = [" ".join([*of_all, *map(ast.unparse, test.decorator_list)]) for test in tests]
    return Counter(number for mark in marks for number in {int(found) for found in _PROMISE.findall(mark)})


def commands_help() -> str:
    parent = click.Context(cli, info_name="chunksink", **cli.context_settings)
    return "\n\n".join([f"```text\n{cli.get_help(parent)}\n```", *_help_below(cli, parent)])


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
