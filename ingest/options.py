"""The options of an ingest, and the checks that they fit together."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from chunksink.chunkbus.brake import allowance_problem
from chunksink.ingest.errors import IngestRefused
from chunksink.ingest.formats.markdown.policy import DEFAULT_TENANT, POLICIES

AUTO = "auto"
ROWS = "rows"
FIELD_ROLES = ("text", "html", "id", "title", "address")


@dataclass(frozen=True)
class Options:
    """How a run finds and reads sources, and where it writes their chunks.

    `format` is the name of a format, or `auto`. `partition` is a partition key, or a rule of `placement`. If `base`
    is set, sources are named by their path below it. `exclude` and `include` are patterns as in a `.gitignore`
    file; included files are read with any suffix. `fields` maps roles to the names of fields in rows. `prune`
    removes the chunks of vanished sources. `chunking` sets the chunking policy of the registered folder that contains
    each named path, and of registered folders inside the path; None changes nothing. `checksum` reads every file,
    even if its size and times are unchanged. `follow_links` also reads linked files outside the named folders.

    `allow_deletions` limits losses: with more, the run stops and writes nothing. If a folder or file has no sources
    left, it limits how many `prune` removes. It also limits how many sources lose most of their chunks, if these chunks
    are a large share of all.
    """

    format: str = AUTO
    partition: str = "documents"
    base: Path | None = None
    tenant: str | None = None
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    prune: bool = False
    allow_deletions: int = 0
    chunking: str | None = None
    checksum: bool = False
    follow_links: bool = False

    def check(self, formats: Collection[str]) -> None:
        """Raises IngestRefused for contradictory or meaningless options."""
        patterns(self.exclude, "--exclude")
        patterns(self.include, "--include")
        if self.format not in (AUTO, *formats):
            raise IngestRefused(f"--as {self.format}: unknown format; the formats are {', '.join(formats)}")
        if self.chunking not in (None, *POLICIES):
            raise IngestRefused(f"--chunking {self.chunking}: unknown policy; the policies are {', '.join(POLICIES)}")
        if wrong := allowance_problem(self.allow_deletions):
            raise IngestRefused(wrong)
        if self.tenant in ("", DEFAULT_TENANT):
            raise IngestRefused(f"--tenant {self.tenant!r} is reserved: choose another name, or leave --tenant out")
        if self.fields and self.format not in (AUTO, ROWS):
            raise IngestRefused(f"--field is only for rows, not for --as {self.format}: leave one of them out")
        for role, name in self.fields.items():
            if role not in FIELD_ROLES or not name:
                field = f"{role}={name}" if name else role
                raise IngestRefused(f"--field {field}: write ROLE=NAME; the roles are {', '.join(FIELD_ROLES)}")


def patterns(lines: Sequence[str], option: str) -> GitIgnoreSpec:
    """The patterns of an option; several lines are several patterns. Raises IngestRefused for an invalid one."""
    try:
        return GitIgnoreSpec.from_lines("\n".join(lines).splitlines())
    except ValueError as error:
        raise IngestRefused(f"{option} takes patterns as in a .gitignore file: {error}") from error
