"""One sync: what is live is brought up to date; where there is nothing, or not in every sink, that is built first."""

from typing import TYPE_CHECKING

from chunksink.run import Run

if TYPE_CHECKING:
    from rebuild.report import RunReport
    from rebuild.sync import SyncOptions


def sync(run: Run, options: "SyncOptions", *, rebuild: bool = False) -> "RunReport":
    """With `rebuild` all is built anew where a rebuild is due. A named plan is one for the live builds: with it nothing
    is built."""
    from rebuild.flip import live_generation
    from rebuild.lock import WAIT_SECONDS
    from rebuild.rebuild import RebuildOptions

    adopt, allow_deletions = options.adopt, options.allow_deletions
    if options.only_plan is not None:
        with run.lock(WAIT_SECONDS):
            return run.sync(run.live(adopt=adopt), options)
    while True:
        with run.lock(WAIT_SECONDS):
            live = live_generation(run.work, adopt=adopt)
            if live is None or (rebuild and run.rebuild_due(live)):
                break
            newcomer = run.sink_without_build(live)
            if newcomer is None:
                return run.sync(live, options)
        run.build_beside(newcomer, live, RebuildOptions(adopt=adopt, allow_deletions=allow_deletions))
    run.require_all()
    run.read_chunks(strict=options.strict or live is not None)
    # A home that lost its records has builds, and with them something to lose.
    begins = not any(sink.builds() for sink in run.work.sinks.values())
    lenient = begins and not options.strict
    return run.rebuild(RebuildOptions(adopt=adopt, allow_deletions=allow_deletions, held_are_left_out=lenient))
