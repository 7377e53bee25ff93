"""Keys that go to a server in a header: read and checked once, for all who send one. No message shows a key."""

import os
import re

from chunksink.settings.config import ConfigError

_SENDABLE = re.compile(r"[!-~]*")
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def checked(key: str, source: str) -> str:
    """The key without white space around it; ValueError where no header can hold it. `source` is where it is from."""
    key = key.strip()
    if not _SENDABLE.fullmatch(key):
        raise ValueError(
            f"{source} holds something that is no key: only ASCII letters, digits and signs can be sent, "
            "with no space or line break between them"
        )
    return key


def key_in(variable: str, option: str, *, needed: bool) -> str | None:
    """The key in an environment variable, None where it holds none. `option` is the one that names the variable."""
    # What does not look like a name may be the key itself.
    source = f"{option}: the environment variable {variable if _NAME.fullmatch(variable) else 'that it names'}"
    try:
        key = checked(os.environ.get(variable, ""), source)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if needed and not key:
        raise ConfigError(f"{source} holds no key")
    return key or None
