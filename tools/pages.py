"""Markdown that is made from the code; the generated parts of `docs/*.md` call these functions."""

from collections.abc import Iterator, Mapping

import click
import msgspec

from chunkbus import findings
from chunksink.cli import cli
from chunksink.exits import MEANINGS as EXIT_MEANINGS
from producers import errors as producers
from settings import config
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


def settings_table() -> str:
    rows = ["| setting | default | meaning |", "|---|---|---|"]
    for field in msgspec.structs.fields(config.Config):
        default = "" if field.default is None else f"`{field.default}`"
        rows.append(f"| `{field.name}` | {default} | {_cell(config.MEANINGS[field.name])} |")
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
