"""`chunksink search`: searches the live index."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from math import inf
from textwrap import dedent
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from chunksink.chunkbus.wording import counted, printable, some
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, access_of, config_from, index_options, json_option
from chunksink.command_line.output import columns, note, print_json, wrapped
from chunksink.command_line.progress import waiting
from chunksink.embeddings.errors import EmbeddingsError
from chunksink.live import LiveSearch
from chunksink.rebuild.state import Generation
from chunksink.search.answer import Answer, SearchHit
from chunksink.search.excerpt import beginning, excerpt, keeps_lines
from chunksink.search.explanation import facts, formula, rerank_text, score_text, share_text, value_text
from chunksink.search.filters import parse_facets, parse_filters, parse_sort
from chunksink.search.question import FUSIONS, KEYWORD, LEGS_OF, MODES, SEMANTIC, Mode, Question
from chunksink.settings.config import Config
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.reader import Piece
from chunksink.wiring import cached_vector, default_mode

_TITLE_CHARACTERS = 120
_TEXT_CHARACTERS = 240
_MAX_VALUES = 20
_MAX_NAMED = 3
"""At most this many sources with the same text are named; `--json` lists all."""
_FRAGMENT_CHARACTERS = 300
"""Longer fragments of links are cut."""
_BOLD, _NORMAL = "\ufdd0", "\ufdd1"
"""Placeholders for the codes of bold text. Lines are wrapped before the codes are inserted, since wrapping counts them
as text. No text contains a placeholder: `printable` escapes both."""
_SPACE = re.compile(r"\s+")


@click.command()
@click.argument("query", nargs=-1)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    help="keyword finds words, semantic finds similar meanings, hybrid combines both, engine is Meilisearch's own "
    "hybrid search. [default: hybrid; keyword if no sink has vectors]",
)
@click.option("--limit", type=click.IntRange(1, 1000), default=5, show_default=True, help="At most this many hits.")
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Skip the first N.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="CONDITION",
    help="For example tags=vet or year>=2020. All conditions must match; several values of one field are alternatives.",
)
@click.option(
    "--facet", "facets", multiple=True, metavar="FIELD", help="Count the values of a field among all results."
)
@click.option(
    "--sort", metavar="FIELD", help="Show the chunks that have every word, sorted by this field; -FIELD: descending."
)
@click.option("--tenant", metavar="NAME", help="Search only the documents of this tenant.")
@click.option("--all-chunks", is_flag=True, help="Show every matching chunk, not each source once.")
@click.option(
    "--context", type=click.IntRange(0, 20), default=0, metavar="N", help="Show N chunks before and after each hit."
)
@click.option(
    "--fusion", type=click.Choice(FUSIONS), default="scores", show_default=True, help="How to combine both searches."
)
@click.option("--explain", is_flag=True, help="Show where each hit comes from and how its score is computed.")
@index_options
@json_option
def command(
    shared: SharedOptions,
    query: tuple[str, ...],
    mode: Mode | None,
    filters: tuple[str, ...],
    facets: tuple[str, ...],
    sort: str | None,
    tenant: str | None,
    all_chunks: bool,
    explain: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Search the live index, best sources first.

    Several words are one query. Quotes within it mark phrases: with '"left the harbour" boat', the quoted words must be
    side by side.

    Each source is shown once, by its best chunk. If one of the two searches of --mode hybrid fails, the hits come from
    the other one and the exit code is 5.

    \b
    Examples:
      chunksink search "how do I return a borrowed tool"
      chunksink search "Ausleihe" --mode keyword --limit 3
      chunksink search "battery safety" --filter source_type=md --filter "size_bytes>=1000" --facet language
      chunksink search "battery safety" --context 1 --explain
      chunksink search "battery safety" --json | jq '.hits[].source_uri'
      chunksink search --limit 3 -- -zebra
    """
    config = config_from(shared)
    access = access_of(config, tenant)
    fields = FieldSet.of(config.fields)
    question = Question(
        " ".join(query),
        mode=mode or default_mode(config),
        filters=parse_filters(filters, fields),
        facets=parse_facets(facets, fields),
        collapse=not all_chunks,
        sort=parse_sort(sort, fields),
        **options,
    )
    legs = LEGS_OF[question.mode]
    with (
        waiting("loading the model …" if SEMANTIC in legs else "searching …"),
        # The keyword leg is always needed, because it finds quoted phrases.
        closing(LiveSearch(config, every_seconds=inf, needed={KEYWORD, *legs})) as live,
    ):
        answer, generation = live.search(question, access), live.generation()
    if as_json:
        print_json(answer.as_json(explain=explain))
    else:
        why = [_explanation(config, generation, answer, hit) for hit in answer.hits] if explain else []
        _print(answer, why, question.offset, names_tenants=tenant is None)
    return Exit.ENGINE if answer.unavailable else Exit.OK


