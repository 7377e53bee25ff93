"""The interface of all encoders: a model on this machine, an endpoint, or a fake in a test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from chunksink.embeddings.context import EmbedContext, context_before
from chunksink.embeddings.errors import TextRefused
from chunksink.embeddings.references import TEXT_BYTES, raw_key

Precision = Literal["float32", "bfloat16", "int8"]
"""The precision in which a vector was computed. The vector itself is always stored and returned as float32."""

PrecisionRequest = Literal["auto", "float32", "bfloat16", "int8"]
"""The configured precision. `auto` is bfloat16 if the hardware supports it, else float32."""

LongTexts = Literal["windows", "truncate"]
"""How a text longer than the model's maximum is embedded: as the mean direction of windows, or only its beginning."""

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
else:
    Vectors = Any  # numpy is slow to import, and many commands need none


def acceptable_precisions(request: PrecisionRequest) -> frozenset[Precision]:
    """The precisions of cached vectors that satisfy a request: the requested one and all that are more precise; for
    `auto`, bfloat16 and float32."""
    if request == "float32":
        return frozenset(("float32",))
    return frozenset(("float32", "bfloat16", "int8") if request == "int8" else ("float32", "bfloat16"))


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Describes a model; the cache keeps it beside the vectors."""

    name: str
    fingerprint: str
    dimension: int
    max_length: int | None
    """The longest text that is embedded whole; None if there is no limit. `long_texts` decides how to embed others."""
    precision: Precision
    requested: PrecisionRequest
    long_texts: LongTexts
    query_prompt: str = ""
    passage_prompt: str = ""
    length_unit: Literal["tokens", "characters"] = "tokens"
    """What `max_length` and the recorded lengths count; tokens include the special ones."""
    source: str = ""
    """An endpoint's URL; or `folder:`, `package:` or `hub:`, followed by the folder of the model."""
    device: str = "cpu"
    runtime: str = ""
    """`openvino`, or `sentence-transformers`, with the reason if OpenVINO was tried first."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of the libraries that affect vectors; recorded, but not part of the fingerprint."""
    files: str = ""
    """A digest of all files of the model's folder; "" for an endpoint."""
    index_dimension: int = 0
    """How many numbers of each vector are stored in indexes; 0 means all."""
    embed_context: EmbedContext = ""

    def key(self, key: str) -> bytes:
        """The key of this model's vector in the cache. It omits the context if the model embeds none."""
        return raw_key(key) if self.embed_context else raw_key(key)[:TEXT_BYTES]

    @property
    def dimension_in_index(self) -> int:
        return self.index_dimension or self.dimension

    def as_in_index(self, vectors: Vectors) -> Vectors:
        """The vectors as indexes store them: unchanged, or only their first numbers, scaled to the length 1."""
        if not self.index_dimension:
            return vectors
        import numpy as np

        short = vectors[..., : self.index_dimension]
        lengths = np.linalg.norm(short, axis=-1, keepdims=True)
        scaled: Vectors = (short / np.where(lengths == 0, 1, lengths)).astype(np.float32)
        return scaled


class Passage(NamedTuple):
    """A text to embed."""

    key: str
    text: str
    context: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedBatch:
    """Some vectors that are ready, and the texts they belong to."""

    positions: Sequence[int]
    """Indices into the texts that were passed in."""
    vectors: Vectors
    lengths: Sequence[int]
    """Length of each text with its context, before truncation or splitting. A model on this machine counts tokens, with
    the prompt; an endpoint counts characters, without it. 0 if unknown."""
    problems: Mapping[int, str] = field(default_factory=dict)
    """Why a position has no vector. Its row is NaN."""


class Encoder(ABC):
    """Turns texts into vectors.

    Encoders with the same fingerprint and precision compute interchangeable vectors: equal up to rounding. An encoder
    holds threads or connections, so close it: `with closing(open_encoder(settings)) as encoder`.
    """

    info: ModelInfo
    loading_seconds = 0.0
    """How long the model took to load; 0 if that was not measured."""

    @property
    def runtime(self) -> str | None:
        """The runtime that runs the model; None for an endpoint, and while the model is not loaded."""
        return self.info.runtime or None

    @property
    def billed_tokens(self) -> int:
        """Tokens that an endpoint has charged for; 0 if the model computes here."""
        return 0

    def encode(self, texts: Sequence[str], contexts: Sequence[str] = ()) -> Vectors:
        """Vectors of passages, in order; `TextRefused` if one of them is refused."""
        return self._gathered(self.encode_batches(texts, contexts), len(texts))

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries, in order; `TextRefused` if one of them is refused."""
        return self._gathered(self._run(texts, self.info.query_prompt), len(texts))

    def encode_batches(self, texts: Sequence[str], contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        """Vectors of passages as they become ready, in any order, each position exactly once.

        `contexts` is empty, or has an entry for each text, which may be empty. It is ignored if the model embeds no
        context.
        """
        embedded = contexts if self.info.embed_context else ()
        return self._run(texts, self.info.passage_prompt, [*map(context_before, texts, embedded)])

    @abstractmethod
    def close(self) -> None:
        """Releases threads and connections. May be called twice; the encoder acquires them again when it is used."""

    @abstractmethod
    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        """Batches of vectors for these texts. The model's input is the prompt, then the text's context, then the
        text."""

    def _gathered(self, batches: Iterable[EncodedBatch], count: int) -> Vectors:
        import numpy as np

        out = np.empty((count, self.info.dimension), dtype=np.float32)
        for batch in batches:
            if batch.problems:
                raise TextRefused(next(iter(batch.problems.values())))
            out[batch.positions] = batch.vectors
        return out
