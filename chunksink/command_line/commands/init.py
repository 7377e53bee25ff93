"""`chunksink init`: writes a configuration file that explains every setting and sets none."""

import json
import textwrap
from importlib.resources import files
from pathlib import Path

import click
from msgspec import structs

from chunksink.command_line.exits import Exit, Refusal
from chunksink.settings.config import CONFIG_FILE, SETTINGS, Config, meaning_of, variable
from chunksink.settings.load import load_config

_WIDTH = 100
_HEAD = """\
# Settings of chunksink. Every line is commented out and shows the default, or an example where there is none.
# To change a setting, remove the `#` before it. Environment variables and flags override this file;
# relative paths in it are resolved from its folder.
"""
_TABLES = ("sink", "fields", "rerank", "ray", "tokens")
"""These come last, as TOML requires."""


@click.command()
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(force: bool) -> None:
    """Write chunksink.toml into the current folder: every setting with its meaning and default, all commented out.

    chunksink works without it. An existing file is replaced only with --force.

    \b
    Examples:
      chunksink init
      chunksink init --force
    """
    file = Path(CONFIG_FILE)
    try:
        with file.open("w" if force else "x", encoding="utf-8") as opened:
            opened.write(content())
    except FileExistsError as error:
        raise Refusal(f"{file} exists: edit it, or replace it with --force", Exit.USAGE) from error
    load_config({}, environment={}, place=file)  # raises if the file cannot be loaded
    click.echo(f"wrote {file}; nothing in it is set yet")


def content() -> str:
    """The file: commented settings, then commented tables."""
    parts = [_HEAD]
    for field in structs.fields(Config):
        if field.name not in SETTINGS or field.name in _TABLES:
            continue
        about = meaning_of(field.name)
        value, unset = field.default, ""
        if value is None:
            assert about.examples, f"{field.name} has neither a default nor an example"
            value, unset = about.examples[0], "  # an example; unset by default"
        comment = textwrap.wrap(f"{about.description}  ({variable(field.name)})", _WIDTH)
        parts.append("\n".join(f"# {line}" for line in comment) + f"\n# {field.name} = {json.dumps(value)}{unset}\n")
    return "\n".join([*parts, files("chunksink.settings").joinpath("tables.toml").read_text(encoding="utf-8")])
