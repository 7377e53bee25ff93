"""`chunksink cache gc`: vectors that no current chunk refers to."""

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.runlog import RunLog
from chunksink.cli_errors import Refusal
from chunksink.exits import Exit
from chunksink.home_cache import existing_cache
from chunksink.options import chunks_option, config_from, home_option, json_option
from chunksink.output import counted, print_json, sized, some
from chunksink.progress import progress
from chunksink.session import open_intake

if TYPE_CHECKING:
    from chunksink.embeddings.maintenance import Surplus


@click.command("gc")
@chunks_option
@home_option
@click.option("--dry-run", is_flag=True, help="Only say how much would go.")
@json_option
def gc_command(chunks: str | None, home: str | None, dry_run: bool, as_json: bool) -> None:
    """Drop the vectors that no current chunk refers to, after saying how much that is.

    Kept are the texts of all current chunks, under the models of the live, the previous and any unfinished build.
    While a partition that the index was made from is missing or breaks the contract, nothing is dropped.

    \b
    Examples:
      chunksink cache gc --dry-run
      chunksink cache gc
    """
    from chunksink.chunkbus.store import write_transaction
    from chunksink.embeddings.maintenance import drop, find_surplus
    from chunksink.rebuild.catalog import Catalog
    from chunksink.rebuild.catalog_rows import drop_former_texts
    from chunksink.rebuild.locks import writing
    from chunksink.rebuild.state import State

    config = config_from(chunks=chunks, home=home)
    root = BusRoot(config.chunks_path).require()
    with ExitStack() as stack:
        cache = stack.enter_context(existing_cache(config, read_only=False))
        run_log = stack.enter_context(RunLog(config.home_path, "cache gc"))
        stack.enter_context(writing(config.home_path))
        state = stack.enter_context(State(config.home_path))
        _refuse_missing(set(Catalog(state).known_partitions()) - set(root.partition_keys()), root)
        # Aside: were this the wrong folder, the home's own catalog would be that of other chunks.
        scratch = stack.enter_context(TemporaryDirectory(prefix="gc-", dir=config.home_path))
        current = Catalog(aside := stack.enter_context(State(Path(scratch))))
        intake = open_intake(config, aside, run_log)
        with progress("validate", intake.pending_bytes(), "B") as bar:
            current.refresh(intake, bar.advance)
        current.require_valid()
        with progress("look", None, "vectors") as bar:
            surplus = find_surplus(
                cache,
                text_hashes=(chunk.text_hash for chunk in current.chunks()),
                fingerprints=state.model_fingerprints() or None,  # nothing is known of models: texts alone decide
                progress=bar.advance,
            )
        _refuse_all(surplus, root, cache.path)
        facts = {
            "rows": surplus.rows,
            "vector_bytes": surplus.vector_bytes,
            "rows_by_model": surplus.rows_by_model,
            "kept_rows": surplus.kept_rows,
            "dry_run": dry_run,
        }
        if as_json:
            print_json(facts)
        else:
            _print(surplus, dry_run)
        if surplus.rows and not dry_run:
            drop(cache, surplus)
        if not dry_run:
            with write_transaction(state.db):
                drop_former_texts(state.db)
        run_log.finish("ok", **facts)


def _refuse_missing(missing: set[str], root: BusRoot) -> None:
    if missing:
        raise Refusal(
            f"{counted(len(missing), 'partition')} that the index was made from is not in {root.path}: "
            f"{some(sorted(missing), 3)}. Bring it back, or retire it with `chunksink retire-partition`",
            Exit.INVALID_INPUT,
        )


def _refuse_all(surplus: "Surplus", root: BusRoot, file: Path) -> None:
    if surplus.rows and not surplus.kept_rows:
        raise Refusal(
            f"no chunk in {root.path} uses any cached vector, so that all {surplus.rows:,} would go; is it the right "
            f"folder? To drop them all, delete {file}",
            Exit.USAGE,
        )


def _print(surplus: "Surplus", dry_run: bool) -> None:
    verb = "would drop" if dry_run else "dropping"
    of_all = f"{counted(surplus.rows, 'vector')} of {surplus.rows + surplus.kept_rows:,}"
    click.echo(f"{verb} {of_all}, {sized(surplus.vector_bytes)}")
    for fingerprint, rows in surplus.rows_by_model.items():
        click.echo(f"  {rows:>10,}  of model {fingerprint}")
