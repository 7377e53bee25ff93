"""Reads and checks keys that are sent to a server in a header. No message contains a key."""

import os
import re

from chunksink.settings.config import ConfigError

_SENDABLE = re.compile(r"[!-~]*")
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def checked(key: str, source: str) -> str:
    """The stripped key; ValueError if a header cannot carry it. `source` names its origin in the message."""
    key = key.strip()
    if not _SENDABLE.fullmatch(key):
        raise ValueError(
            f"{source} does not contain a key: a key has only ASCII letters, digits and signs, "
            "without spaces or line breaks"
        )
    return key


def key_in(variable: str, option: str, *, needed: bool) -> str | None:
    """The key in an environment variable; None if it is unset or empty. `option` is the setting that names it."""
    # Text that does not look like a variable name may be the key itself, so it is not printed.
    source = f"{option}: the environment variable {variable if _NAME.fullmatch(variable) else 'that it names'}"
    try:
        key = checked(os.environ.get(variable, ""), source)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if needed and not key:
        raise ConfigError(f"{source} is unset or empty; put the key into it")
    return key or None
