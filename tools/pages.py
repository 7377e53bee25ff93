"""Markdown that is made from the code; the generated parts of `docs/*.md` call these functions."""

from collections.abc import Mapping

import click

from chunkbus import findings
from chunksink.cli import COMMANDS, cli
from chunksink.exits import MEANINGS as EXIT_MEANINGS
from producers import errors as producers
from sinks.fields import PROJECTION


def findings_table() -> str:
    return _codes_table(findings.MEANINGS)


def ingest_table() -> str:
    return _codes_table(producers.MEANINGS)


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


def commands_help() -> str:
    parent = click.Context(cli, info_name="chunksink", **cli.context_settings)
    parts = []
    for name in COMMANDS:
        command = cli.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
        parts.append(f"### chunksink {name}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
