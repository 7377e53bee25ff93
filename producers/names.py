"""What files and folders are called below a root: never by where a link leads."""

import os
from pathlib import Path

from chunksink.producers.errors import IngestRefused


def uri_of(file: Path | str, root: Path) -> str:
    # Not resolve(): a link is called by its own name.
    path, top = os.path.abspath(file), os.path.abspath(root)  # noqa: PTH100
    start = top.rstrip("/") + "/"
    if path != top and not path.startswith(start):
        raise IngestRefused(f"{file} does not lie below the base folder {root}")
    return "." if path == top else path.removeprefix(start)


def folder_uri(folder: str, root: Path) -> str:
    return printable(uri_of(folder, root)) + "/"


def printable(uri: str) -> str:
    return uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_same_file(one: str | Path, other: str | Path) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121
    except OSError:
        return False
