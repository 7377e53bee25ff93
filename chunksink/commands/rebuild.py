"""`chunksink rebuild`: the index from nothing but the chunks."""

from contextlib import ExitStack
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json
from chunksink.progress import progress
from chunksink.wiring import open_embedder, open_sinks
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from rebuild.embed import EmbedCounts
    from rebuild.rebuild import RebuildReport


@click.command()
@chunks_option
@home_option
@click.option("--model", metavar="NAME", help="Sentence-transformers model: a folder or a name on the hub.")
@json_option
def command(chunks: str | None, home: str | None, model: str | None, as_json: bool) -> int:
    """Build the index from nothing but the chunks.

    Fills a new generation beside the live one, reads it back to verify it, then shows it to readers in one step.
    Until then, and if anything fails, searches see the generation before. Vectors that were computed once are taken
    from the cache in HOME. Chunks that break the contract stop it before anything is written.

    \b
    Examples:
      chunksink rebuild
      chunksink rebuild --chunks /data/chunks --home /data/index
    """
    from rebuild.gate import require_valid
    from rebuild.lock import writing
    from rebuild.rebuild import Rebuild, read_chunks
    from rebuild.state import State

    config = config_from(chunks=chunks, home=home, model=model)
    started = monotonic()
    root = BusRoot(config.chunks_path).require()
    size = sum(root.size_of(key) for key in root.partition_keys())
    with ExitStack() as stack:
        run_log = stack.enter_context(RunLog(config.home_path, "rebuild"))
        stack.enter_context(writing(config.home_path))
        with worker_processes(size, None) as workers, progress("validate", size, "B") as bar:
            require_valid(
                root,
                require_source_checksum=config.require_source_checksum,
                workers=workers,
                on_finding=run_log.finding,
                on_progress=bar.advance,
            )
        state = stack.enter_context(State(config.home_path))
        catalog = read_chunks(root, state)  # before the model, which takes seconds to load
        sinks = stack.enter_context(open_sinks(config.home_path))
        embedder = stack.enter_context(open_embedder(config.home_path, config.model))
        with progress("rebuild", catalog.counts().chunks, "chunks") as bar:
            report = Rebuild(root, state, catalog, sinks, embedder).run(bar.advance)
        facts = _facts(run_log.run_id, report, embedder.counts, monotonic() - started)
        run_log.finish(**facts)
    if as_json:
        print_json(facts)
    else:
        _print(report, embedder.counts, facts)
    return Exit.REFUSED if facts["status"] == "refused" else Exit.OK


def _facts(run_id: str, report: "RebuildReport", embedded: "EmbedCounts", seconds: float) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "status": "refused" if any(report.refused.values()) else "ok",
        "generation": report.generation,
        "families": {"added": report.families, "superseded": report.superseded},
        "chunks": {"written": report.chunks},
        "embeddings": {"computed": embedded.computed, "cached": embedded.cached},
        "sinks": {
            sink: {"chunks": report.chunks - len(refused), "refused": [asdict(document) for document in refused]}
            for sink, refused in report.refused.items()
        },
        "seconds": round(seconds, 3),
    }


def _print(report: "RebuildReport", embedded: "EmbedCounts", facts: dict[str, Any]) -> None:
    click.echo(
        f"built {', '.join(facts['sinks'])}: {counted(report.chunks, 'chunk')} of "
        f"{counted(report.families, 'source')}, verified and live, in {facts['seconds']:.1f} s"
    )
    click.echo(f"vectors: {embedded.computed:,} computed, {embedded.cached:,} from the cache")
    if report.superseded:
        click.echo(f"{counted(report.superseded, 'older version')} of sources left out")
    if embedded.over_length:
        click.echo(
            f"{counted(embedded.over_length, 'text')} longer than the model takes at once: windows were averaged"
        )
    for sink, refused in report.refused.items():
        for document in refused:
            click.echo(f"refused by {sink}: {document.id}: {document.reason}", err=True)
