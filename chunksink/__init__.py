"""chunksink: keeps search indexes in step with the chunks of documents.

with chunksink.open() as index:
    report = index.sync()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from chunksink.index import Index
    from chunksink.rebuild.session import Stage
    from chunksink.settings.config import Config

__version__ = "0.1.0"
__all__ = ["Index", "__version__", "open"]


def open(
    path_or_config: "str | Path | Config | None" = None, *, stage: "Stage | None" = None, **settings: Any
) -> "Index":
    """Open the index of a configuration: a file, a folder with `chunksink.toml`, or a `Config`.

    The default is the file that `CHUNKSINK_CONFIG` names, else the one in the current folder. Without a file every
    setting has its default. `settings` override file and environment, as flags do. Relative paths in
    a file start at its folder. Those in `settings`, the environment or a `Config` start at the folder in which this is
    called, even if the process changes its folder later. `stage` displays the progress of runs: it gets the name of a
    stage, the total amount of work or None, and its unit, and returns a context manager, for example a progress bar.
    """
    from chunksink.index import Index
    from chunksink.settings.config import Config
    from chunksink.settings.load import load_config, with_absolute_paths
    from chunksink.wiring import keep_live_sinks

    if isinstance(path_or_config, Config):
        if settings:
            names = ", ".join(settings)
            raise TypeError(f"open() got a Config and settings ({names}): set them in the Config")
        return Index(with_absolute_paths(path_or_config), stage=stage)
    return Index(keep_live_sinks(with_absolute_paths(load_config(settings, place=path_or_config))), stage=stage)


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # otherwise a type checker accepts any name

    def __getattr__(name: str) -> Any:
        """`chunksink.Index`, imported on first use, so that `import chunksink` stays light."""
        if name != "Index":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from chunksink.index import Index

        return Index
