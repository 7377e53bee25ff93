"""What computes a model. Two can: torch with sentence-transformers, and OpenVINO with a graph made from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from chunksink.embeddings.encoder import Vectors
from chunksink.embeddings.tokens import Arrays, Layout


@dataclass(frozen=True, slots=True)
class ModelForm:
    """What is known only once the model is loaded."""

    layout: Layout
    dimension: int
    query_prompt: str
    passage_prompt: str


class Runtime(Protocol):
    """A loaded model: text to token ids, token ids to vectors. All of it can be called from several threads."""

    @property
    def workers(self) -> int:
        """How many batches are best computed at the same time."""
        ...

    @property
    def token_budget(self) -> int:
        """How many tokens a batch should have at most."""
        ...

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        """The ids of each text, uncut and without special tokens."""
        ...

    def vectors(self, arrays: Arrays, prompt_length: int) -> Vectors:
        """One row for each row of the input arrays."""
        ...

    def preparing_threads(self, workers: int) -> AbstractContextManager[Callable[[], None]]:
        """While the threads that compute are started: what each of them calls first."""
        ...

    def is_out_of_memory(self, error: Exception) -> bool:
        """Whether this error of `vectors` means that a smaller batch may pass."""
        ...

    def free_memory(self) -> None:
        """Called before a smaller batch is tried."""
        ...