def _print(answer: Answer, why: list[list[str]], offset: int, *, names_tenants: bool) -> None:
    problem = "without {} search" if answer.answered else "no answer from {} search"
    for leg, reason in answer.unavailable.items():
        note(f"{problem.format(leg)}: {reason}", severity="warning", fg="yellow")
    if answer.not_reranked is not None:
        note(f"without the reranker: {printable(answer.not_reranked)}", severity="warning", fg="yellow")
    if answer.notice:
        note(printable(answer.notice), severity="warning", fg="yellow")
    if answer.answered and not answer.hits:
        click.echo("nothing more found" if offset else "nothing found")
    for place, hit in enumerate(answer.hits):
        _print_hit(offset + place + 1, hit, names_tenant=names_tenants)
        for line in why[place] if why else ():
            _dim(f"     {printable(line)}")
    for field, values in answer.facets.items():
        counts = [f"{printable(value_text(value.value))} ({value.families:,})" for value in values]
        click.echo(f"{field}: {some(counts, _MAX_VALUES) or 'none'}")


def _print_hit(number: int, hit: SearchHit, *, names_tenant: bool) -> None:
    ranks = ", ".join(f"{leg} {rank}" for leg, rank in hit.ranks.items())
    if hit.weak:
        ranks += "; weak match"
    if names_tenant and hit.document.tenant_id:
        ranks += f"; tenant {_line(hit.document.tenant_id, _TITLE_CHARACTERS)}"
    title = hit.title or hit.source_uri or hit.chunk_id
    place = f"{hit.locator.get('section', '')} > ".removeprefix(f"{title} > ").removesuffix(" > ")
    click.echo(_bold(f"{_BOLD}{number}. {_line(title, _TITLE_CHARACTERS)}{_NORMAL}  {_line(place, _TITLE_CHARACTERS)}"))
    for document in hit.before:
        _dim(f"   | {_line(_text(excerpt((), document)))}", prose=True)
    click.echo(_bold(f"   {_excerpt(hit)}"))
    for document in hit.after:
        _dim(f"   | {_line(_text(excerpt((), document)))}", prose=True)
    _dim(f"   {_address(hit)}  ({ranks})")
    _dim(f"   chunk {printable(hit.chunk_id)}")
    if hit.fields:
        _dim(f"   {_line('; '.join(f'{name} {value_text(value)}' for name, value in hit.fields.items()))}")
    if hit.same_text:
        names = [_line(one.source_uri or one.chunk_id, _TITLE_CHARACTERS) for one in hit.same_text]
        _dim(f"   also in {counted(len(names), 'other source')}: {some(names, _MAX_NAMED)}")


def _dim(line: str, *, prose: bool = False) -> None:
    click.secho(wrapped(line, columns(), prose=prose), dim=True)


def _bold(line: str) -> str:
    return wrapped(line.rstrip(), columns(), prose=True).replace(_BOLD, "\x1b[1m").replace(_NORMAL, "\x1b[0m")


def _address(hit: SearchHit) -> str:
    """The link of a hit. Links to files are unquoted, so that names can be opened. Long fragments are cut."""
    if hit.link is None:
        return printable(hit.source_uri or "")
    parts = hit.link.partition("#")
    source, mark, fragment = parts if urlsplit(parts[0]).scheme else map(unquote, parts)
    return printable(f"{source}#…" if len(fragment) > _FRAGMENT_CHARACTERS else f"{source}{mark}{fragment}")


def _excerpt(hit: SearchHit) -> str:
    shown = excerpt(hit.snippet, hit.document)
    if keeps_lines(hit.document):
        text = _marked(shown if hit.snippet else [Piece(beginning(_text(shown), _TEXT_CHARACTERS))])
        return "\n   ".join(line for line in dedent(text).split("\n") if line.strip())
    if not hit.snippet:
        return _line(_text(shown))
    return _marked(Piece(_SPACE.sub(" ", piece.text), piece.match) for piece in shown).strip()


def _marked(pieces: Iterable[Piece]) -> str:
    """The text with the found words in bold."""
    lines = ((piece, "\n".join(map(printable, piece.text.expandtabs(4).split("\n")))) for piece in pieces)
    return "".join(f"{_BOLD}{text}{_NORMAL}" if piece.match else text for piece, text in lines)


def _text(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _line(text: str, max_characters: int = _TEXT_CHARACTERS) -> str:
    return printable(beginning(_SPACE.sub(" ", text).strip(), max_characters))


def _explanation(config: Config, generation: Generation, answer: Answer, hit: SearchHit) -> list[str]:
    """The computation of the score, then facts about the chunk, one per line."""
    builds = ", ".join(f"{sink} {build}" for sink, build in generation.builds.items())
    return [
        *(f"{share.leg}: {share_text(answer, share)}" for share in hit.shares),
        f"score {score_text(answer, hit)}: {formula(answer)}",
        *([f"rerank: {rerank_text(hit.rerank)}"] if hit.rerank is not None else []),
        *(f"{name} {value}" for name, value in facts(hit.document) if name != "chunk"),
        *_vector(config, generation, hit),
        f"generation {generation.id}: {builds}",
    ]


def _vector(config: Config, generation: Generation, hit: SearchHit) -> Iterator[str]:
    """The context that the model reads before the text, then whether the vector is cached."""
    if not generation.holds_vectors:
        yield "vector none: no sink of the live index has vectors"
        return
    from chunksink.rebuild.families import passage_of

    passage = passage_of(hit.document)
    if generation.model.embed_context and passage.context:
        yield f"context {printable(' > '.join(passage.context.splitlines()))}"
    try:
        vector = cached_vector(config, generation.model, passage.key)
    except EmbeddingsError as error:
        yield f"vector unknown ({error})"
    else:
        yield "vector not cached" if vector is None else f"vector cached as {vector['ref']}"
