"""The sizes of the chunking specification, and the versions that a chunk records."""

from dataclasses import dataclass
from importlib.metadata import version
from sys import intern

from chunksink.ingest.formats.markdown import tokens

PARSER_NAME = "markdown-it-py"
PARSER_VERSION = version(PARSER_NAME)
CANONICALIZER_NAME = "chunksink-markdown"
RULES_VERSION = "10"
"""Increase it with every change of normalisation, structure, sentences, packing or records that changes chunks."""


@dataclass(frozen=True)
class Policy:
    """Sizes in tokens. Packing ends at `target`, at the latest at `soft_max`. No chunk exceeds `hard_max`."""

    target: int = 350
    soft_max: int = 450
    hard_max: int = 520
    overlap_percent: int = 15

    def overlap_of(self, tokens: int) -> int:
        return tokens * self.overlap_percent // 100

    @property
    def window(self) -> int:
        """New tokens in each window of an overlong sentence; with its overlap a window reaches the target."""
        return max(1, self.target - self.overlap_of(self.target))

    @property
    def policy_id(self) -> str:
        """Names everything that decides where a text is cut, except the parser."""
        sizes = f"{self.target}/{self.soft_max}/{self.hard_max}/{self.overlap_percent}%"
        return intern(f"chunking_spec_v1.{RULES_VERSION}:{sizes}:{tokens.VERSION}")


DEFAULT_POLICY = Policy()
