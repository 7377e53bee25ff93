"""What Chroma is told, and by nobody else: left alone, it would also take its settings from the environment and from
a `.env` in the current folder, where those of other programs are."""

from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from chunksink.settings.config import ConfigError

if TYPE_CHECKING:
    from chromadb.config import Settings


def package() -> ModuleType:
    """chromadb, imported. It reads those other settings even then, and ends where one makes no sense to it."""
    try:
        import chromadb
    except ValueError as error:
        raise ConfigError(
            f"Chroma's library reads settings from the environment and from {Path('.env').absolute()}, "
            f"and {_why(error)}: change it, or run this in another folder"
        ) from error
    return chromadb


def settings(**given: Any) -> "Settings":
    package()
    return _kind()(anonymized_telemetry=False, **given)


@cache
def _kind() -> "type[Settings]":
    from chromadb.config import Settings

    class Told(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: Any,
            init_settings: Any,
            env_settings: Any,
            dotenv_settings: Any,
            file_secret_settings: Any,
        ) -> tuple[Any, ...]:
            return (init_settings,)

    return Told


def _why(error: ValueError) -> str:
    """Never a value: it may be a secret."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        names = ", ".join(str(each["loc"][0]).upper() for each in error.errors() if each["loc"])
        return f"cannot use what is there as {names}"
    return "that file is not in UTF-8" if isinstance(error, UnicodeError) else "cannot read one of them"
