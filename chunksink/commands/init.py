"""`chunksink init`: writes a configuration file that explains every setting and sets none."""

import json
import textwrap
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from chunksink.exits import Exit, Refusal
from chunksink.settings import meanings
from chunksink.settings.config import CONFIG_FILE, Config, load_config, variable

_WIDTH = 100
_HEAD = """\
# Settings of chunksink. Every line is commented out and shows the default, or an example where there is none.
# To change a setting, remove the `#` before it. Environment variables and flags override this file;
# relative paths start at the folder of this file.
"""
# For settings without a default.
_EXAMPLES: dict[str, Any] = {
    "model_cache": "~/.cache/chunksink/models",
    "max_length": 256,
    "dimensions": 256,
    "query_prompt": "query: ",
    "passage_prompt": "passage: ",
    "endpoint": "http://127.0.0.1:11434/v1",
    "endpoint_key_variable": "EMBEDDINGS_KEY",
    "endpoint_dimensions": 256,
    "fusion_weight": 0.4,
    "token_price": 0.02,
    "documents_per_second": 500,
    "on_failure": ["/usr/local/bin/page-somebody", "--service", "search"],
    "on_drift": ["/usr/local/bin/page-somebody", "--service", "search"],
}


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
    defaults = {field.name: field.default for field in structs.fields(Config)}
    parts = [_HEAD]
    for name, meaning in meanings.MEANINGS.items():
        if name in ("sink", "fields", "rerank", "ray", "tokens"):
            continue  # their tables come last, as TOML requires
        value = defaults[name] if defaults[name] is not None else _EXAMPLES[name]
        comment = textwrap.wrap(f"{meaning}  ({variable(name)})", _WIDTH)
        unset = "" if defaults[name] is not None else "  # an example; unset by default"
        parts.append("\n".join(f"# {line}" for line in comment) + f"\n# {name} = {json.dumps(value)}{unset}\n")
    return "\n".join([*parts, Path(meanings.__file__).with_name("tables.toml").read_text(encoding="utf-8")])
