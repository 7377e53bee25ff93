"""The checks of `chunksink doctor`: each examines one thing that a run needs, and names a remedy for a problem.

Nothing is changed, no model is loaded, an endpoint gets no request that costs, and no message shows a key.
Start with `check.py`, which says how a check is declared.
"""

from collections.abc import Callable, Iterator
from functools import partial

from chunksink.doctor import engines, machine, records
from chunksink.doctor.check import Check, check
from chunksink.settings.config import Config, ConfigError, config_file

__all__ = ["Check", "examine"]


def examine(load: Callable[[], Config], place: str | None = None) -> Iterator[Check]:
    """All checks, in the order in which a run needs what they examine; without a configuration only the first ones.

    `place` is where the configuration is, if one was named.
    """
    yield check("python", machine.python)
    yield check("sqlite", machine.sqlite)
    try:
        config = load()
    except ConfigError as error:
        yield Check("configuration", "fail", str(error), "correct it; `chunksink init` writes a commented example")
        return
    home = config.home_path
    yield check("configuration", partial(machine.configuration, config, config_file(place)))
    yield check("chunks", partial(records.chunks, config.chunks_path))
    yield check("home", partial(machine.home, home))
    yield check("disk", partial(machine.disk, home))
    yield check("ingest", partial(records.ingest, home))
    yield check("index", partial(records.index, home))
    live = records.live_builds(home)
    if live is not None:
        yield check("partitions", partial(records.partitions, config.chunks_path, home))
    yield check("locks", partial(machine.locks, home))
    for name in dict.fromkeys(config.sinks):
        yield from engines.sink(config, name, live)
    yield from engines.unused_options(config)
    if config.endpoint is None:
        yield check("model", partial(machine.model, config))
    else:
        yield check("endpoint", partial(machine.endpoint, config, config.endpoint))
    yield check("cache", partial(records.cache, config))
