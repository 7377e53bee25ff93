"""`chunksink eval`: measures searches of the live index against relevance judgements."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path

import click

from chunksink.exits import Exit, Refusal
from chunksink.live import LiveSearch
from chunksink.options import access_of, chunks_option, config_from, home_option, json_option
from chunksink.output import Note, show, some
from chunksink.search.access import Access
from chunksink.search.errors import InvalidQuestion
from chunksink.search.evaluation.evaluate import DEPTH, Figures, JudgedQueries, choose, evaluate
from chunksink.search.evaluation.naming import FIELDS, Naming, find_naming
from chunksink.search.evaluation.reading import read_judgements, read_queries
from chunksink.search.question import MODES, Mode, Question
from chunksink.session import chunk_documents

_EXAMPLES = 3
_BY_DEFAULT: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--queries", required=True, type=_FILE, help="JSON lines with _id and text, id<TAB>text, or TREC topics.")
@click.option("--qrels", required=True, type=_FILE, help="Judgements in the format of BEIR (TSV) or TREC.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    help="Which searches to measure. [default: keyword, semantic and hybrid]",
)
@click.option(
    "--id",
    "field",
    type=click.Choice(("auto", *FIELDS)),
    default="auto",
    show_default=True,
    help="The field that judgements use to name documents: filenames without extension, rows by their id.",
)
@click.option("--tenant", metavar="NAME", help="Search only the documents of this tenant.")
@click.option("--limit-queries", type=click.IntRange(1), metavar="N", help="Only the first N judged queries.")
@chunks_option
@home_option
@json_option
def command(
    queries: Path,
    qrels: Path,
    modes: tuple[Mode, ...],
    field: str,
    tenant: str | None,
    limit_queries: int | None,
    as_json: bool,
) -> int:
    """Measure searches of the live index against judgements: nDCG@10, recall@100 and MRR@10 over all judged queries.

    Each figure has a 95 % interval from resampled queries. Judgements name documents by one of their fields: `--id
    auto` uses the one with the most matches, preferring document_id, chunk_id, parent_id, source_uri, filename in this
    order. Unless it is chunk_id, each source counts once. Exits with 5 if an engine or the model does not answer. To
    prepare a BEIR set: `chunksink ingest corpus.jsonl --sync`.

    \b
    Examples:
      chunksink eval --queries queries.jsonl --qrels qrels/test.tsv
      chunksink eval --queries topics.txt --qrels qrels.txt --mode hybrid --id filename --json
    """
    config = config_from()
    judged = choose(read_queries(queries), read_judgements(qrels), limit_queries)
    access = access_of(config, tenant)
    documents = filter(access.admits, chunk_documents(config))
    naming = find_naming(documents, judged.judgements, None if field == "auto" else field, tenant)
    measured: dict[str, Figures] = {}
    with closing(LiveSearch(config)) as live:
        for mode in dict.fromkeys(modes or _BY_DEFAULT):
            try:
                measured[mode] = evaluate(judged, partial(_names, live, access, naming, mode))
            except InvalidQuestion:
                if modes or mode == _BY_DEFAULT[-1]:
                    raise
    show(as_json, _report(judged, naming, measured), _lines(judged, naming, measured))
    return Exit.OK


def _names(live: LiveSearch, access: Access, naming: Naming, mode: Mode, text: str) -> list[str]:
    answer = live.search(Question(text, mode=mode, limit=DEPTH, collapse=not naming.by_chunk), access)
    if answer.unavailable:
        reasons = "; ".join(f"{leg} search: {reason}" for leg, reason in answer.unavailable.items())
        raise Refusal(f"{mode} cannot be measured: {reasons}", Exit.ENGINE)
    return naming.names(document for hit in answer.hits for document in (hit.document, *hit.same_text))


def _report(judged: JudgedQueries, naming: Naming, measured: dict[str, Figures]) -> dict[str, object]:
    return {
        "queries": len(judged.queries),
        "queries_not_judged": judged.not_judged,
        "judged_without_text": judged.without_text,
        "id": naming.field,
        "judged_but_missing": sorted(naming.missing),
        "modes": {
            mode: {name: asdict(figure) for name, figure in of_mode.items()} for mode, of_mode in measured.items()
        },
    }


def _lines(judged: JudgedQueries, naming: Naming, measured: dict[str, Figures]) -> Iterator[str]:
    yield f"{len(judged.queries):,} judged queries, documents named by {naming.field}"
    if judged.not_judged:
        yield f"skipped, without a relevant document: {judged.not_judged:,}"
    if judged.without_text:
        yield f"judged, but missing from the queries file: {judged.without_text:,}"
    if naming.missing:
        examples = some(sorted(naming.missing), _EXAMPLES)
        yield Note(f"judged, but not in the index: {len(naming.missing):,} ({examples})")
    yield " " * 8 + "".join(f"{name:>24}" for name in next(iter(measured.values())))
    for mode, of_mode in measured.items():
        figures = (f"{one.mean:.4f} [{one.low:.4f}, {one.high:.4f}]" for one in of_mode.values())
        yield f"{mode:<8}" + "".join(f"{figure:>24}" for figure in figures)
