"""What an encoder is. Everything that turns text into vectors is one of these: a model here, an endpoint, a fake.

`encode` is all that a simple encoder needs. One that computes for minutes should also offer `encode_batches`
(see `BatchEncoder`), so that `vectors_for` can commit what is done while the rest is computed.
Ours are `InfoEncoder`s, and can be closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from chunksink.embeddings.errors import TextRefused

Precision = Literal["float32", "bfloat16", "int8"]
"""In which precision a vector was computed. It is always stored and returned as float32."""

PrecisionRequest = Literal["auto", "float32", "bfloat16", "int8"]
"""What the user asks for. `auto` takes bfloat16 where the hardware has it."""

LongTexts = Literal["windows", "truncate"]
"""What happens to a text longer than the model's maximum: the normalised mean of windows, or only its beginning."""

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]
else:
    Vectors = Any  # numpy is slow to import, and many commands need none


def satisfying(request: PrecisionRequest) -> frozenset[Precision]:
    """The precisions of cached vectors that satisfy a request: that one, and any that is more precise."""
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
    """Longer texts are long texts; None where the limit is not known (endpoints)."""
    precision: Precision
    requested: PrecisionRequest
    long_texts: LongTexts
    query_prompt: str = ""
    passage_prompt: str = ""
    length_unit: Literal["tokens", "characters"] = "tokens"
    """What `max_length` and the recorded lengths count; tokens include the special ones."""
    source: str = ""
    """Where the model was found: a folder, an installed package, the hub, an endpoint's URL."""
    device: str = "cpu"
    runtime: str = ""
    """What computes: `openvino`, or `sentence-transformers` and why, where OpenVINO could have."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of the libraries that compute; recorded, but not part of the fingerprint."""
    files: str = ""
    """A digest of all files of the model's folder; "" where there is none."""


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors.

    The fingerprint names everything that decides what a vector means: two encoders with the same fingerprint
    give interchangeable vectors. `encode` is deterministic up to rounding, keeps the order, returns float32 of
    shape (len(texts), dimension), and may be called with no texts at all.
    A text that has no vector gets a row of NaN; `vectors_for` isolates it.
    """

    @property
    def fingerprint(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def max_length(self) -> int | None: ...
    @property
    def precision(self) -> Precision: ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of passages, in order."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EncodedBatch:
    """Some vectors that are ready, and whose they are."""

    positions: Sequence[int]
    """Indices into the texts that were given."""
    vectors: Vectors
    tokens: Sequence[int]
    """Length of each text before any cut, in the unit of its model; 0 where it is not known."""
    problems: Mapping[int, str] = field(default_factory=dict)
    """Positions that have no vector (their row is NaN), and why."""


@runtime_checkable
class BatchEncoder(Encoder, Protocol):
    """An encoder that hands out vectors as they become ready, in any order, each position exactly once."""

    def encode_batches(self, texts: Sequence[str]) -> Iterator[EncodedBatch]: ...


@runtime_checkable
class QueryEncoder(Encoder, Protocol):
    """An encoder that treats queries differently from passages (E5, BGE)."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries, in order."""
        ...


class ClosingEncoder(Encoder, Protocol):
    """An encoder that holds threads or connections: `with closing(open_encoder(settings)) as encoder`."""

    def close(self) -> None:
        """Releases them. May be called twice; the encoder acquires them again when it is used."""
        ...


class InfoEncoder(ABC):
    """Base of the encoders that have an `info`. They differ in how batches are computed."""

    info: ModelInfo

    @property
    def fingerprint(self) -> str:
        return self.info.fingerprint

    @property
    def dimension(self) -> int:
        return self.info.dimension

    @property
    def max_length(self) -> int | None:
        return self.info.max_length

    @property
    def precision(self) -> Precision:
        return self.info.precision

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of passages, in order; `TextRefused` if one of them is refused."""
        return gathered(self.encode_batches(texts), len(texts), self.dimension)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of queries, in order; `TextRefused` if one of them is refused."""
        return gathered(self._run(texts, self.info.query_prompt), len(texts), self.dimension)

    def encode_batches(self, texts: Sequence[str]) -> Iterator[EncodedBatch]:
        """Vectors of passages as they become ready, in any order; refused texts are named in `problems`."""
        return self._run(texts, self.info.passage_prompt)

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def _run(self, texts: Sequence[str], prompt: str) -> Iterator[EncodedBatch]: ...


def gathered(batches: Iterable[EncodedBatch], count: int, dimension: int) -> Vectors:
    """The vectors of batches in the order of their texts; raises `TextRefused` for the first that has none."""
    import numpy as np

    out = np.empty((count, dimension), dtype=np.float32)
    for batch in batches:
        for problem in batch.problems.values():
            raise TextRefused(problem)
        out[batch.positions] = batch.vectors
    return out


def encode_queries(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Vectors of queries, with the encoder's query prompt where it has one."""
    if isinstance(encoder, QueryEncoder):
        return encoder.encode_queries(texts)
    return encoder.encode(texts)


def info_of(encoder: Encoder) -> ModelInfo:
    """The encoder's own `info`, or one with what an encoder without it shows."""
    info = getattr(encoder, "info", None)
    if isinstance(info, ModelInfo):
        return info
    return ModelInfo(
        name=type(encoder).__name__,
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        max_length=encoder.max_length,
        precision=encoder.precision,
        requested=encoder.precision,
        long_texts="truncate",
    )
