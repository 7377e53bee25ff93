"""One ingest: discover, classify, read, reconcile, write. Each stage passes plain data or a table to the next."""

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, closing, nullcontext
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp

from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.manifest import ManifestProducer
from chunksink.chunkbus.runlog import new_run_id, utc_now
from chunksink.ingest.classify import classify, suffixes_of
from chunksink.ingest.discover import discover
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats.markdown.policy import POLICIES
from chunksink.ingest.formats.registry import Format, all_formats
from chunksink.ingest.links import make_links
from chunksink.ingest.options import ROWS, Options
from chunksink.ingest.outcomes import Outcomes
from chunksink.ingest.partitions import load_partitions, next_created_at
from chunksink.ingest.placement import PRODUCER_NAME, Placement
from chunksink.ingest.read import Job, Reading, Stamp, read_all
from chunksink.ingest.reconcile import count_replaced_families, mark_files_to_read, reconcile, stop_large_loss
from chunksink.ingest.report import IngestReport
from chunksink.ingest.roots import Roots, real_path
from chunksink.ingest.store import IngestStore, pages
from chunksink.ingest.write import write_partitions

Workers = Callable[[int], AbstractContextManager[Executor | None]]
"""Takes the number of bytes to read. Returns processes to read them, or None to read in this process."""


def ingest(
    paths: Sequence[Path],
    bus: BusRoot,
    home: Path,
    options: Options,
    *,
    workers: Workers = lambda _bytes: nullcontext(),
    run_id: str | None = None,
    on_source: Callable[[], object] = lambda: None,
) -> IngestReport:
    """Reads these files and folders into partitions. Raises a ChunksinkError, mostly IngestError, if the run cannot
    start or must stop.

    `on_source` is called when a source has been read.
    """
    formats = all_formats()
    options.check(formats)
    if not paths:
        raise IngestRefused("no sources given: name folders or files")
    placement = Placement(options.partition)
    if options.fields:
        from chunksink.ingest.formats.rows import RowsFormat

        formats = {**formats, ROWS: RowsFormat(fields=options.fields)}
    started_ns = time.time_ns()
    with IngestStore(home) as store, store.run(bus) as db, store.spool() as spool:
        reloaded = load_partitions(db, bus, placement, trust_cache=not options.checksum)
        roots = Roots(bus)
        # Our own output must not be read as a source.
        outputs = (*bus.folders(), home)
        discovery = discover(paths, roots, db, options, suffixes_of(options, formats), outputs)
        if options.chunking is not None:
            for path in paths:
                roots.set_policy(real_path(path), POLICIES[options.chunking])
        named = frozenset(os.fsencode(real_path(path)) for path in paths)
        unknown = classify(db, options, formats, roots, named, placement.only)
        created_at = next_created_at(db, bus, utc_now())
        producer = ManifestProducer(PRODUCER_NAME, version("chunksink"))
        run_id = run_id or new_run_id()
        made_by = {"name": producer.name, "version": producer.version, "run_id": run_id}
        stamp = Stamp(created_at, made_by, options.tenant, placement)
        outcomes = Outcomes(db, stamp, run_id, formats)
        outcomes.add_discovered(
            discovery, unknown, lambda name, families: discovery.forgets(name, families, roots.path_of(name), options)
        )
        while True:
            with closing(_read(db, _jobs(db, formats, roots), stamp, spool, workers, started_ns)) as readings:
                for reading in readings:
                    outcomes.add_reading(reading)
                    on_source()
            missing = reconcile(db, options, placement.only, discovery, roots)
            # An unchanged file may also contain a family that would be removed. It is read, so that the family stays.
            if not mark_files_to_read(db, options.tenant):
                break
        stop_large_loss(db, options.allow_deletions)
        count_replaced_families(db)
        outcomes.assign_partitions()
        db.commit()
        roots.save()
        written = write_partitions(db, bus, producer, created_at, placement.only, outcomes.notices(), reloaded)
        outcomes.save(written)
        links = make_links(db, bus, roots, recreate=options.checksum)
        db.commit()
        return outcomes.report(discovery, missing, written, links, roots)


def _read(
    db: sqlite3.Connection, jobs: Iterator[Job], stamp: Stamp, spool: str, workers: Workers, started_ns: int
) -> Generator[Reading, None, None]:
    """Reads the files that have no outcome yet."""
    (size,) = db.execute("select total(size) from found where outcome is null").fetchone()
    folder = Path(mkdtemp(dir=spool))
    with workers(int(size)) as executor, closing(read_all(jobs, stamp, folder, executor, started_ns)) as readings:
        yield from readings


def _jobs(db: sqlite3.Connection, formats: Mapping[str, Format], roots: Roots) -> Iterator[Job]:
    """The files without an outcome, in the order of their names."""
    query = "select uri, path, format, coalesce(size, 0), checksum from found where outcome is null and uri > :after"
    for page in pages(db, f"{query} order by uri limit 500", {}):
        for uri, path, name, size, checksum in page:
            yield Job(uri, os.fsdecode(path), formats[name].with_policy(roots.policy_of(uri)), size, checksum)
