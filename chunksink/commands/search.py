"""`chunksink search`: one answer from both indexes."""

from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chunksink.exits import Exit
from chunksink.options import config_from, home_option, json_option
from chunksink.output import print_json
from chunksink.wiring import open_legs

if TYPE_CHECKING:
    from search.query import Answer, SearchHit

_MODES = ("hybrid", "keyword", "semantic")
_SHOWN_CHARACTERS = 240


@click.command()
@click.argument("query")
@click.option("--mode", type=click.Choice(_MODES), default="hybrid", show_default=True, help="Which indexes to ask.")
@click.option("--limit", type=click.IntRange(1, 1000), default=5, show_default=True, help="At most so many sources.")
@home_option
@json_option
def command(query: str, mode: str, limit: int, home: str | None, as_json: bool) -> int:
    """Search the index that `chunksink rebuild` made, best sources first.

    Keyword search finds the words, semantic search finds what means the same, hybrid (the default) fuses both.
    Each source is shown once, by its best chunk.

    \b
    Examples:
      chunksink search "how do I return a borrowed tool"
      chunksink search "Ausleihe" --mode keyword --limit 3
      chunksink search "battery safety" --json | jq '.hits[].source_uri'
    """
    from rebuild.lease import reading_live
    from rebuild.state import State
    from search.query import MODES, search

    config = config_from(home=home)
    chosen = next(known for known in MODES if known == mode)
    with ExitStack() as stack:
        state = stack.enter_context(State.existing(config.home_path))
        generation = stack.enter_context(reading_live(state))
        legs = stack.enter_context(open_legs(config, generation, semantic=mode != "keyword"))
        answer = search(legs, query, limit=limit, mode=chosen)
    if as_json:
        print_json(_report(answer))
    else:
        _print(answer)
    return Exit.ENGINE if answer.unavailable else Exit.OK


def _report(answer: "Answer") -> dict[str, Any]:
    hits = [{**asdict(hit), "highlights": _highlights(hit)} for hit in answer.hits]
    for hit in hits:
        del hit["snippet"]
    return {
        "query": answer.query,
        "mode": answer.mode,
        "hits": hits,
        "took_ms": round(answer.took_ms, 1),
        "unavailable": answer.unavailable,
    }


def _highlights(hit: "SearchHit") -> list[str]:
    return [piece.text for piece in hit.snippet if piece.match]


def _print(answer: "Answer") -> None:
    for leg, reason in answer.unavailable.items():
        click.secho(f"without {leg} search: {reason}", fg="yellow", err=True)
    if not answer.hits:
        click.echo("nothing found")
    for number, hit in enumerate(answer.hits, start=1):
        ranks = ", ".join(f"{leg} {rank}" for leg, rank in hit.ranks.items())
        place = hit.locator.get("section")
        title = hit.title or hit.source_uri or hit.chunk_id
        click.secho(f"{number}. {title}", bold=True, nl=False)
        click.echo(f"  {place}" if place and place != title else "")
        click.echo(f"   {_excerpt(hit)}")
        click.secho(f"   {hit.source_uri}  ({ranks})", dim=True)


def _excerpt(hit: "SearchHit") -> str:
    if hit.snippet:
        parts = (click.style(piece.text, bold=True) if piece.match else piece.text for piece in hit.snippet)
        return " ".join("".join(parts).split())
    text = " ".join(hit.text.split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS].rsplit(" ", 1)[0] + " …"
