"""Folders that tools fill for themselves: installed packages and caches. They lie among somebody's documents, and hold
thousands of others."""

import os

_PACKAGES = "holds installed packages; name it to have it read"
_CACHE = "is a cache, as its CACHEDIR.TAG says; name it to have it read"
_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/


def filled_by_tool(folder: str) -> str | None:
    """How it is known; None for any other folder. Asked of each, so by the quickest way."""
    root = folder.rstrip("/")
    if root.endswith("/node_modules") or os.path.isfile(f"{root}/pyvenv.cfg"):  # noqa: PTH113
        return _PACKAGES
    return _CACHE if _is_tagged(f"{root}/CACHEDIR.TAG") else None


def _is_tagged(tag: str) -> bool:
    try:
        handle = os.open(tag, os.O_RDONLY | os.O_NONBLOCK)  # whatever it is, a pipe too
    except OSError:
        return False
    try:
        return os.read(handle, len(_SIGNATURE)) == _SIGNATURE
    except OSError:
        return False
    finally:
        os.close(handle)
