"""Exit codes, and the errors that lead to them. Each code has one meaning, so that a script can act on it;
`docs/cli.md` lists them. Only `status --check` has codes of its own. An error without a code here is a bug."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import click

from chunksink.chunkbus import errors as bus
from chunksink.chunkbus.shortage import shortage
from chunksink.command_line import logs
from chunksink.command_line.output import note, print_json


class Exit(IntEnum):
    """An exit code and its meaning."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "done, without problems"
    BUG = 1, "an unexpected error: a bug, with its traceback"
    USAGE = 2, "the command, its options, its sources or the configuration cannot be used"
    INVALID_INPUT = (
        3,
        "partitions or sources are missing or invalid; the rest was done, except by commands that need all "
        "chunks: `rebuild`, `sync --strict`, `prove` and `cache gc`",
    )
    DRIFT = (
        4,
        "a comparison found a difference or was not possible (`verify`, `prove`, `settings diff`, "
        "`cache verify`, `cache export`, `cache import`); or a new build, the cache of vectors, a backup or a file "
        "of the home is damaged",
    )
    ENGINE = (
        5,
        "an engine, endpoint or bucket cannot be reached or refuses a call; or a disk is full, or this "
        "machine is short of memory or open files; or `doctor` found a failure",
    )
    REFUSED = 6, "done, but some documents or vectors were refused and left out"
    LOCKED = 7, "another process is writing the same thing"
    BRAKE = (
        8,
        "a run would remove a large share of the index, or an `ingest` would remove a large share of the chunks; "
        "nothing was removed, but if `ingest --sync` stopped at its sync, the chunks are already written",
    )
    OTHER_PLAN = 9, "the named plan is out of date; nothing was written: plan again"
    ENDPOINT_CHANGED = (
        10,
        "an embedding endpoint computes different vectors than before under the same model name, so no "
        "vector was computed: run `rebuild --fresh-cache`, or set a new model name and run `rebuild`",
    )
    REBUILD_DUE = 11, "with `sync --strict`: done, but a rebuild is due, since the configured model has changed"
    WORSE = 12, "answers got worse by more than `--fail-if-drop`; `rebuild --require-eval` kept the live index"
    INTERRUPTED = (
        130,
        "stopped by Ctrl-C; the state is consistent: run it again. SIGTERM stops it too; shells show 143. "
        "`serve` ends with 0 after both",
    )
    OUTPUT_CLOSED = 141, "the reader closed the output before its end, as `| head` does"


@cache
def _codes() -> dict[type, Exit]:
    """The exit codes of errors. An error that is not listed has the code of its base class."""
    from chunksink.embeddings import errors as embeddings
    from chunksink.ingest import errors as ingest
    from chunksink.rebuild import errors as rebuild
    from chunksink.search.errors import SearchError
    from chunksink.settings.errors import ConfigError
    from chunksink.sinks.errors import InvalidFilter, SinkError

    return {
        ConfigError: Exit.USAGE,
        bus.ChunkBusError: Exit.INVALID_INPUT,
        bus.ExtraMissing: Exit.USAGE,
        bus.InvalidPartitionKey: Exit.USAGE,
        bus.NewerStore: Exit.USAGE,
        bus.NotABusRoot: Exit.USAGE,
        bus.PartitionChanged: Exit.LOCKED,
        bus.PartitionLocked: Exit.LOCKED,
        bus.StorageConflict: Exit.LOCKED,
        bus.StorageEndpointInvalid: Exit.USAGE,
        bus.StorageError: Exit.ENGINE,
        bus.StoreUnreadable: Exit.DRIFT,
        embeddings.EmbeddingsError: Exit.USAGE,
        embeddings.CacheBusy: Exit.LOCKED,
        embeddings.CacheDamaged: Exit.DRIFT,
        embeddings.CacheOutOfResources: Exit.ENGINE,
        embeddings.EndpointAddressInvalid: Exit.USAGE,
        embeddings.EndpointChanged: Exit.ENDPOINT_CHANGED,
        embeddings.EndpointError: Exit.ENGINE,
        ingest.IngestError: Exit.INVALID_INPUT,
        ingest.IngestBrake: Exit.BRAKE,
        ingest.IngestBusy: Exit.LOCKED,
        ingest.IngestRefused: Exit.USAGE,
        ingest.ReaderKilled: Exit.ENGINE,
        rebuild.RebuildError: Exit.USAGE,
        rebuild.BackupUnreadable: Exit.DRIFT,
        rebuild.Brake: Exit.BRAKE,
        rebuild.ComputeError: Exit.ENGINE,
        rebuild.HomeLocked: Exit.LOCKED,
        rebuild.InvalidBus: Exit.INVALID_INPUT,
        rebuild.NotVerified: Exit.DRIFT,
        rebuild.OtherPlan: Exit.OTHER_PLAN,
        rebuild.WorseAnswers: Exit.WORSE,
        SearchError: Exit.USAGE,
        SinkError: Exit.ENGINE,
        InvalidFilter: Exit.USAGE,
    }


