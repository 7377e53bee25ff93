"""An encoder whose vectors depend on the text alone, and helpers that several tests share."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.embeddings.cache import VectorCache
from chunksink.embeddings.context import EmbedContext
from chunksink.embeddings.encoder import EncodedBatch, Encoder, ModelInfo, Passage, Precision, PrecisionRequest, Vectors
from chunksink.embeddings.errors import TextRefused
from chunksink.embeddings.load import load_encoder
from chunksink.embeddings.settings import EncoderSettings
from chunksink.embeddings.transformer import TransformerEncoder
from chunksink.embeddings.vectors import Embedded, vectors_for


def load_model(name: str, **options: Any) -> TransformerEncoder:
    """The encoder of a model with these settings and options of `load_encoder`."""
    names = {field.name for field in fields(EncoderSettings)} & options.keys()
    settings = EncoderSettings(name, **{name: options.pop(name) for name in names})
    return load_encoder(settings, **options)


load_with_torch = partial(load_model, use_graph=False)
"""Loads a model in any variant without a graph, which takes ten seconds to make."""


class HashEncoder(Encoder):
    """Vectors generated from the hash of the text. Records the texts that it encodes."""

    at_once = 16
    """Texts in a batch."""

    def __init__(
        self,
        *,
        dimension: int = 16,
        name: str = "hash",
        precision: Precision = "float32",
        requested: PrecisionRequest | None = None,
        max_length: int | None = None,
        embed_context: EmbedContext = "",
    ) -> None:
        self.info = ModelInfo(
            name=name,
            fingerprint=hashlib.sha256(f"{name} {dimension}{embed_context}".encode()).hexdigest(),
            dimension=dimension,
            max_length=max_length,
            precision=precision,
            requested=requested or precision,
            long_texts="truncate",
            libraries={"hash": "1"},
            embed_context=embed_context,
        )
        self.fingerprint = self.info.fingerprint
        self.dimension = dimension
        self.max_length = max_length
        self.precision: Precision = precision
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return np.array([self.vector(text) for text in texts], dtype=np.float32).reshape(-1, self.dimension)

    def _run(self, texts: Sequence[str], prompt: str, contexts: Sequence[str] = ()) -> Generator[EncodedBatch]:
        texts = [context + text for context, text in zip(contexts, texts, strict=True)] if contexts else texts
        for start in range(0, len(texts), self.at_once):
            positions = range(start, min(start + self.at_once, len(texts)))
            try:
                yield self._batch(texts, positions)
            except TextRefused:
                for position in positions:
                    yield self._alone(texts, position)

    def _batch(self, texts: Sequence[str], positions: range) -> EncodedBatch:
        vectors = self.encode([texts[position] for position in positions])
        return EncodedBatch(positions, vectors, [0] * len(positions))

    def _alone(self, texts: Sequence[str], position: int) -> EncodedBatch:
        try:
            return self._batch(texts, range(position, position + 1))
        except TextRefused as error:
            nothing = np.full((1, self.dimension), np.nan, dtype=np.float32)
            return EncodedBatch([position], nothing, [0], {position: str(error)})

    def close(self) -> None:
        """Nothing to release."""

    def vector(self, text: str) -> Vectors:
        return _drawn(text, self.dimension)


@cache
def _drawn(text: str, dimension: int) -> Vectors:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")
    vector = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    vector /= np.linalg.norm(vector)
    return vector


def text_hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def stream(texts: Iterable[str]) -> list[Passage]:
    return [Passage(text_hash(text), text) for text in texts]


def numbered(count: int) -> list[str]:
    return [f"text number {number}" for number in range(count)]


def embed(texts: Iterable[str], encoder: HashEncoder, to: VectorCache) -> list[Embedded]:
    return list(vectors_for(stream(texts), encoder, to))


def filled(path: Path, encoder: HashEncoder, count: int) -> list[str]:
    """A closed cache file with vectors for some texts."""
    texts = numbered(count)
    with VectorCache.open(path) as opened:
        embed(texts, encoder, opened)
        opened.read("PRAGMA wal_checkpoint(TRUNCATE)")
    return texts


def tamper(path: Path, sql: str, *parameters: object) -> None:
    """Changes the file as another program or a bad disk would."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(sql, parameters)
    connection.close()


REAL = [
    "Rust prevents data races at compile time.",
    "",
    "😀🎉🚀",
    "短い文章です。",
    "A wing in a slipstream. " * 5,
    "A wing in a slipstream. " * 100,
    "def main():\n    return 0\n",
    "a b c " * 20,
]


def cosines(one: Vectors, other: Vectors) -> Vectors:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / lengths  # type: ignore[no-any-return]


def model_like(tiny_folder: Path, folder: Path, kind: str) -> Path:
    """A model of another architecture and another head, with the tokenizer of the tiny one."""
    import torch
    import transformers
    from safetensors.torch import save_file

    shutil.copytree(tiny_folder, folder)
    sizes = {"vocab_size": 200, "max_position_embeddings": 66}
    usual = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config: Any
    if kind == "distilbert":
        config = transformers.DistilBertConfig(**sizes, dim=32, n_layers=2, n_heads=2, hidden_dim=64)
    elif kind == "mpnet":
        config = transformers.MPNetConfig(**sizes, **usual)
    elif kind == "modernbert":
        config = transformers.ModernBertConfig(**sizes, **usual, local_attention=8, pad_token_id=0)
    else:
        config = transformers.XLMRobertaConfig(**sizes, **usual, pad_token_id=0)
    torch.manual_seed(11)
    network = transformers.AutoModel.from_config(config)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    weights = {name: value.contiguous() for name, value in network.state_dict().items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config.save_pretrained(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    names = ["input_ids", "attention_mask"]
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if kind == "distilbert":  # the first token's vector, and not normalised
        pooling = {"word_embedding_dimension": 32, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        modules = json.loads((folder / "modules.json").read_text())
        (folder / "modules.json").write_text(json.dumps(modules[:2]))
    return folder
