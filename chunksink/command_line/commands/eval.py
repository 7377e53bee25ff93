"""`chunksink eval`: measures searches of the live index against relevance judgements."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Any

import click

from chunksink.chunkbus.wording import some
from chunksink.command_line.exits import Exit
from chunksink.command_line.options import SharedOptions, access_of, config_from, index_options, json_option
from chunksink.command_line.output import Note, show
from chunksink.command_line.progress import waiting
from chunksink.evaluation import index_facts, measure, naming_of, tune_weight
from chunksink.live import LiveSearch
from chunksink.search.errors import InvalidQuestion
from chunksink.search.evaluation import comparison
from chunksink.search.evaluation.comparison import PRIMARY, Result, comparison_lines
from chunksink.search.evaluation.evaluate import Figures, JudgedQueries, Values, choose, figures
from chunksink.search.evaluation.naming import FIELDS, Naming
from chunksink.search.evaluation.reading import read_judgements, read_queries
from chunksink.search.evaluation.tuning import WEIGHTS, Tuning
from chunksink.search.question import MODES, Mode

_EXAMPLES = 3
_BY_DEFAULT: tuple[Mode, ...] = ("keyword", "semantic", "hybrid")
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
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
    help="The field by which judgements name documents. `filename` is the file's name without its "
    "extension; for a row of a JSON or CSV file, the row's id.",
)
@click.option("--tenant", metavar="NAME", help="Search only the documents of this tenant.")
@click.option("--limit-queries", type=click.IntRange(1), metavar="N", help="Only the first N judged queries.")
@click.option(
    "--save", type=_NEW_FILE, metavar="FILE", help="Write the values of all queries, for --baseline and rebuilds."
)
@click.option("--baseline", type=_FILE, metavar="FILE", help="Compare with a saved result, in its modes.")
@click.option(
    "--fail-if-drop",
    type=click.FloatRange(0),
    metavar="X",
    help="Exit with 12 if the mean nDCG@10 of a mode is lower than in the baseline by more than X.",
)
@click.option(
    "--tune", is_flag=True, help="Measure hybrid search with fixed weights of its keyword part, and propose one."
)
@index_options
@json_option
def command(
    shared: SharedOptions,
    queries: Path,
    qrels: Path,
    modes: tuple[Mode, ...],
    field: str,
    tenant: str | None,
    limit_queries: int | None,
    save: Path | None,
    baseline: Path | None,
    fail_if_drop: float | None,
    tune: bool,
    as_json: bool,
) -> int:
    """Measure searches of the live index against judgements: nDCG@10, recall@100 and MRR@10 over all judged queries.

    Each figure has a 95 % interval from resampled queries. Judgements name documents by one of their fields: `--id
    auto` uses the field with the most matches, in a tie the first of document_id, chunk_id, parent_id, source_uri,
    filename. Each source counts once, except with chunk_id. Exits with 5 if an engine or the model does not answer. To
    prepare a BEIR set: `chunksink ingest corpus.jsonl --sync`.

    --baseline compares the queries that both results have: the mean nDCG@10, the difference with its 95 % interval, and
    the queries that lost and won most.

    --tune measures hybrid search with eleven fixed weights, and with the default, which chooses a weight for each
    query. It proposes a `fusion_weight` if cross-validation finds a fixed weight better.

    \b
    Examples:
      chunksink eval --queries queries.jsonl --qrels qrels/test.tsv
      chunksink eval --queries topics.txt --qrels qrels.txt --mode hybrid --id filename --json
      chunksink eval --queries queries.jsonl --qrels qrels.tsv --baseline answers.json --fail-if-drop 0.01
    """
    if fail_if_drop is not None and baseline is None:
        raise click.UsageError("--fail-if-drop compares with a saved result: add --baseline FILE")
    if fail_if_drop is not None and not fail_if_drop >= 0:  # also refuses nan: no drop is larger than it
        raise click.UsageError(f"--fail-if-drop must be 0 or more, not {fail_if_drop:g}")
    if save is not None and not save.absolute().parent.is_dir():
        raise click.UsageError(f"--save {save}: there is no folder {save.parent}")
    config = config_from(shared)
    judged = choose(read_queries(queries), read_judgements(qrels), limit_queries)
    access = access_of(config, tenant)
    before = _read_baseline(baseline, tenant, modes) if baseline else None
    if before:
        left_out = comparison.unshared_queries(before.judged, judged)
        modes = modes or tuple(before.modes)
        field = before.id if field == "auto" else field
    naming = naming_of(config, judged, access, None if field == "auto" else field)
    measured: dict[Mode, Values] = {}
    with closing(LiveSearch(config, every_seconds=inf)) as live:  # one generation for all queries
        for mode in dict.fromkeys(modes or _BY_DEFAULT):
            try:
                measured[mode] = measure(config, judged, naming, access, mode, live.search)
            except InvalidQuestion:
                # A default mode that this index cannot answer is left out. Hybrid, the last, needs only one leg: if
                # even that cannot be answered, no mode can.
                if modes or mode == _BY_DEFAULT[-1]:
                    raise
        index = index_facts(config, live.generation())
    means = {mode: figures(values) for mode, values in measured.items()}
    document, lines = _document(judged, naming, means, index), list(_lines(judged, naming, means, index))
    code = Exit.OK
    if before:
        found = comparison.compare(before.modes, measured, inf if fail_if_drop is None else fail_if_drop)
        document["comparison"] = found | {"baseline": before.index, "left_out": left_out}
        lines += _compared(before, left_out, found)
        code = Exit.WORSE if found["dropped"] else Exit.OK
    if tune:
        with waiting(f"measuring {len(WEIGHTS)} weights …"):
            tuning = tune_weight(config, judged, naming, access)
        document["tuning"] = {
            "weights": [{"weight": weight, PRIMARY: mean} for weight, mean in tuning.means.items()],
            "best": tuning.best,
            "expected": tuning.expected,
            "is_better": tuning.is_better,
        }
        lines += _tuned(tuning)
    if save:
        comparison.save(Result(id=naming.field, tenant=tenant, index=index, judged=judged, modes=measured), save)
    show(as_json, document, lines)
    return code


def _read_baseline(file: Path, tenant: str | None, modes: tuple[Mode, ...]) -> Result:
    """The saved result. UsageError if it was measured with another tenant or lacks one of these modes."""
    saved = comparison.read_result(file)
    if saved.tenant != tenant:
        of = f"the tenant {saved.tenant}" if saved.tenant else "no tenant"
        raise click.UsageError(f"the baseline was measured with {of}: use the same --tenant, or save a new one")
    if other := [mode for mode in modes if mode not in saved.modes]:
        raise click.UsageError(f"the baseline has no {' or '.join(other)} mode: save a new one, or leave out --mode")
    return saved


def _compared(before: Result, left_out: list[str], found: dict[str, Any]) -> Iterator[str]:
    index = before.index
    yield f"compared with generation {index.get('generation')} ({index.get('model') or 'no model'}):"
    yield from comparison_lines(found)
    if left_out:
        yield Note(f"not compared, only in one of the results: {some(left_out, _EXAMPLES)}")
    if found["dropped"]:
        yield Note(f"worse by more than --fail-if-drop: {', '.join(found['dropped'])}")


def _tuned(tuning: Tuning) -> Iterator[str]:
    yield f"hybrid {PRIMARY} by the weight of keyword search:"
    for weight, mean in tuning.means.items():
        yield f"  {'by query' if weight is None else f'{weight:g}':<8} {mean:.4f}"
    if tuning.is_better:
        yield f"`fusion_weight = {tuning.best:g}` is expected to reach {tuning.expected:.4f} on other queries"
    else:
        best = f"the best is expected to reach {tuning.expected:.4f}"
        yield f"no fixed weight is expected to be better on other queries ({best}): leave fusion_weight unset"


def _document(
    judged: JudgedQueries, naming: Naming, measured: dict[Mode, Figures], index: dict[str, Any]
) -> dict[str, object]:
    return {
        "queries": len(judged.queries),
        "queries_not_judged": judged.not_judged,
        "judged_without_text": judged.without_text,
        "id": naming.field,
        "embed_context": index["embed_context"],
        "judged_but_missing": sorted(naming.missing),
        "modes": {
            mode: {name: asdict(figure) for name, figure in of_mode.items()} for mode, of_mode in measured.items()
        },
    }


def _lines(
    judged: JudgedQueries, naming: Naming, measured: dict[Mode, Figures], index: dict[str, Any]
) -> Iterator[str]:
    yield f"{len(judged.queries):,} judged queries, documents named by {naming.field}"
    if index["embed_context"]:
        yield f"embedded before each text: {index['embed_context']}"
    if judged.not_judged:
        yield f"skipped, without a relevant document: {judged.not_judged:,}"
    if judged.without_text:
        yield f"judged, but missing from the queries file: {judged.without_text:,}"
    if naming.missing:
        examples = some(sorted(naming.missing), _EXAMPLES)
        yield Note(f"judged, but not among the chunks: {len(naming.missing):,} ({examples})")
    yield " " * 8 + "".join(f"{name:>24}" for name in next(iter(measured.values())))
    for mode, of_mode in measured.items():
        figures = (f"{one.mean:.4f} [{one.low:.4f}, {one.high:.4f}]" for one in of_mode.values())
        yield f"{mode:<8}" + "".join(f"{figure:>24}" for figure in figures)
