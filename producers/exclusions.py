"""Files and folders that somebody wants passed over: patterns as in a `.gitignore`, seen from the folder named."""

import os
from collections.abc import Sequence

from pathspec import GitIgnoreSpec

from producers.errors import IngestRefused


class Exclusions:
    """The last pattern that fits decides, so that `!keep.md` takes one back. Raises IngestRefused for what is none."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._given = bool(patterns)
        try:
            self._spec = GitIgnoreSpec.from_lines(patterns)
        except ValueError as error:
            raise IngestRefused(f"--exclude takes patterns as in a .gitignore file: {error}") from error

    def cover(self, path: str, folder: str, *, is_folder: bool) -> bool:
        """Whether what lies there below the folder named is passed over, with all that lies below it."""
        if not self._given:
            return False
        below = os.path.relpath(path, folder)
        return self._spec.match_file(f"{below}/" if is_folder else below)


NONE = Exclusions()
