"""One sync: what is live is brought up to date; where there is nothing, or not in every sink, that is built first."""

from typing import TYPE_CHECKING

from chunksink.run import Run

if TYPE_CHECKING:
    from chunksink.rebuild.report import RunReport
    from chunksink.rebuild.state import Generation
    from chunksink.rebuild.sync import SyncOptions


def sync(run: Run, options: "SyncOptions", *, rebuild: bool = False) -> "RunReport":
    """With `rebuild` all is built anew where a rebuild is due. A named plan is one for the live builds: with it nothing
    is built."""
    from chunksink.rebuild.locks import WAIT_SECONDS
    from chunksink.rebuild.rebuild import RebuildOptions

    adopt = options.adopt
    if options.only_plan is not None:
        with run.lock(WAIT_SECONDS):
            return run.sync(run.live(adopt=adopt), options)
    beside = RebuildOptions(adopt=adopt, allow_deletions=options.allow_deletions)
    while True:
        with run.lock(WAIT_SECONDS):
            live = _live_to_keep(run, adopt=adopt, rebuild=rebuild)
            newcomer = None if live is None else run.sink_without_build(live)
            if live is not None and newcomer is None:
                return run.sync(live, options)
        if newcomer is not None:
            run.build_beside(newcomer, beside)
            continue
        run.require_all()
        with run.rebuilding():
            with run.lock(WAIT_SECONDS):
                built_meanwhile = _live_to_keep(run, adopt=adopt, rebuild=rebuild) is not None  # by another run
            if not built_meanwhile:
                return _build_all(run, options)


def _live_to_keep(run: Run, *, adopt: bool, rebuild: bool) -> "Generation | None":
    """What is live; None where all must be built."""
    from chunksink.rebuild.flip import live_generation

    live = live_generation(run.work, adopt=adopt)
    return None if live is None or (rebuild and run.rebuild_due(live)) else live


def _build_all(run: Run, options: "SyncOptions") -> "RunReport":
    from chunksink.rebuild.rebuild import RebuildOptions

    run.read_chunks(strict=options.strict or run.work.state.live_or_none() is not None)
    # A home that lost its records has builds, and with them something to lose.
    begins = not any(sink.builds() for sink in run.work.sinks.values())
    lenient = begins and not options.strict
    return run.rebuild(
        RebuildOptions(adopt=options.adopt, allow_deletions=options.allow_deletions, held_are_left_out=lenient)
    )
