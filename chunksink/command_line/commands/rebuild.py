"""`chunksink rebuild`: a new index beside the live one, verified, then live."""

from typing import Any

import click

from chunksink.command_line.options import (
    SharedOptions,
    engine_options,
    index_options,
    json_option,
    note_index,
    open_index,
    writing_options,
)
from chunksink.command_line.summary import BUILT, exit_code, print_report


@click.command()
@index_options
@click.option("--model", metavar="NAME", help="Sentence-transformers model: a folder or a name on the hub.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16", "int8"]),
    help="Number format of the computation; auto uses bfloat16 if the hardware has it.  [default: auto]",
)
@click.option("--deep", is_flag=True, help="Also compare every vector in the engines with the computed one.")
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="SINK",
    help="Write to this sink only, and keep the live builds of the others; may be repeated.",
)
@click.option("--fresh-cache", is_flag=True, help="Compute every vector again; cached ones are dropped.")
@click.option(
    "--require-eval",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A file that `eval --save` wrote: run its queries, and keep the live index if the new one answers worse.",
)
@click.option(
    "--fail-if-drop",
    type=click.FloatRange(0),
    metavar="X",
    help="With --require-eval: the largest accepted drop of the mean nDCG@10.  [default: 0.01]",
)
@engine_options
@writing_options
@json_option
def command(
    shared: SharedOptions,
    model: str | None,
    precision: str | None,
    as_json: bool,
    fail_if_drop: float | None,
    **options: Any,
) -> int:
    """Build a new index from the chunks, verify it, and switch to it.

    The new generation is built beside the live one. Readers switch in one step; until then, and if anything fails,
    searches use the live one. `chunksink rollback` switches back. An interrupted rebuild continues where it stopped.
    Vectors that are in the cache are not computed again. Chunks that break the contract stop the rebuild before
    anything is written.

    \b
    Examples:
      chunksink rebuild
      chunksink rebuild --chunks /data/chunks --home /data/index
      chunksink rebuild --sink meilisearch
      chunksink rebuild --engine ray --address auto
      chunksink rebuild --model NAME --require-eval answers.json
    """
    if fail_if_drop is not None:
        if options["require_eval"] is None:
            raise click.UsageError(
                "--fail-if-drop limits the drop that --require-eval accepts: add --require-eval FILE"
            )
        options["fail_if_drop"] = fail_if_drop
    with open_index(shared, model=model, precision=precision) as index:
        if not as_json:
            note_index(index.config, "rebuild")
        report = index.rebuild(**options)
    print_report(report, as_json=as_json, verb=BUILT)
    return exit_code(report)
