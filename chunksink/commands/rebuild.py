"""`chunksink rebuild`: the index from nothing but the chunks."""

from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.chunks import validate_chunks
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, printable
from chunksink.progress import progress
from chunksink.wiring import open_embedder, open_one_sink, open_sinks

if TYPE_CHECKING:
    from rebuild.catalog import RepeatedTexts
    from rebuild.embed import DocumentEmbedder
    from rebuild.rebuild import RebuildReport
    from sinks.patient import Fault


_EXAMPLES = 20


@click.command()
@chunks_option
@home_option
@click.option("--model", metavar="NAME", help="Sentence-transformers model: a folder or a name on the hub.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    help="What vectors are computed in; auto takes bfloat16 where the hardware has it.  [default: auto]",
)
@click.option("--deep", is_flag=True, help="Also compare every vector in the engines with the computed one.")
@click.option(
    "--sink",
    "sinks",
    multiple=True,
    metavar="NAME",
    help="Write to this sink only, and keep the live builds of the others; may be repeated.",
)
@json_option
def command(
    chunks: str | None,
    home: str | None,
    model: str | None,
    precision: str | None,
    deep: bool,
    sinks: tuple[str, ...],
    as_json: bool,
) -> int:
    """Build the index from nothing but the chunks.

    Fills a new generation beside the live one, reads it back to verify it, then shows it to readers in one step.
    Until then, and if anything fails, searches see the generation before. Vectors that were computed once are taken
    from the cache in HOME. Chunks that break the contract stop it before anything is written.

    \b
    Examples:
      chunksink rebuild
      chunksink rebuild --chunks /data/chunks --home /data/index
      chunksink rebuild --sink meilisearch --sink chroma
    """
    from rebuild.lock import writing
    from rebuild.rebuild import Rebuild, read_chunks
    from rebuild.state import State

    config = config_from(chunks=chunks, home=home, model=model, precision=precision, sinks=sinks or None)
    started = monotonic()
    root = BusRoot(config.chunks_path).require()
    with ExitStack() as stack:
        run_log = stack.enter_context(RunLog(config.home_path, "rebuild"))
        stack.enter_context(writing(config.home_path))
        validate_chunks(root, config, run_log)
        state = stack.enter_context(State(config.home_path))
        catalog = read_chunks(root, state)  # before the model, which takes seconds to load
        opened = stack.enter_context(open_sinks(config, partial(_tell_fault, run_log)))
        embedder = stack.enter_context(open_embedder(config))
        with progress("rebuild", catalog.counts().chunks, "chunks") as bar:
            rebuild = Rebuild(root, state, catalog, opened, embedder, partial(open_one_sink, config, stack))
            report = rebuild.run(bar.advance, deep=deep, keep_others=bool(sinks))
        facts = _facts(run_log.run_id, report, embedder, catalog.repeated_texts(), monotonic() - started)
        run_log.finish(**facts)
    if as_json:
        print_json(facts)
    else:
        _print(report, facts)
    return Exit.REFUSED if facts["status"] == "refused" else Exit.OK


def _tell_fault(run_log: RunLog, fault: "Fault") -> None:
    run_log.write("fault", **asdict(fault))
    click.echo(f"{fault.sink}: {fault.call} failed ({fault.error}); it is tried again", err=True)


def _facts(
    run_id: str, report: "RebuildReport", embedder: "DocumentEmbedder", repeated: "RepeatedTexts", seconds: float
) -> dict[str, Any]:
    embedded = embedder.report
    return {
        "run_id": run_id,
        "status": "refused" if any(report.refused.values()) else "ok",
        "generation": report.generation,
        "families": {"added": report.families, "superseded": report.superseded},
        "chunks": {"written": report.chunks},
        "repeated_texts": asdict(repeated),
        "embeddings": {
            "model": embedder.info.name,
            "fingerprint": embedder.info.fingerprint,
            "precision": embedder.info.precision,
            "computed": embedded.encoded,
            "cached": embedded.reused,
            "refused": embedded.refused,
            "problems": {hash.hex(): problem for hash, problem in islice(embedded.problems.items(), _EXAMPLES)},
            "long_chunks": embedded.over_length,
            "corrupt": embedded.corrupt,
            "salvaged": [asdict(each) for each in embedded.salvaged],
        },
        "sinks": {
            sink: {"chunks": report.chunks - len(refused), "refused": [asdict(document) for document in refused]}
            for sink, refused in report.refused.items()
        },
        "seconds": round(seconds, 3),
    }


def _print(report: "RebuildReport", facts: dict[str, Any]) -> None:
    click.echo(
        f"built {', '.join(facts['sinks'])}: {counted(report.chunks, 'chunk')} of "
        f"{counted(report.families, 'source')}, verified and live, in {facts['seconds']:.1f} s"
    )
    _print_vectors(facts["embeddings"])
    if report.superseded:
        click.echo(f"{counted(report.superseded, 'older version')} of sources left out")
    repeated = facts["repeated_texts"]
    if repeated["texts"]:
        example = " and ".join(printable(chunk_id) for chunk_id in repeated["examples"][0])
        click.echo(f"{counted(repeated['texts'], 'text')} in more than one source, as in {example}")
    for sink, refused in report.refused.items():
        for document in refused:
            click.echo(f"refused by {sink}: {document.id}: {document.reason}", err=True)


def _print_vectors(embedded: dict[str, Any]) -> None:
    click.echo(
        f"vectors: {embedded['computed']:,} computed in {embedded['precision']}, {embedded['cached']:,} from the cache"
    )
    for problem in sorted(set(embedded["problems"].values())):
        click.echo(f"no vector: {printable(problem)}", err=True)
    if embedded["long_chunks"]:
        longer = f"{counted(embedded['long_chunks'], 'chunk')} longer than the model takes at once"
        click.echo(f"{longer}; `chunksink cache long-texts` lists them")
    if embedded["corrupt"]:
        click.echo(f"{counted(embedded['corrupt'], 'damaged vector')} in the cache computed again", err=True)
    for salvaged in embedded["salvaged"]:
        click.echo(
            f"the cache was damaged: {counted(salvaged['rows'], 'sound vector')} carried over, "
            f"the damaged file kept as {salvaged['kept']}",
            err=True,
        )
