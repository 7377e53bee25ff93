"""`chunksink cache stats | long-texts | show`: what is in the cache."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.home_cache import existing_cache
from chunksink.options import config_from, home_option, json_option
from chunksink.output import counted, print_json, printable, sized

if TYPE_CHECKING:
    from chunksink.embeddings.cache import VectorCache
    from chunksink.embeddings.stats import ModelStats
    from chunksink.rebuild.catalog import Catalog

_PAGE = 1000
_NUMBERS = 8


@click.command("stats")
@home_option
@json_option
def stats_command(home: str | None, as_json: bool) -> None:
    """Count what the cache holds, by model.

    \b
    Examples:
      chunksink cache stats
      chunksink cache stats --json | jq '.models[].fingerprint'
    """
    from chunksink.embeddings.stats import stats

    with existing_cache(config_from(home=home), read_only=True) as cache:
        told = stats(cache)
    if as_json:
        print_json(asdict(told))
        return
    click.echo(f"{told.path}: {counted(told.rows, 'vector')}, {sized(told.file_bytes)}")
    for model in told.models:
        _print_model(model)


def _print_model(model: "ModelStats") -> None:
    precisions = ", ".join(f"{rows:,} in {precision}" for precision, rows in model.rows_by_precision.items())
    click.echo(f"\n{printable(model.name) or '(a model without a name)'}")
    click.echo(f"  fingerprint  {model.fingerprint}")
    click.echo(f"  vectors      {model.rows:,} ({precisions or 'none'}), {sized(model.vector_bytes)}")
    if model.dimension is not None:
        click.echo(f"  dimensions   {model.dimension:,}")
    if model.max_length is not None:
        listed = "; `chunksink cache long-texts` lists them" if model.long_texts else ""
        click.echo(f"  long texts   {model.long_texts:,} of more than {model.max_length:,} {model.length_unit}{listed}")
    for producer in model.producers:
        libraries = ", ".join(f"{name} {version}" for name, version in producer.get("libraries", {}).items())
        click.echo(f"  computed by  {producer.get('device', '?')}{': ' if libraries else ''}{libraries}")


@click.command("long-texts")
@home_option
@json_option
def long_texts_command(home: str | None, as_json: bool) -> None:
    """List the chunks of the live index that are longer than its model takes at once.

    Nothing is cut silently: by default such a text is embedded in windows over all of it, whose mean stands for it
    (setting long_texts). Shorter chunks are usually found better.

    \b
    Examples:
      chunksink cache long-texts
      chunksink cache long-texts --json | jq '.chunks[].chunk_id'
    """
    from chunksink.embeddings.stats import model_limits
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.state import State

    config = config_from(home=home)
    with State.existing(config.home_path) as state, existing_cache(config, read_only=True) as cache:
        catalog = Catalog(state)
        catalog.decide()
        fingerprint = state.live().model_fingerprint
        most, unit = model_limits(cache, fingerprint) or (None, None)
        found = _long_chunks(catalog, cache, fingerprint, most) if most else iter(())
        if as_json:
            print_json({"max_length": most, "length_unit": unit, "chunks": list(found)})
            return
        count = 0
        for chunk in found:
            count += 1
            click.echo(f"{chunk['length']:>8,}  {printable(chunk['partition'])}  {printable(chunk['chunk_id'])}")
    if most is None:
        click.echo("the live index's model has no maximum that is known, or the cache holds nothing of it")
    else:
        click.echo(f"{counted(count, 'chunk')} of more than {most:,} {unit}")


def _long_chunks(catalog: "Catalog", cache: "VectorCache", fingerprint: str, most: int) -> Iterator[dict[str, Any]]:
    from chunksink.embeddings.references import raw_hash
    from chunksink.embeddings.stats import lengths

    chunks = catalog.chunks()
    while page := list(islice(chunks, _PAGE)):
        known = lengths(cache, fingerprint, list({raw_hash(chunk.text_hash) for chunk in page}))
        for chunk in page:
            length = known.get(raw_hash(chunk.text_hash), 0)
            if length > most:
                yield {**asdict(chunk), "length": length}


@click.command("show")
@click.argument("ref")
@home_option
@json_option
def show_command(ref: str, home: str | None, as_json: bool) -> None:
    """Show the vector that REF points to: the form of `embedding_ref` in a chunk.

    REF is cache:FINGERPRINT/TEXT_HASH, both of 64 hex digits: the model's fingerprint as `chunksink cache stats` shows
    it, and the chunk's hashes.text_hash without "sha256:". With --json all numbers of the vector are printed.

    \b
    Examples:
      chunksink cache show cache:5c1f.../09ab...
      chunksink cache show cache:5c1f.../09ab... --json | jq '.vector | length'
    """
    from chunksink.embeddings.stats import show

    with existing_cache(config_from(home=home), read_only=True) as cache:
        shown = show(cache, ref)
    if shown is None:
        raise Refusal(f"{ref} is not cached, or its row failed its check", Exit.USAGE)
    facts = asdict(shown) | {"ref": str(shown.ref), "vector": shown.vector.tolist()}
    if as_json:
        print_json(facts)
        return
    length = f", text of length {shown.tokens:,}" if shown.tokens else ""
    first = ", ".join(f"{number:.4f}" for number in facts["vector"][:_NUMBERS])
    click.echo(f"{shown.ref}")
    click.echo(f"  model      {printable(shown.model) or '(not recorded)'}")
    click.echo(f"  vector     {shown.dimension:,} dimensions, {shown.precision}, norm {shown.norm:.4f}{length}")
    click.echo(f"  begins     {first} ...")
