"""How Markdown is cut: the numbers of the chunking specification, and the versions that a chunk records."""

import re
from dataclasses import dataclass
from sys import intern

import markdown_it

PARSER_NAME = "markdown-it-py"
PARSER_VERSION = markdown_it.__version__
CANONICALIZER_NAME = "chunksink-markdown"
# Raise it with any change of normalisation, structure, sentences, packing or records that the chunks show.
RULES_VERSION = "10"


@dataclass(frozen=True)
class Policy:
    """Sizes in tokens. A chunk grows to `target`, by adding never over `soft_max`, and is never over `hard_max`."""

    target: int = 350
    soft_max: int = 450
    hard_max: int = 520
    overlap_percent: int = 15

    def __post_init__(self) -> None:
        if not 0 < self.target <= self.soft_max <= self.hard_max:
            raise ValueError(
                f"a chunking policy needs 0 < target <= soft_max <= hard_max, got "
                f"{self.target}, {self.soft_max}, {self.hard_max}"
            )
        if not 0 <= self.overlap_percent <= 50:
            raise ValueError(f"an overlap is 0 to 50 percent, got {self.overlap_percent}")

    def overlap_of(self, tokens: int) -> int:
        return tokens * self.overlap_percent // 100

    @property
    def window(self) -> int:
        """New tokens in each window of a sentence that has to be cut: with its overlap it reaches the target."""
        return max(1, self.target - self.overlap_of(self.target))

    def policy_id(self, tokenizer_version: str) -> str:
        """One string for all: every chunk names it, and a run holds it for each source."""
        sizes = f"{self.target}/{self.soft_max}/{self.hard_max}/{self.overlap_percent}%"
        return intern(f"chunking_spec_v1.{RULES_VERSION}:{sizes}:{tokenizer_version}")

    @classmethod
    def from_id(cls, policy_id: str, tokenizer_version: str) -> "Policy | None":
        """The policy of an id that `policy_id` gave, where these rules and this tokenizer are still the same."""
        sizes = re.fullmatch(r"[^:]+:(\d+)/(\d+)/(\d+)/(\d+)%:.+", policy_id)
        policy = cls(*map(int, sizes.groups())) if sizes else None
        return policy if policy is not None and policy.policy_id(tokenizer_version) == policy_id else None
