"""Token ids between tokenizer and model: cut long texts, sort by length, form batches, pad.

Everything here is plain lists and numpy; no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chunksink.embeddings.encoder import EncodedBatch, LongTexts, Vectors

Ids = list[int]
Arrays = dict[str, npt.NDArray[np.int64]]
"""A model's inputs by their names."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The form of a model's input."""

    prefix: tuple[int, ...]
    """Special tokens before a text, such as [CLS]."""
    suffix: tuple[int, ...]
    """Special tokens after a text, such as [SEP]."""
    max_length: int
    pad_id: int = 0
    pad_left: bool = False
    token_types: bool = False

    @property
    def room(self) -> int:
        """How many tokens of text fit beside the special ones."""
        return self.max_length - len(self.prefix) - len(self.suffix)


@dataclass(frozen=True, slots=True)
class ModelForm:
    """Facts about a model that are known only once it is loaded."""

    layout: Layout
    dimension: int
    query_prompt: str
    passage_prompt: str


@dataclass(frozen=True, slots=True)
class TokenWindow:
    """One input of the model: a text, or a window of a long text."""

    position: int
    """The index of its text in the block of texts."""
    ids: Ids


def cut(body: Ids, prompt_length: int, layout: Layout, long_texts: LongTexts, context_length: int = 0) -> list[Ids]:
    """The inputs for one text: the text if it fits, else its beginning, or windows over all of it.

    `body` has the tokens of the prompt, the context and the text, without special tokens. `prompt_length` and
    `context_length` are numbers of tokens. Windows are equally long; otherwise a short last window would count as much
    as a full one. Each begins with the prompt and the context. If these are longer than half of the room, the context
    is cut.
    """

    def whole(part: Ids) -> Ids:
        return [*layout.prefix, *part, *layout.suffix]

    if len(body) <= layout.room:
        return [whole(body)]
    text_start = prompt_length + context_length
    head, text = body[: max(prompt_length, min(text_start, layout.room // 2))], body[text_start:]
    room = layout.room - len(head)
    if long_texts == "truncate" or room < 1 or not text:
        return [whole([*head, *text][: layout.room])]
    return [whole([*head, *text[start:stop]]) for start, stop in edges(len(text), room)]


def edges(length: int, longest: int) -> Iterator[tuple[int, int]]:
    """Divides a text into as few windows as possible, none longer than `longest`: the start and end of each. Their
    lengths differ by at most one."""
    count = -(-length // longest)
    for number in range(count):
        yield length * number // count, length * (number + 1) // count


def batches(pieces: Iterable[TokenWindow], budget: int, step: int = 1) -> Iterator[list[TokenWindow]]:
    """Batches of windows of similar length, the longest first.

    A batch has at most `budget` tokens, including padding to a multiple of `step`, unless a single window is longer.
    """
    batch: list[TokenWindow] = []
    for piece in sorted(pieces, key=lambda piece: -len(piece.ids)):
        if batch and (len(batch) + 1) * _rounded_up(len(batch[0].ids), step) > budget:
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


def padded(batch: Sequence[TokenWindow], layout: Layout, step: int = 1) -> Arrays:
    """The model's input arrays for a batch: a multiple of `step` wide, but not padded beyond the model's maximum."""
    longest = max(len(piece.ids) for piece in batch)
    width = max(longest, min(_rounded_up(longest, step), layout.max_length))
    ids = np.full((len(batch), width), layout.pad_id, dtype=np.int64)
    mask = np.zeros((len(batch), width), dtype=np.int64)
    for row, piece in enumerate(batch):
        place = slice(width - len(piece.ids), width) if layout.pad_left else slice(0, len(piece.ids))
        ids[row, place] = piece.ids
        mask[row, place] = 1
    arrays = {"input_ids": ids, "attention_mask": mask}
    if layout.token_types:
        arrays["token_type_ids"] = np.zeros_like(ids)
    return arrays


def _rounded_up(length: int, step: int) -> int:
    return -(-length // step) * step


class WindowJoiner:
    """Joins the vectors of windows to vectors of texts. Windows may come in any order."""

    def __init__(self, counts: Sequence[int], lengths: Sequence[int], offset: int = 0) -> None:
        """The number of windows and the length of each text; `offset` is the position of the first text."""
        self._counts = counts
        self._lengths = lengths
        self._offset = offset
        self._parts: dict[int, tuple[int, npt.NDArray[np.float64], float]] = {}

    def add(self, texts: Sequence[int], vectors: Vectors) -> EncodedBatch:
        """Adds the vectors of some windows, and returns the texts that are now complete. `texts` has the index of the
        text for each vector."""
        complete: dict[int, npt.NDArray[Any]] = {}
        for text, vector in zip(texts, vectors, strict=True):
            if self._counts[text] == 1:
                complete[text] = vector
                continue
            count, total, norms = self._parts.pop(text, (0, np.zeros(len(vector)), 0.0))
            norm = float(np.linalg.norm(vector))
            # A vector that is zero or not finite makes the sum not finite, so the caller notices it.
            part = (count + 1, total + vector / (norm or np.nan), norms + norm)
            if part[0] < self._counts[text]:
                self._parts[text] = part
            else:
                complete[text] = _mean(*part)
        rows = np.array(list(complete.values()), dtype=np.float32).reshape(-1, vectors.shape[1])
        positions = [self._offset + text for text in complete]
        return EncodedBatch(positions, rows, [self._lengths[text] for text in complete])


def _mean(count: int, total: npt.NDArray[np.float64], norms: float) -> npt.NDArray[np.float64]:
    """A vector in the mean direction of the windows' vectors. Its norm is the mean of theirs (1 for a model that
    normalises)."""
    length = float(np.linalg.norm(total))
    return total * (norms / count / length) if length else total
