"""Files that somebody wants passed over, or read as well: patterns as in a `.gitignore`, seen from the folder named."""

import os
from collections.abc import Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from chunksink.producers.errors import IngestRefused


class Patterns:
    """The last pattern that fits decides, so that `!keep.md` takes one back. Raises IngestRefused for what is none."""

    def __init__(self, patterns: Sequence[str] = (), option: str = "--exclude") -> None:
        self._given = bool(patterns)
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise IngestRefused(f"{option} takes patterns as in a .gitignore file: {error}") from error

    def cover(self, path: str, folder: str, *, is_folder: bool) -> bool:
        """Whether one fits what lies there below the folder named."""
        if not self._given:
            return False
        below = os.path.relpath(path, folder)
        return self._spec.match_file(f"{below}/" if is_folder else below)

    def cover_or_above(self, file: Path, folder: Path) -> bool:
        """Whether a walk of the folder would pass over the file, or over a folder in which it lies."""
        above = [parent for parent in file.parents if parent.is_relative_to(folder) and parent != folder]
        return self.cover(str(file), str(folder), is_folder=False) or any(
            self.cover(str(parent), str(folder), is_folder=True) for parent in above
        )


NONE = Patterns()