def code_of(error: BaseException) -> Exit | None:
    """The exit code of an error; None if it is a bug."""
    return next((_codes()[kind] for kind in type(error).__mro__ if kind in _codes()), None)


class Refusal(click.ClickException):
    """`Error: <what, where, what to do>` on standard error, and an exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.code = code

    def show(self, file: Any = None) -> None:
        message = self.format_message()
        note(message if logs.is_json() else f"Error: {message}", severity="error", event="error")


def print_failure(error: click.ClickException, code: int) -> None:
    """The error as a JSON document, for `--json`."""
    document: dict[str, Any] = {"error": {"exit_code": code, "message": error.format_message()}}
    if (removal := getattr(error.__cause__, "removal", None)) is not None:
        document["brake"] = asdict(removal)
    if (evaluation := getattr(error.__cause__, "evaluation", None)) is not None:
        document["evaluation"] = evaluation
    with suppress(OSError):  # the output may be what failed
        print_json(document)


@contextmanager
def errors_as_refusals() -> Iterator[None]:
    """Raises a `Refusal` for every known error. Unknown errors pass unchanged."""
    _codes()  # imports modules now: once no file can be opened, an import fails
    try:
        yield
    except (Refusal, BrokenPipeError):
        raise
    except PermissionError as error:
        unnamed = f"{error.strerror or error}, for a file that the system does not name"
        what = unnamed if error.filename is None else f"no permission for {error.filename}"
        raise Refusal(f"{what}: change its permissions, or name another folder", Exit.USAGE) from error
    except OSError as error:
        is_machine_error = shortage(error) is not None or error.errno == errno.EIO
        if error.filename is None and not is_machine_error and error.errno != errno.EROFS:
            raise
        message = f"{error.strerror or error}: {error.filename or 'while writing'}{_remedy(error)}"
        code = Exit.LOCKED if error.errno == errno.EBUSY else Exit.USAGE
        raise Refusal(message, Exit.ENGINE if is_machine_error else code) from error
    except Exception as error:
        if (known := code_of(error)) is not None:
            raise Refusal(str(error), known) from error
        if (remedy := shortage(error)) is None:
            raise
        raise Refusal(f"{error or 'out of memory'}: {remedy}, then run it again", Exit.ENGINE) from error


def _remedy(error: OSError) -> str:
    """A remedy for an error of the operating system; empty if the text is chunksink's own, which names one."""
    if error.errno is None or error.strerror != os.strerror(error.errno):
        return ""
    if error.errno == errno.EROFS:
        return "; make that disk writable, or name another folder"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return "; a file is where a folder must be: move it away, or name another folder"
    name = error.filename if isinstance(error.filename, str) else ""
    if error.errno == errno.ENOENT and "://" not in name and not Path(name).parent.is_dir():
        return "; make its folder first, or name another one"
    remedy = shortage(error)
    return f"; {remedy}, then run it again" if remedy else ""
