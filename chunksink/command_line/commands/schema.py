"""`chunksink schema`: the JSON Schemas of chunks, manifests and extractor records."""

from pathlib import Path

import click

_FILES = {"chunk": "chunk.schema.json", "manifest": "manifest.schema.json", "ir": "ir-schema.json"}


@click.command()
@click.argument("kind", type=click.Choice(list(_FILES)))
def command(kind: str) -> None:
    """Print the JSON Schema of one kind of record.

    `chunk` is a line of canonical/KEY.jsonl, `manifest` is manifest/KEY.manifest.json, and `ir` is a record of an
    extractor, which `chunksink ingest --as ir` reads.

    \b
    Examples:
      chunksink schema chunk
      chunksink schema manifest > manifest.schema.json
    """
    folder = Path(__file__).parents[2] / "schema"
    click.echo((folder / _FILES[kind]).read_text(encoding="utf-8"), nl=False)
