"""One index, for Python programs: the same runs as on the command line, without a terminal.

    with chunksink.open("chunksink.toml") as index:
        report = index.sync()

Each run leaves a record below `<home>/runs/`; `status`, `why`, `doctor` and searches leave none. An encoder that a run
has loaded stays loaded for the next one. `plan` and every run that writes to the engines hold the writer's lock. A
rebuild releases it after each batch. `verify` holds it while it reads the chunks. If it finds differences and another
run has written meanwhile, it compares again under the lock.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any
from weakref import finalize

from chunksink.chunkbus.runlog import RunLog
from chunksink.doctor import Check, examine
from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.pool import EncoderPool
from chunksink.ingest.report import IngestReport
from chunksink.notifications import notifying
from chunksink.proof import proof_of
from chunksink.rebuild import locks
from chunksink.rebuild.catalog import RetireReport
from chunksink.rebuild.explain import Explanation, why
from chunksink.rebuild.flip import roll_back
from chunksink.rebuild.forecast import Forecast, plan
from chunksink.rebuild.forget import ForgetReport, forget, forgetting_copies
from chunksink.rebuild.rebuild import RebuildOptions, rebuild
from chunksink.rebuild.report import RunReport
from chunksink.rebuild.session import Session, Stage
from chunksink.rebuild.state import Generation, State
from chunksink.rebuild.status import HomeStatus
from chunksink.rebuild.sync import SyncOptions, sync
from chunksink.rebuild.verify import VerifyReport, verify
from chunksink.search.access import Access
from chunksink.search.answer import Answer, Surrounded
from chunksink.search.errors import InvalidQuestion
from chunksink.search.filters import FilterArgument, as_filters, parse_facets, parse_sort
from chunksink.search.question import FusionName, Mode, Question
from chunksink.settings.config import Config
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.retry import Fault
from chunksink.wiring import cached_vector, default_mode, open_one_sink, open_session, status_of
from chunksink.workers import worker_processes

if TYPE_CHECKING:
    from chunksink.backup import Backup
    from chunksink.live import LiveSearch


_READING_EFFORT = 16
"""Reading a byte of a document takes this many times as long as checking a byte of chunks."""


def _close_in_thread(live: "LiveSearch", opened_by: int) -> None:
    """Close in another thread: this one may be collecting garbage while it holds a lock that closing needs. A forked
    process has nothing to close."""
    if os.getpid() == opened_by:
        Thread(target=live.close, name="chunksink-close", daemon=True).start()


class Index(AbstractContextManager["Index", None]):
    """One index: the chunks, the home and the engines of a configuration."""

    def __init__(
        self,
        config: Config,
        *,
        stage: Stage | None = None,
        on_fault: Callable[[Fault], object] = lambda _fault: None,
    ) -> None:
        self.config = config
        self._encoders = EncoderPool()
        self._open_session = partial(open_session, config, encoders=self._encoders, stage=stage, on_fault=on_fault)
        self._live: LiveSearch | None = None
        self._opened_by = 0
        self._finalizer: finalize[..., Index] | None = None
        self._live_lock = Lock()

    def __repr__(self) -> str:
        return f"<Index {self.config.home} of {self.config.chunks}: {', '.join(self.config.sinks)}>"

    def __exit__(self, *_error: object) -> None:
        self.close()

    @contextmanager
    def _session(self, command: str, **options: Any) -> Iterator[Session]:
        with notifying(self.config, command) as run, self._open_session(command, **options) as session:
            run.log = session.log
            yield session

    def close(self) -> None:
        """Close the readers and the encoder that are kept between calls; the next call opens them again. An index that
        is garbage collected closes itself."""
        self._encoders.close()
        with self._live_lock:
            live, self._live = self._live, None
            finalizer, self._finalizer = self._finalizer, None
        if finalizer is not None:
            finalizer.detach()
        if live is not None and self._opened_by == os.getpid():
            live.close()

    def ingest(
        self,
        *sources: Path | str,
        format: str = "auto",
        partition: str = "documents",
        base: Path | str | None = None,
        tenant: str | None = None,
        exclude: str | Sequence[str] = (),
        include: str | Sequence[str] = (),
        fields: dict[str, str] | None = None,
        prune: bool = False,
        allow_deletions: int = 0,
        chunking: str | None = None,
        checksum: bool = False,
        follow_links: bool = False,
        jobs: int | None = None,
        on_source: Callable[[], object] = lambda: None,
    ) -> IngestReport:
        """Make canonical chunks from folders and files, as `chunksink ingest` does. Failures are in the report."""
        from chunksink.ingest.options import Options
        from chunksink.ingest.run import ingest

        options = Options(
            format=format,
            partition=partition,
            base=None if base is None else Path(base),
            tenant=tenant,
            exclude=(exclude,) if isinstance(exclude, str) else tuple(exclude),
            include=(include,) if isinstance(include, str) else tuple(include),
            fields=dict(fields or {}),
            prune=prune,
            allow_deletions=allow_deletions,
            chunking=chunking,
            checksum=checksum,
            follow_links=follow_links,
        )
        with notifying(self.config, "ingest") as run, RunLog(self.config.home_path, "ingest") as log:
            run.log = log
            report = ingest(
                [Path(source) for source in sources],
                self.config.bus,
                self.config.home_path,
                options,
                workers=lambda size: worker_processes(size * _READING_EFFORT, jobs),
                run_id=log.run_id,
                on_source=on_source,
            )
            for failure in report.failures:
                log.write("failure", **asdict(failure))
            log.finish("failures" if report.failures else "ok", report=asdict(report))
        return report

    def sync(
        self,
        *,
        strict: bool = False,
        adopt: bool = False,
        allow_deletions: int = 0,
        plan: str | None = None,
        rebuild: bool = False,
    ) -> RunReport:
        """Update the index to match the chunks, with as few writes as possible.

        `strict` writes nothing if a partition is missing or invalid, or a source is held; `adopt` takes over builds of
        another home; `allow_deletions` lets up to this many sources be removed or lose most of their chunks, where the
        brake would stop the run; `plan` is the hash of the plan to execute; `rebuild` rebuilds if the configured
        model has changed. A run that fails in an engine, refuses documents or holds sources raises nothing: its
        report has another `status` than `ok`. Raises EmbeddingsError if no sink could be synced without vectors.
        """
        return self._synced(
            "sync", strict=strict, adopt=adopt, allow_deletions=allow_deletions, plan_hash=plan, rebuild=rebuild
        )

    def repair(self, *, adopt: bool = False, allow_deletions: int = 0, deep: bool = False) -> RunReport:
        """Scan the engines, then sync; broken builds are recreated."""
        return self._synced("repair", scan=True, deep=deep, adopt=adopt, allow_deletions=allow_deletions)

    def _synced(self, command: str, **settings: Any) -> RunReport:
        options = SyncOptions(**settings)  # raises before the home is made
        with self._session(command, tolerant=True) as session:
            return sync(session, options)

    def rebuild(
        self,
        *,
        sinks: str | Sequence[str] = (),
        deep: bool = False,
        adopt: bool = False,
        allow_deletions: int = 0,
        fresh_cache: bool = False,
        require_eval: Path | str | None = None,
        fail_if_drop: float = 0.01,
    ) -> RunReport:
        """Create and verify a new build in every sink, or in these `sinks`, then switch readers to them in one step.

        `require_eval` is a file of `chunksink eval --save`. Raises WorseAnswers if the mean nDCG@10 of its queries
        drops by more than `fail_if_drop`; readers keep the live index then.
        """
        only = (sinks,) if isinstance(sinks, str) else tuple(sinks)
        check = None
        if require_eval is not None:
            from chunksink.evaluation import gate

            check = gate(self.config, Path(require_eval), fail_if_drop)
        options = RebuildOptions(
            deep=deep,
            keep=frozenset(self.config.sinks if only else ()),
            adopt=adopt,
            allow_deletions=allow_deletions,
            fresh_cache=fresh_cache,
            check=check,
        )
        with self._session("rebuild", only=only) as session:
            return rebuild(session, options)

    def verify(self, *, deep: bool = False, recall: bool = False) -> VerifyReport:
        """Compare the live builds with the chunks; with `deep` every vector, too.

        With `recall` or `deep`, also measure how many of the nearest documents each vector search finds.
        """
        with self._session("verify", tolerant=True, makes_home=False) as session:
            report = verify(session, deep=deep, recall=recall or deep)
            facts = {"deep": deep, "sinks": report.numbers(), "drifted": report.drifted, "held": report.held}
            session.log.finish(report.status, **facts)
            return report

    def status(self) -> HomeStatus:
        """What is live, held, due or under way, from the records of this home. Calls no engine."""
        return status_of(self.config)

    def why(self, name: Path | str) -> Explanation:
        """Everything known about one chunk. `name` is its id, the beginning of its id, or a source, whose first chunk
        is explained."""
        from chunksink.ingest.discover import why_skipped
        from chunksink.ingest.store import why_no_chunks

        config = self.config
        with ExitStack() as stack:
            state = stack.enter_context(State.existing(config.home_path))
            live = stack.enter_context(locks.reading_live(state))
            engine = partial(open_one_sink, config, stack)
            ledger = partial(why_no_chunks, config.home_path, config.bus, why_skipped=why_skipped)
            fields = FieldSet.of(config.fields)
            explanation = why(state, config.bus, fields, live, os.fspath(name), engine, ledger)
        return replace(explanation, cached_vector=cached_vector(config, live.model, explanation.vector_key))

    def doctor(self) -> list[Check]:
        """Whether this machine, the chunks, the home, the engines and the model are ready for a run."""
        return list(examine(lambda: self.config))

    def prove(self, *, deep: bool = False) -> dict[str, Any]:
        """What the index was made from and what its engines contain, in a form that another machine can reproduce.

        Raises NotVerified if an engine differs from the chunks, SinkError if one does not answer, and InvalidBus if
        chunks are missing or invalid.
        """
        return proof_of(self.config, self.verify(deep=deep))

    def plan(self, *, adopt: bool = False) -> Forecast:
        """What the next sync would do and cost, even if it is the first. Only records of this home are written, and
        an interrupted switch of generations is completed.

        If the cache has vectors but there is no index yet, the model is loaded, to find out whether the vectors are of
        this model. Without the model on this machine, every vector counts as missing.
        """
        with self._session("plan") as session:
            forecast = plan(session, adopt=adopt)
            session.log.finish("ok", hash=forecast.hash)
            return forecast

    def rollback(self) -> Generation:
        """Switch back to the previous generation."""
        with self._session("rollback", reads_chunks=False, makes_home=False) as session:
            with session.lock.at_start():
                generation = roll_back(session)
            session.log.finish("ok", generation=generation.id)
            return generation

    def retire_partition(self, key: str) -> RetireReport:
        """Retire a partition that will not come back. The next sync removes the sources that only this
        partition had, and restores those that its tombstones withdrew, if another partition has them."""
        with self._session("retire-partition", tolerant=True) as session:
            with session.lock.at_start():
                session.refresh(any_bus=True)  # all old partitions may have been replaced
                retired = session.catalog.retire(self.config.bus, key)
            session.log.finish("ok", partition=key, families=retired.removed, returning=retired.returning)
            return retired

    def forget(self, name: Path | str, *, tenant: str | None = None, every: bool = False) -> ForgetReport:
        """Erase a source from every build, the cache, dead letters and run records. If several sources have this
        name, `tenant` chooses one and `every` chooses all. The bus may be missing. Copies of the chunks of a
        bucket are removed first, also if NoGeneration or UnknownSource is raised then."""
        home = self.config.home_path
        with forgetting_copies(home), self._session("forget", reads_chunks=False, makes_home=False) as session:
            # A rebuild under way would write the source again, from what it has read.
            with session.rebuild_lock.at_start(), session.lock.at_start():
                session.refresh()
                report = forget(session, os.fspath(name), tenant=tenant, every=every)
            session.log.finish("ok", documents=sum(report.documents.values()), vectors=report.vectors)
            return report

    def backup(self, file: Path | str) -> "Backup":
        """Copy the records, the cache of vectors and the ledger of the home to one file. Other runs may write
        meanwhile. A failed call leaves an existing file as it was."""
        from chunksink.backup import backup
        from chunksink.rebuild.state import can_write

        written = backup(self.config.home_path, Path(file))
        if can_write(self.config.home_path):  # a home in a snapshot of a disk is often read-only
            with RunLog(self.config.home_path, "backup") as log:
                log.finish("ok", files=len(written.digests))
        return written

    def restore(self, file: Path | str, *, force: bool = False) -> "Backup":
        """Restore a backup into an empty home. With `force` the home may have records: they are moved to a new folder
        in it. The next sync finds and repairs what differs in the engines."""
        from chunksink.backup import restore

        self.close()
        restored = restore(self.config.home_path, Path(file), force=force)
        with RunLog(self.config.home_path, "restore") as log:
            log.finish("ok", files=len(restored.digests), created_at=restored.created_at)
        return restored

    def search(
        self,
        query: str,
        limit: int = 10,
        mode: Mode | None = None,
        filters: FilterArgument = None,
        tenant: str | None = None,
        collapse: bool = True,
        context: int = 0,
        *,
        offset: int = 0,
        facets: str | Sequence[str] | None = (),
        fusion: FusionName = "scores",
        sort: str | None = None,
    ) -> Answer:
        """The best sources for a query: a sequence of hits, with facets and notices.

        The default `mode` is hybrid, or keyword if no sink has vectors. `filters` are written as on the command line
        (`["year>=2020"]`), or map fields to one value or several. `sort` names a field; `-` before it means descending.
        With `collapse` each source has one hit. `context` is the number of chunks to add before and after each hit.
        A search sees what other processes wrote before it began, with one exception: while another thread is opening
        the new state, it answers from the old one.
        """
        fields = FieldSet.of(self.config.fields)
        question = Question(
            query,
            mode=self._default_mode if mode is None else mode,
            limit=limit,
            offset=offset,
            filters=as_filters(filters, fields),
            facets=parse_facets(facets, fields),
            collapse=collapse,
            context=context,
            fusion=fusion,
            sort=parse_sort(sort, fields),
        )
        return self._live_search().search(question, self._access(tenant))

    def get_chunk(self, chunk_id: str, *, tenant: str | None = None, context: int = 0) -> Surrounded | None:
        """One chunk by its id, with `context` chunks before and after it; None if it is missing or may not be seen."""
        if not isinstance(chunk_id, str):
            raise InvalidQuestion(f"the chunk_id must be a string, not {chunk_id!r:.100}: use the `chunk_id` of a hit")
        Question("", context=context)  # checks `context` as a search does
        return self._live_search().get(chunk_id, self._access(tenant), context)

    def embed_query(self, text: str) -> Vectors:
        """The vector of a query by the model of the live index, for programs that query the vector store themselves."""
        return self._live_search().embed_query(text)

    def _access(self, tenant: str | None) -> Access:
        return Access(tenant, required=self.config.tenants == "required")

    @cached_property
    def _default_mode(self) -> Mode:
        return default_mode(self.config)

    def _live_search(self) -> "LiveSearch":
        from chunksink.live import LiveSearch

        with self._live_lock:
            if self._live is None:
                self._live = LiveSearch(self.config)
                self._opened_by = os.getpid()
                self._finalizer = finalize(self, _close_in_thread, self._live, self._opened_by)
                self._finalizer.atexit = False
            return self._live
