"""Other users of this machine."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

_NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything."""
    ours = os.geteuid()
    if ours == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(ours)


@contextmanager
def copy_of_nobody(folder: Path) -> Iterator[Path]:
    """A copy that belongs to nobody, in a place that nobody can reach."""
    with TemporaryDirectory() as place:
        copy = Path(shutil.copytree(folder, Path(place, folder.name)))
        if os.geteuid() == 0:
            for path in (Path(place), copy, *copy.rglob("*")):
                os.chown(path, _NOBODY, -1)
        yield copy


def take_away(file: Path) -> None:
    """Make the file as root leaves one: nobody else can read it."""
    file.chmod(0)
    if os.geteuid() == 0:
        os.chown(file, 0, -1)
