"""What the name of a source says about it: path, file name, folder, extension. Pure; nothing is opened."""

import posixpath
import re
from urllib.parse import unquote, urlsplit

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two characters or more: C: is a drive
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")


def path_of(source: str) -> str | None:
    """The path that a source's name is, or that its file: URL holds; None for what lies elsewhere (https:, doi:)."""
    if not _SCHEME.match(source):
        return source
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    if parts.scheme.lower() != "file":
        return None
    path = unquote(parts.path)
    return (path[1:] if re.match("/[A-Za-z]:/", path) else path) or None


def filename_of(path: str | None, source: str | None) -> str | None:
    """The last part of the path, else of the URL's path."""
    if path is not None:
        return _parts(path)[1] or None
    if source is None:
        return None
    try:
        parts = urlsplit(source)
    except ValueError:
        return None
    return unquote(posixpath.basename(parts.path)) or None if parts.netloc else None


def folder_of(path: str) -> str | None:
    """The folder of a path, with / between its parts."""
    return _parts(path)[0] or None


def extension_of(filename: str) -> str | None:
    """`gz` of `a.tar.gz`; None for `.bashrc` and for what does not look like one."""
    ending = posixpath.splitext(filename)[1][1:].lower()
    return ending if re.fullmatch("[a-z0-9]{1,16}", ending) else None


def _parts(path: str) -> tuple[str, str]:
    return posixpath.split(path.replace("\\", "/") if _WINDOWS.match(path) else path)
