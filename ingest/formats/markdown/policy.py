"""The chunking policies: the sizes and rules of each chunking specification, and the versions that a chunk records."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from sys import intern
from typing import Self

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.registry import Format

PARSER_NAME = "markdown-it-py"
PARSER_VERSION = version(PARSER_NAME)
CANONICALIZER_NAME = "chunksink-markdown"
DEFAULT_TENANT = "default"
"""Reserved: the ids of chunks without a tenant contain this name, so a tenant of this name would get the same ids."""


@dataclass(frozen=True)
class Policy:
    """Sizes in tokens. Text is added to a passage until it has `target` tokens, but not past `soft_max`. If the passage
    would be smaller than `minimum`, text is added up to `hard_max`. Only tables of parsed documents may exceed that.

    The defaults are those of the chunking specification v1. Increase `rules` with every change of normalisation,
    structure, sentences, packing or records that changes chunks.
    """

    target: int = 350
    soft_max: int = 450
    hard_max: int = 520
    overlap_percent: int = 15
    minimum: int = 0
    """Only three kinds of chunks may be smaller: a whole section; a table of a parsed document, which is never joined
    with other text; and a chunk next to such a table."""
    name: str = "v1"
    rules: str = "12"
    joins_blocks: bool = False
    """Whether a chunk may contain lists, tables, code and quotes together with other blocks of the section."""
    ids_survive_edits: bool = False
    """Whether ids depend on the text of a chunk, not on the version of its source."""
    drops_directives: bool = False
    """Whether directives of documentation frameworks are removed from Markdown files."""
    keeps_code_spans: bool = False
    """Whether no sentence ends within a code span."""

    def overlap_of(self, tokens: int) -> int:
        return tokens * self.overlap_percent // 100

    @property
    def window(self) -> int:
        """New tokens in each window of an overlong sentence; with its overlap a window reaches the target."""
        return max(1, self.target - self.overlap_of(self.target))

    @property
    def policy_id(self) -> str:
        """Names everything that decides where a text is cut, except the parser."""
        sizes = [size for size in (self.minimum, self.target, self.soft_max, self.hard_max) if size]
        of_sizes = f"{'/'.join(map(str, sizes))}/{self.overlap_percent}%"
        return intern(f"chunking_spec_{self.name}.{self.rules}:{of_sizes}:{tokens.VERSION}")


V1 = Policy()
V2 = Policy(
    minimum=40,
    name="v2",
    rules="4",
    joins_blocks=True,
    ids_survive_edits=True,
    drops_directives=True,
    keeps_code_spans=True,
)
POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in (V1, V2)}
DEFAULT_POLICY = V1
"""The policy of newly registered folders."""


@dataclass(frozen=True)
class CutByPolicy(Format):
    """A format that cuts texts by a policy."""

    policy: Policy = V1

    @property
    def canonicalizer(self) -> tuple[str, str]:  # type: ignore[override]
        return CANONICALIZER_NAME, self.policy.policy_id

    def with_policy(self, policy: Policy) -> Self:
        return replace(self, policy=policy)
