"""The checks of `chunksink doctor`: each looks at one thing that a run needs, and says what to do where it is amiss.

Nothing is changed, no model is loaded, an endpoint is asked for nothing that costs, and no message shows a key.
"""

from collections.abc import Callable, Iterator

from chunksink.doctor.check import Check
from chunksink.settings.config import Config, ConfigError, config_file

__all__ = ["Check", "examine"]


def examine(load: Callable[[], Config], place: str | None = None) -> Iterator[Check]:
    """All checks, in the order in which a run meets what they look at. Without a configuration only the first ones.

    `place` is that of the configuration, where one is named.
    """
    from chunksink.doctor import bus, engines, environment, ingested, model, records

    yield environment.python()
    yield environment.fts5()
    try:
        config = load()
    except ConfigError as error:
        yield Check("configuration", "fail", str(error), "correct it; `chunksink init` writes a commented example")
        return
    yield environment.configuration(config, config_file(place))
    yield bus.chunks(config.chunks_path)
    yield from environment.home(config.home_path)
    yield from ingested.files(config)
    index, live = records.index(config.home_path)
    yield index
    if live is not None:
        yield from bus.missing(config.chunks_path, config.home_path)
    yield environment.locks(config.home_path)
    for name in dict.fromkeys(config.sinks):
        yield from engines.sink(config, name, live)
    yield from engines.options_not_in_use(config)
    yield from model.model(config)
    yield records.cache(config)
