"""`chunksink eval`: how well the live index finds what was judged relevant."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chunksink.exits import Exit, Refusal
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import Note, show, some
from chunksink.settings.config import Config

if TYPE_CHECKING:
    from chunksink.live import LiveSearch
    from chunksink.search.access import Access
    from chunksink.search.evaluation.evaluate import JudgedQueries, Measured
    from chunksink.search.evaluation.naming import Naming
    from chunksink.sinks.document import Document

_MODES = ("hybrid", "keyword", "semantic", "engine")
_EXAMPLES = 3
_BY_DEFAULT = ("keyword", "semantic", "hybrid")
_FIELDS = ("document_id", "chunk_id", "parent_id", "source_uri", "filename")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--queries", required=True, type=_FILE, help="JSON lines with _id and text, id<TAB>text, or TREC topics.")
@click.option("--qrels", required=True, type=_FILE, help="Judgements as BEIR has them (TSV), or TREC.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(_MODES),
    help="Which searches to measure. [default: keyword, semantic and hybrid]",
)
@click.option(
    "--id",
    "field",
    type=click.Choice(("auto", *_FIELDS)),
    default="auto",
    show_default=True,
    help="What the judgements call a document by; a file name counts without its extension, of a row it is its id.",
)
@click.option("--tenant", metavar="NAME", help="Search only what belongs to this tenant.")
@click.option("--limit-queries", type=click.IntRange(1), metavar="N", help="Only the first N judged queries.")
@chunks_option
@home_option
@json_option
def command(
    queries: Path,
    qrels: Path,
    modes: tuple[str, ...],
    field: str,
    tenant: str | None,
    limit_queries: int | None,
    as_json: bool,
) -> int:
    """Measure searches of the live index against judgements: nDCG@10, recall@100 and MRR@10 over all judged queries.

    Each figure has the interval of 95 % of resamples of the queries. Judgements name documents by one of their fields:
    with `--id auto` the one under which most of the names are found, of equal ones the first of document_id, chunk_id,
    parent_id, source_uri, filename. Unless it is chunk_id, each source answers once. Exits with 5 when an engine or the
    model could not be asked. To prepare a BEIR set: `chunksink ingest corpus.jsonl --sync`.

    \b
    Examples:
      chunksink eval --queries queries.jsonl --qrels qrels/test.tsv
      chunksink eval --queries topics.txt --qrels qrels.txt --mode hybrid --id filename --json
    """
    from chunksink.live import LiveSearch
    from chunksink.search.access import Access
    from chunksink.search.errors import InvalidQuestion
    from chunksink.search.evaluation.evaluate import choose, evaluate
    from chunksink.search.evaluation.naming import find_naming
    from chunksink.search.evaluation.reading import read_judgements, read_queries

    config = config_from()
    asked = choose(read_queries(queries), read_judgements(qrels), limit_queries)
    access = Access(tenant, required=config.tenants == "required")
    if access.denied:
        raise Refusal("this index serves each tenant its own documents: say whose with --tenant", Exit.USAGE)
    documents = filter(access.admits, _documents(config))
    naming = find_naming(documents, asked.judgements, None if field == "auto" else field, tenant)
    measured: dict[str, Measured] = {}
    with closing(LiveSearch(config)) as live:
        for mode in dict.fromkeys(modes or _BY_DEFAULT):
            try:
                measured[mode] = evaluate(asked, partial(_names, live, access, naming, mode))
            except InvalidQuestion:
                if modes or mode == _BY_DEFAULT[-1]:
                    raise
    show(as_json, _report(asked, naming, measured), _lines(asked, naming, measured))
    return Exit.OK


def _documents(config: Config) -> "Iterator[Document]":
    """All that counts now, read from the chunks."""
    from chunksink.chunkbus.layout import BusRoot
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.families import FamilyReader
    from chunksink.rebuild.state import State

    root = BusRoot(config.chunks_path)
    root.require()
    with State.existing(config.home_path) as state:
        catalog = Catalog(state)
        for family in FamilyReader(root, catalog).read(catalog.families()):
            yield from family.documents


def _names(live: "LiveSearch", access: "Access", naming: "Naming", mode: str, text: str) -> list[str]:
    from chunksink.search.evaluation.metrics import DEPTH
    from chunksink.search.question import MODES, Question

    chosen = next(known for known in MODES if known == mode)
    answer = live.search(Question(text, mode=chosen, limit=DEPTH, collapse=not naming.by_chunk), access)
    if answer.unavailable:
        reasons = "; ".join(f"{leg} search: {reason}" for leg, reason in answer.unavailable.items())
        raise Refusal(f"{mode} cannot be measured, {reasons}", Exit.ENGINE)
    return naming.names(document for hit in answer.hits for document in (hit.document, *hit.same_text))


def _report(asked: "JudgedQueries", naming: "Naming", measured: "dict[str, Measured]") -> dict[str, object]:
    return {
        "queries": len(asked.queries),
        "queries_not_judged": asked.not_judged,
        "judged_without_text": asked.without_text,
        "id": naming.field,
        "judged_but_missing": sorted(naming.missing),
        "modes": {
            mode: {name: asdict(figure) for name, figure in of_mode.figures.items()}
            for mode, of_mode in measured.items()
        },
    }


def _lines(asked: "JudgedQueries", naming: "Naming", measured: "dict[str, Measured]") -> Iterator[str]:
    yield f"{len(asked.queries):,} judged queries, documents named by {naming.field}"
    if asked.not_judged:
        yield f"{asked.not_judged:,} without a relevant document were left out"
    if asked.without_text:
        yield f"{asked.without_text:,} judged, but not in the file of queries"
    if naming.missing:
        examples = some(sorted(naming.missing), _EXAMPLES)
        yield Note(f"{len(naming.missing):,} judged, but no document has the name: {examples}")
    yield " " * 10 + "".join(f"{name:>26}" for name in next(iter(measured.values())).figures)
    for mode, of_mode in measured.items():
        figures = (f"{one.mean:.4f} [{one.low:.4f}, {one.high:.4f}]" for one in of_mode.figures.values())
        yield f"{mode:<10}" + "".join(f"{figure:>26}" for figure in figures)
