"""From errors that a reader can act on to a message and an exit code. Anything not named here is a bug."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from chunkbus.errors import ChunkBusError, InvalidPartitionKey, NotABusRoot, PartitionLocked
from chunksink.exits import Exit
from settings.config import ConfigError


class Refusal(click.ClickException):
    """`Error: <what, where, what to do>` on standard error, and an exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def explained() -> Iterator[None]:
    """Turns known errors into refusals; an unknown one passes with its traceback."""
    try:
        yield
    except (ConfigError, NotABusRoot, InvalidPartitionKey) as error:
        raise Refusal(str(error), Exit.USAGE) from error
    except PartitionLocked as error:
        raise Refusal(str(error), Exit.LOCKED) from error
    except ChunkBusError as error:
        raise Refusal(str(error), Exit.INVALID_INPUT) from error
    except PermissionError as error:
        raise Refusal(f"no permission for {error.filename}: change it, or name another folder", Exit.USAGE) from error
