"""`chunksink init`: writes a configuration file that explains every setting and sets none."""

import json
import textwrap
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from chunksink.exits import Exit, Refusal
from chunksink.settings.config import CONFIG_FILE, Config, load_config, variable
from chunksink.settings.meanings import MEANINGS

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
_TABLES = """\
# Who may use `chunksink serve`: the sha256 of each token, and its tenant; "*" means all tenants.
# `printf %s "$TOKEN" | sha256sum` computes it. With any token here, every request needs one.

# [tokens]
# "SHA256-OF-A-TOKEN" = "acme"

# Custom fields, from the metadata of the chunks: for `--filter project=apollo`, `--facet`, `--sort` and keyword search.
# `chunksink validate --fields` proposes these tables.

# [fields.project]
# path = "metadata.project"                  # the default: metadata.NAME
# type = "string"                            # the default; or number, boolean, datetime, strings (a list)
# filter = true                              # the default
# facet = true
# search = true
# sort = true

# A model that ranks the best hits of each search again: a cross-encoder on this machine, or an endpoint.

# [rerank]
# model = "cross-encoder/ms-marco-MiniLM-L6-v2"
# url = "http://127.0.0.1:8080/v1/rerank"    # of an endpoint; without it the model runs on this machine
# key_variable = "RERANK_KEY"                # names the variable with the key of the endpoint
# top = 20                                   # hits to rank again
# deadline = 2.0                             # seconds; later scores are not used

# Workers on Ray, for `engine = "ray"`.

# [ray]
# address = "auto"                           # of a cluster; without it, Ray is started on this machine
# workers = 4                                # otherwise one for each processor, or for each share of a GPU
# gpus_per_worker = 0.0                      # the default; 0.5 if two workers share a GPU
# segments = "/shared/segments"              # folder or bucket for vectors; otherwise `segments` in the home

# Options of the sinks, each in its table. Do not write keys here: name the environment variable that has the key.

# [sink.fts]
# folder = "/var/lib/chunksink/fts"          # of the index; otherwise `fts` in the home

# [sink.meilisearch]
# url = "http://127.0.0.1:7700"              # or the variable MEILI_URL, which by default puts it in place of fts
# key_variable = "MEILI_MASTER_KEY"
# index = "chunks"                           # the name under which other programs search
# vectors = true                             # send vectors for its own hybrid search
# settings_file = "meilisearch-settings.json"
# patience = 900.0                           # seconds it may work without finishing any task
# timeout = 60.0                             # seconds that a request waits for its answer
# search_timeout = 5.0                       # seconds that a search waits for it

# [sink.chroma]
# folder = "/var/lib/chunksink/chroma"       # embedded: of the index; otherwise `chroma` in the home
# store_text = true                          # without it Chroma loads faster and holds vectors and metadata only

# Chroma on a server, instead of a folder:
# url = "http://127.0.0.1:8000"
# prefix = "chunksink"                       # begins the names of its collections
# search_timeout = 5.0                       # seconds that a search waits for it
# token_variable = "CHROMA_TOKEN"
# timeout = 120.0

# [sink.jsonl]
# folder = "/var/lib/chunksink/jsonl"        # of the files; otherwise `jsonl` in the home

# Several indexes in one file: one table each, with the settings that differ from those above. `--index handbook` or the
# environment variable CHUNKSINK_INDEX chooses one; its home is `.chunksink/handbook` unless the table sets `home`.

# [index.handbook]
# chunks = "handbook/chunks"
"""


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
    for name, meaning in MEANINGS.items():
        if name in ("sink", "fields", "rerank", "ray", "tokens"):
            continue  # their tables come last, as TOML requires
        value = defaults[name] if defaults[name] is not None else _EXAMPLES[name]
        comment = textwrap.wrap(f"{meaning}  ({variable(name)})", _WIDTH)
        unset = "" if defaults[name] is not None else "  # an example; unset by default"
        parts.append("\n".join(f"# {line}" for line in comment) + f"\n# {name} = {json.dumps(value)}{unset}\n")
    return "\n".join([*parts, _TABLES])
