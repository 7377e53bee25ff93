"""`chunksink cache`: shows, checks and shrinks the cache of vectors, and copies it to other machines."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from chunksink.chunkbus.runlog import RunLog
from chunksink.chunkbus.storage import open_storage
from chunksink.chunkbus.store import write_transaction
from chunksink.chunkbus.wording import counted, printable, sized, some
from chunksink.command_line.exits import Exit, Refusal
from chunksink.command_line.options import SharedOptions, config_from, home_option, index_options, json_option
from chunksink.command_line.output import first, labelled, show
from chunksink.command_line.progress import progress
from chunksink.embeddings import segments
from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.encoder import ModelInfo
from chunksink.embeddings.maintenance import CacheCheck, RowsToDrop, drop, unneeded_rows, verify
from chunksink.embeddings.stats import CachedVector, CacheStats, lengths, model_limits, model_names, stats
from chunksink.embeddings.stats import show as vector_of_ref
from chunksink.rebuild.catalog import Catalog
from chunksink.rebuild.catalog_rows import drop_former_texts
from chunksink.rebuild.family_versions import decide
from chunksink.rebuild.locks import writing
from chunksink.rebuild.state import State, cache_file, segments_folder
from chunksink.settings.config import Config
from chunksink.wiring import existing_cache, open_intake

_PAGE = 1000
_NUMBERS = 8
_SHOWN = 3


@click.group()
def command() -> None:
    """Show, check, shrink and copy the cache of vectors in HOME/vectors.db.

    It has one vector for each combination of text, context and model. A vector is used only if its checksum
    matches. The cache may be deleted at any time; then every vector is computed again.
    """


@command.command("stats")
@home_option
@json_option
def stats_command(shared: SharedOptions, as_json: bool) -> None:
    """Count the cached vectors by model.

    \b
    Examples:
      chunksink cache stats
      chunksink cache stats --json | jq '.models[].fingerprint'
    """
    with existing_cache(config_from(shared, uses_sinks=False)) as cache:
        found = stats(cache)
    show(as_json, asdict(found), _stats_lines(found))


def _stats_lines(found: CacheStats) -> Iterator[str]:
    yield f"{found.path}: {counted(found.rows, 'vector')}, {sized(found.file_bytes)}"
    for model in found.models:
        precisions = ", ".join(f"{rows:,} in {precision}" for precision, rows in model.rows_by_precision.items())
        yield f"\n{printable(model.name) or '(a model without a name)'}"
        yield labelled("fingerprint", model.fingerprint)
        yield labelled("vectors", f"{model.rows:,} ({precisions or 'none'}), {sized(model.vector_bytes)}")
        if model.dimension is not None:
            yield labelled("dimensions", f"{model.dimension:,}")
        if model.max_length is not None:
            listed = "; `chunksink cache long-texts` lists them" if model.long_texts else ""
            longer = f"{model.long_texts:,} of more than {model.max_length:,} {model.length_unit}"
            yield labelled("long texts", longer + listed)
        for producer in model.producers:
            libraries = ", ".join(f"{name} {version}" for name, version in producer.get("libraries", {}).items())
            yield labelled("computed by", f"{producer.get('device', '?')}{': ' if libraries else ''}{libraries}")


@command.command("long-texts")
@home_option
@json_option
def long_texts_command(shared: SharedOptions, as_json: bool) -> None:
    """List the chunks of the live index that are longer than the maximum of its model.

    By default a long text is embedded in windows, and its vector is their mean (setting long_texts). Searches usually
    find shorter chunks better.

    \b
    Examples:
      chunksink cache long-texts
      chunksink cache long-texts --json | jq '.chunks[].chunk_id'
    """
    config = config_from(shared, uses_sinks=False)
    with State.existing(config.home_path) as state, existing_cache(config) as cache:
        catalog = Catalog(state)
        decide(state.db)
        model = state.live().model
        max_length, unit = model_limits(cache, model.fingerprint) or (None, None)
        found = list(_long_chunks(catalog, cache, model, max_length)) if max_length else []
    lines = [f"{one['length']:>8,}  {printable(one['partition'])}  {printable(one['chunk_id'])}" for one in found]
    if max_length is None:
        lines.append("the maximum of the live index's model is not known, or the cache has none of its vectors")
    else:
        lines.append(f"{counted(len(found), 'chunk')} of more than {max_length:,} {unit}")
    show(as_json, {"max_length": max_length, "length_unit": unit, "chunks": found}, lines)


def _long_chunks(catalog: Catalog, cache: VectorCache, model: ModelInfo, max_length: int) -> Iterator[dict[str, Any]]:
    chunks = catalog.chunks()
    while page := list(islice(chunks, _PAGE)):
        length_of = lengths(cache, model.fingerprint, list({model.key(chunk.key) for chunk in page}))
        for chunk in page:
            length = length_of.get(model.key(chunk.key), 0)
            if length > max_length:
                yield {**asdict(chunk), "length": length}


@command.command("show")
@click.argument("ref")
@home_option
@json_option
def show_command(shared: SharedOptions, ref: str, as_json: bool) -> None:
    """Show the vector of REF, which has the form of `embedding_ref` in a chunk.

    REF is cache:FINGERPRINT/KEY, as `chunksink why` prints it: the model's fingerprint, and the 64 hex digits of the
    text's hash, with 32 more if a context was embedded before the text. --json prints all numbers of the vector.

    \b
    Examples:
      chunksink cache show cache:5c1f.../09ab...
      chunksink cache show cache:5c1f.../09ab... --json | jq '.vector | length'
    """
    with existing_cache(config_from(shared, uses_sinks=False)) as cache:
        found = vector_of_ref(cache, ref)
    if found is None:
        raise Refusal(f"{ref} is not cached, or its row failed its check", Exit.USAGE)
    document = asdict(found) | {"vector": found.vector.tolist()}
    show(as_json, document, _vector_lines(found))


def _vector_lines(found: CachedVector) -> Iterator[str]:
    length = f", text of length {found.tokens:,}" if found.tokens else ""
    yield found.ref
    yield labelled("model", printable(found.model) or "(not recorded)")
    yield labelled("vector", f"{found.dimension:,} dimensions, {found.precision}, norm {found.norm:.4f}{length}")
    yield labelled("begins", ", ".join(f"{number:.4f}" for number in found.vector[:_NUMBERS]) + " ...")


@command.command("verify")
@click.option("--repair", is_flag=True, help="Drop bad rows; set a damaged file aside and start a new one.")
@home_option
@json_option
def verify_command(shared: SharedOptions, repair: bool, as_json: bool) -> int:
    """Check the cache file, and every vector against its checksum.

    A bad row is harmless: it is never used, and its vector is computed again when it is needed. Exits with 4 if
    something is wrong and was not repaired. With --repair a damaged file is kept under another name, and a new one is
    created.

    \b
    Examples:
      chunksink cache verify
      chunksink cache verify --repair
    """
    config = config_from(shared, uses_sinks=False)
    with ExitStack() as stack:
        cache = stack.enter_context(existing_cache(config, replace_damaged=repair))
        if repair:  # it drops rows
            stack.enter_context(writing(config.home_path))
        bar = stack.enter_context(progress("verify", None, "rows"))
        report = verify(cache, repair=repair, progress=bar.advance)
        set_aside = cache.set_aside
    document = {"sound": report.is_sound, **asdict(report), "set_aside": set_aside}
    kept = [f"a new cache was started. {each} is the damaged file; it can be deleted" for each in set_aside]
    show(as_json, document, [*_verify_lines(report, repair), *kept])
    return Exit.OK if report.is_sound or repair else Exit.DRIFT


def _verify_lines(report: CacheCheck, repair: bool) -> Iterator[str]:
    if report.is_sound:
        yield f"sound: {counted(report.rows, 'vector')}"
        return
    yield from (f"file: {line}" for line in report.damage)
    yield from first([f"{row.reason}: {row.ref}" for row in report.bad], len(report.bad), total=report.bad_rows)
    if report.dropped:
        yield f"{counted(report.dropped, 'bad row')} of {report.rows:,} dropped"
    elif report.damage and not repair:
        yield "--repair sets the file aside and starts an empty one"
    elif not repair:
        yield f"{counted(report.bad_rows, 'bad row')} of {report.rows:,}; --repair drops them"


@command.command("gc")
@index_options
@click.option("--dry-run", is_flag=True, help="Only report how much would be dropped.")
@json_option
def gc_command(shared: SharedOptions, dry_run: bool, as_json: bool) -> None:
    """Drop the vectors that no current chunk needs, after reporting their number.

    Vectors of current chunks are kept for the models of the live, previous and unfinished builds. Nothing is dropped
    while a partition of the index is missing or invalid. Segments in HOME/segments that were imported are removed.

    \b
    Examples:
      chunksink cache gc --dry-run
      chunksink cache gc
    """
    config = config_from(shared, uses_sinks=False)
    root = config.bus.require()
    with ExitStack() as stack:
        cache = stack.enter_context(existing_cache(config))
        run_log = stack.enter_context(RunLog(config.home_path, "cache gc"))
        stack.enter_context(writing(config.home_path))
        state = stack.enter_context(State(config.home_path))
        if missing := set(Catalog(state).known_partitions()) - set(root.partition_keys()):
            raise Refusal(
                f"{counted(len(missing), 'partition')} of the index missing in {root.address}: "
                f"{some(sorted(missing), _SHOWN)}. Bring them back, or `chunksink retire-partition KEY` for each",
                Exit.INVALID_INPUT,
            )
        # In a temporary home, because chunks of a wrong folder must not replace this home's catalog.
        scratch = stack.enter_context(TemporaryDirectory(prefix="gc-", dir=config.home_path))
        current = _read_chunks(config, stack.enter_context(State(Path(scratch))), run_log)
        unneeded = unneeded_rows(
            cache,
            keys=(key for chunk in current.chunks() for key in {chunk.text_hash, chunk.key}),
            fingerprints=state.model_fingerprints() or None,  # None: keep the vectors of all models
        )
        if unneeded.rows and not unneeded.kept_rows:
            raise Refusal(
                f"no chunk in {root.address} uses any cached vector, so all {unneeded.rows:,} would be dropped. Is "
                f"it the right folder? To drop them all, delete {cache.path}",
                Exit.USAGE,
            )
        folder = open_storage(str(segments_folder(config.home_path)))
        imported = segments.imported_segments(cache, folder)
        document = {
            **{name: getattr(unneeded, name) for name in ("rows", "vector_bytes", "rows_by_model", "kept_rows")},
            "segments": len(imported),
            "segment_bytes": sum(entry.size for entry in imported),
            "dry_run": dry_run,
        }
        show(as_json, document, _unneeded_lines(unneeded, document))
        if not dry_run:
            for entry in imported:
                folder.remove(entry.name)
            if unneeded.rows:
                drop(cache, unneeded)
            with write_transaction(state.db):
                drop_former_texts(state.db)
        run_log.finish("ok", **document)


def _unneeded_lines(unneeded: RowsToDrop, found: Mapping[str, Any]) -> Iterator[str]:
    of_all = f"{counted(unneeded.rows, 'vector')} of {unneeded.rows + unneeded.kept_rows:,}"
    yield f"{'would drop' if found['dry_run'] else 'dropping'} {of_all}, {sized(unneeded.vector_bytes)}"
    for fingerprint, rows in unneeded.rows_by_model.items():
        yield f"  {rows:>10,}  of model {fingerprint}"
    if number := found["segments"]:
        removed = f"{counted(number, 'imported segment')}, {sized(found['segment_bytes'])}"
        yield f"{'would remove' if found['dry_run'] else 'removing'} {removed}"


def _read_chunks(config: Config, state: State, run_log: RunLog) -> Catalog:
    """Validate all chunks; raises InvalidBus unless every partition is there and valid."""
    catalog, intake = Catalog(state), open_intake(config, state, run_log)
    with progress("validate", intake.pending_bytes(), "B") as bar:
        intake.refresh(bar.advance)
    catalog.require_valid()
    return catalog


@command.command("export")
@click.argument("place")
@click.option("--model", metavar="NAME", help="Only this model: its name, or the beginning of its fingerprint.")
@click.option("--all", "every", is_flag=True, help="The vectors of all models.")
@home_option
@json_option
def export_command(shared: SharedOptions, place: str, model: str | None, every: bool, as_json: bool) -> int:
    """Write the vectors to PLACE, for `cache import` on another machine.

    PLACE is a folder or the address of a bucket. By default, the vectors of the live, previous and unfinished
    builds are written. A file has up to about 50,000 vectors, and is never changed. A second export writes new files
    for vectors that were added or computed again. Exits with 4 if vectors failed their check and were left out.

    \b
    Examples:
      chunksink cache export /mnt/shared/vectors
      chunksink cache export s3://bucket/vectors --model sentence-transformers/all-MiniLM-L6-v2
    """
    if every and model is not None:
        raise click.UsageError("--all exports all models: leave out --model")
    config, storage = config_from(shared, uses_sinks=False), open_storage(place)
    with existing_cache(config) as cache:
        chosen = _chosen(config, cache, model, every)
        rows = sum(cache.count_rows(fingerprint) for fingerprint in chosen)
        with progress("export", rows, "vectors") as bar:
            report = segments.export_segments(cache, storage, chosen, bar.advance)
    show(as_json, {"place": storage.address, **asdict(report)}, _export_lines(report, storage.address))
    return Exit.DRIFT if report.bad_rows else Exit.OK


def _chosen(config: Config, cache: VectorCache, model: str | None, every: bool) -> set[str]:
    """The fingerprints of the models to export."""
    names = model_names(cache)
    if every:
        return set(names)
    if model is not None:
        chosen = {key for key, name in names.items() if model and (model == name or key.startswith(model))}
    else:
        with State.existing(config.home_path) as state:
            chosen = names.keys() & state.model_fingerprints()
    if not chosen:
        of_what = "the models of this index" if model is None else f"a model {model!r:.200}"
        raise Refusal(f"no cached vectors of {of_what}: `chunksink cache stats` lists the models", Exit.USAGE)
    return chosen


def _export_lines(report: segments.ExportReport, address: str) -> Iterator[str]:
    of_size = f"{counted(report.segments, 'segment')}, {sized(report.bytes)}"
    yield f"{address}: {counted(report.rows, 'vector')} in {of_size}; {counted(report.written, 'new segment')}"
    if report.bad_rows:
        yield f"left out: {counted(report.bad_rows, 'bad row')}; `chunksink cache verify --repair` drops them"


@command.command("import")
@click.argument("place")
@home_option
@json_option
def import_command(shared: SharedOptions, place: str, as_json: bool) -> int:
    """Add the vectors that `cache export` wrote to PLACE to the cache.

    PLACE is a folder or the address of a bucket. Files that were imported before are skipped. Every vector is checked,
    and none replaces a more precise one. Exits with 4 if a file or a vector is unusable and was left out.

    \b
    Examples:
      chunksink cache import /mnt/shared/vectors
      chunksink cache import s3://bucket/vectors
    """
    config, storage = config_from(shared, uses_sinks=False), open_storage(place)
    names = segments.segment_names(storage)
    if not names:
        raise Refusal(f"no vector segments in {storage.address}; `chunksink cache export` writes them", Exit.USAGE)
    with (
        writing(config.home_path),
        VectorCache.open(cache_file(config.home_path), replace_damaged=False) as cache,
        progress("import", None, "vectors") as bar,
    ):
        report = segments.import_segments(cache, storage, names, bar.advance)
    show(as_json, {"place": storage.address, **asdict(report)}, _import_lines(report, storage.address))
    return Exit.DRIFT if report.bad or report.bad_rows else Exit.OK


def _import_lines(report: segments.ImportReport, address: str) -> Iterator[str]:
    files = f"{counted(report.segments, 'segment')}, {report.known:,} imported before"
    yield f"{address}: {counted(report.rows, 'vector')} in {files}; {counted(report.added, 'new vector')}"
    if report.bad_rows:
        yield f"left out: {counted(report.bad_rows, 'bad row')}"
    yield from first([f"left out: {printable(bad.name)}: {printable(bad.reason)}" for bad in report.bad], _SHOWN)
    if report.bad:
        yield f"delete such files from {address}, and export again"
