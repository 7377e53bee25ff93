"""`chunksink rebuild`: the index from nothing but the chunks."""

from contextlib import ExitStack
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from chunkbus.layout import BusRoot
from chunkbus.runlog import RunLog
from chunksink.errors import Refusal, explained
from chunksink.exits import Exit
from chunksink.options import chunks_option, config_from, home_option, json_option
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
    with explained(), ExitStack() as stack:
        config = config_from(chunks=chunks, home=home, model=model)
        started = monotonic()
        root = BusRoot(config.chunks_path).require()
        run_log = stack.enter_context(RunLog(config.home_path, "rebuild"))
        _refuse_invalid(root, config.require_source_checksum, run_log)

        from rebuild.lock import writing
        from rebuild.rebuild import Rebuild, read_chunks
        from rebuild.state import State

        stack.enter_context(writing(config.home_path))
        state = stack.enter_context(State(config.home_path))
        catalog = read_chunks(root, state)  # before the model, which takes seconds to load
        sinks = stack.enter_context(open_sinks(config.home_path))
        embedder = stack.enter_context(open_embedder(config.home_path, config.model))
        with progress("rebuild", catalog.counts().chunks, "chunks") as bar:
            report = Rebuild(root, state, catalog, sinks, embedder).run(bar.advance)
        facts = _facts(run_log.run_id, report, embedder.counts, [sink.name for sink in sinks], monotonic() - started)
        run_log.finish(**{name: fact for name, fact in facts.items() if name != "run_id"})
    if as_json:
        import orjson

        click.echo(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode())
    else:
        _print(report, embedder.counts, facts)
    return Exit.REFUSED if report.refused else Exit.OK


def _refuse_invalid(root: BusRoot, require_source_checksum: bool, run_log: RunLog) -> None:
    from chunkbus.validate import Validation

    total = sum(root.size_of(key) for key in root.partition_keys())
    with worker_processes(total, None) as workers, progress("validate", total, "B") as bar:
        first: list[str] = []

        def take(finding: Any) -> None:
            run_log.finding(finding)
            if finding.is_error and len(first) < 3:
                first.append(str(finding))

        summary = Validation(
            root,
            require_source_checksum=require_source_checksum,
            workers=workers,
            on_finding=take,
            on_progress=bar.advance,
        ).run()
    if not summary.ok:
        run_log.finish("invalid", **asdict(summary))
        shown = "\n  ".join(first)
        message = f"{summary.errors} errors in {root.path}; the index is unchanged. The first:\n  {shown}"
        raise Refusal(f"{message}\nSee all with `chunksink validate --chunks {root.path}`", Exit.INVALID_INPUT)


def _facts(
    run_id: str, report: "RebuildReport", embedded: "EmbedCounts", sinks: list[str], seconds: float
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "status": "refused" if report.refused else "ok",
        "generation": report.generation,
        "families": {"added": report.families, "superseded": report.superseded},
        "chunks": {"written": report.chunks},
        "embeddings": {"computed": embedded.computed, "cached": embedded.cached},
        "sinks": {name: {"families": report.families, "chunks": report.chunks} for name in sinks},
        "refused": [asdict(document) for document in report.refused],
        "seconds": round(seconds, 3),
    }


def _print(report: "RebuildReport", embedded: "EmbedCounts", facts: dict[str, Any]) -> None:
    click.echo(
        f"built {', '.join(facts['sinks'])}: {report.chunks:,} chunks of {report.families:,} sources, "
        f"verified and live, in {facts['seconds']:.1f} s"
    )
    click.echo(f"vectors: {embedded.computed:,} computed, {embedded.cached:,} from the cache")
    if report.superseded:
        click.echo(f"{report.superseded:,} older versions of sources were left out")
    if embedded.over_length:
        click.echo(
            f"{embedded.over_length:,} texts are longer than the model takes at once; their windows were averaged"
        )
    for document in report.refused:
        click.echo(f"refused: {document.id}: {document.reason}", err=True)
