"""Keys that are sent to a server, and the tokens that `serve` accepts. No message contains one."""

import os
import re
from collections.abc import Mapping
from hashlib import sha256

from chunksink.settings.errors import ConfigError

_SENDABLE = re.compile(r"[!-~]*")
_SHA256 = re.compile("[0-9a-f]{64}")
_EMPTY_SHA256 = sha256(b"").hexdigest()
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


def checked(key: str, source: str) -> str:
    """The stripped key; ValueError if a header cannot carry it. `source` names its origin in the message."""
    key = key.strip()
    if not _SENDABLE.fullmatch(key):
        raise ValueError(
            f"{source} does not contain a key: a key has only ASCII letters, digits and punctuation, "
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


def wrong_token(tokens: Mapping[str, str]) -> str | None:
    """Why the setting `tokens` is wrong; None if it is not."""
    for number, digest in enumerate(tokens, start=1):
        if not _SHA256.fullmatch(digest):  # neither is shown: digest or tenant may be the token itself
            return (
                f"`tokens`: the key of entry {number} is not a sha256. Write the sha256 of the token as 64 hexadecimal "
                "digits in lower case"
            )
        if digest == _EMPTY_SHA256:
            return "`tokens` contains the sha256 of an empty text, which anyone can send: hash the real token"
    return None
