"""Runs models with torch and sentence-transformers: on GPUs, and if OpenVINO has no graph of a model."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from chunksink.embeddings.encoder import Precision, Vectors
from chunksink.embeddings.errors import EncoderOutOfMemory, ModelUnsupported
from chunksink.embeddings.resolve import ResolvedModel
from chunksink.embeddings.tokens import Arrays, Layout, ModelForm

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

# Models whose prompts are documented only in their model cards. The prompts in a model's configuration take precedence.
# The instructed E5 needs another prompt for every task, so it has none here.
_KNOWN_PROMPTS = tuple(
    (re.compile(rf"(?:^|[/_ ]){name}", re.IGNORECASE), query, passage)
    for name, query, passage in (
        (r"(?:multilingual-)?e5-(?:small|base|large)\b.*instruct", "", ""),
        (r"(?:multilingual-)?e5-(?:small|base|large)\b", "query: ", "passage: "),
        (r"bge-(?:small|base|large)-en\b", "Represent this sentence for searching relevant passages: ", ""),
        (r"bge-(?:small|base|large)-zh\b", "为这个句子生成表示以用于检索相关文章：", ""),
    )
)
# The name of a model, or of its base model, in a model card: in the front matter, then in the title.
_CARD_NAMES = (
    re.compile(r"^model-index:\s*-\s*name:(.+)$", re.MULTILINE),
    re.compile(r"^base_model:\s*(?:-\s)?(.+)$", re.MULTILINE),
    re.compile(r"^#{1,2} (.+)$", re.MULTILINE),
)
_UNBOUNDED = 1_000_000
_CPU_BUDGET = 1024
_GPU_BUDGET = 65536
# Words for "out of memory" in messages of the allocators for processor and GPU, and of cuBLAS.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "_STATUS_ALLOC_FAILED")
_GPU_LIBRARIES = ("cuDNN", "CUBLAS", "mha_graph.execute")
_LITTLE_FREE_BYTES = 2**28


class TorchRuntime:
    """A model from `read_model`. With precision bfloat16, only matrix multiplications are computed in bfloat16.

    Sums, norms, pooling and the residual stream stay float32. That is as fast as converting the whole model, with a
    tenth of its error (1 minus the cosine to the float32 vector).
    """

    width_step = 1

    def __init__(self, model: SentenceTransformer, precision: Precision, device: str) -> None:
        import torch

        self._model = model
        self._device = device
        self._narrow = precision == "bfloat16"
        self._tokenizer_lock = threading.Lock()
        self.workers = torch.get_num_threads() if device == "cpu" else 1
        self.token_budget = _CPU_BUDGET if device == "cpu" else _GPU_BUDGET
        if self._narrow:
            for module in model.modules():
                if isinstance(module, torch.nn.Linear):
                    module.to(torch.bfloat16)

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        with self._tokenizer_lock:  # a call changes the tokenizer's own settings
            encoded = self._model.tokenizer(
                texts,
                add_special_tokens=False,
                truncation=False,
                padding=False,
                return_attention_mask=False,
                return_token_type_ids=False,
                verbose=False,
            )
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def vectors(self, arrays: Arrays, prompt_length: int) -> Vectors:
        import torch

        features: dict[str, Any] = {name: torch.from_numpy(array).to(self._device) for name, array in arrays.items()}
        if prompt_length:
            features["prompt_length"] = prompt_length
        kind = self._device.partition(":")[0]
        with torch.inference_mode(), torch.autocast(kind, dtype=torch.bfloat16, enabled=self._narrow):
            embedding = self._model(features)["sentence_embedding"]
        vectors: Vectors = embedding.float().cpu().numpy()
        return vectors

    @contextmanager
    def preparing_threads(self, workers: int) -> Iterator[Callable[[], None]]:
        """Each thread gets its share of the cores."""
        import torch

        cores = torch.get_num_threads()

        def take_share() -> None:
            torch.get_num_threads()  # a thread's first call resets its count, so it must come before the next line
            torch.set_num_threads(max(1, cores // workers))

        try:
            yield take_share
        finally:
            # `set_num_threads` is for one thread, but it also sets the count with which later threads begin.
            torch.set_num_threads(cores)

    def was_out_of_memory(self, error: Exception) -> bool:
        """Whether memory ran out. On a GPU, libraries may report only a general failure: that counts, too, if hardly
        any memory is free."""
        if not self._device.startswith("cuda"):
            return _is_out_of_memory(error)
        import torch

        torch.cuda.empty_cache()
        is_general = any(library in str(error) for library in _GPU_LIBRARIES)
        return _is_out_of_memory(error) or (
            is_general and torch.cuda.mem_get_info(self._device)[0] < _LITTLE_FREE_BYTES
        )


def read_model(found: ResolvedModel, device: str) -> SentenceTransformer:
    """The model as its library loads it, in float32."""
    with _loading(found, device):
        import torch
        from sentence_transformers import SentenceTransformer

        options: dict[str, Any] = {"local_files_only": True, "model_kwargs": {"dtype": torch.float32}}
        return SentenceTransformer(str(found.folder), device=device, **options).eval()


def read_cross_encoder(found: ResolvedModel, device: str) -> CrossEncoder:
    """A model that scores pairs of texts."""
    with _loading(found, device):
        import torch
        from sentence_transformers import CrossEncoder

        architectures = json.loads((found.folder / "config.json").read_bytes()).get("architectures") or []
        if not any("ForSequenceClassification" in name for name in architectures):
            raise ModelUnsupported(f"{found.name} is not a cross-encoder: it computes no score for two texts")
        options: dict[str, Any] = {"local_files_only": True, "model_kwargs": {"dtype": torch.float32}}
        model: CrossEncoder = CrossEncoder(str(found.folder), device=device, **options)
        return model


@contextmanager
def _loading(found: ResolvedModel, device: str) -> Iterator[None]:
    """Translates the errors of all libraries that read a model, and hides their progress bar."""
    try:
        from safetensors import SafetensorError

        with _quiet():
            yield
    except (OSError, ValueError, KeyError, ImportError) as exc:
        raise ModelUnsupported(f"cannot load the model {found.name} from {found.folder}: {exc}") from exc
    except (RuntimeError, EOFError, SafetensorError, UnpicklingError) as exc:
        if _is_out_of_memory(exc):
            hint = "" if device == "cpu" else "; close programs that use it, or hide it with CUDA_VISIBLE_DEVICES="
            raise EncoderOutOfMemory(f"the model {found.name} does not fit into the memory of {device}{hint}") from exc
        raise ModelUnsupported(
            f"the weights in {found.folder} are truncated, or do not belong to its config.json ({exc}); "
            "copy the model again"
        ) from exc


def form_of(model: SentenceTransformer, found: ResolvedModel) -> ModelForm:
    """The form of a loaded model; ModelUnsupported if it is not a text encoder."""
    dimension = model.get_embedding_dimension()
    if dimension is None:
        raise ModelUnsupported(f"{found.name} does not state the dimension of its vectors")
    return ModelForm(_layout(model), dimension, *_prompts(model, found.folder))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides the progress bar for weights."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _layout(model: SentenceTransformer) -> Layout:
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    if type(model[0]).__name__ != "Transformer" or not callable(tokenizer):
        raise ModelUnsupported(
            f"the model begins with {type(model[0]).__name__}; only text transformers with a tokenizer are supported"
        )
    plain: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: list[int] = tokenizer("a")["input_ids"]
    starts = [n for n in range(len(whole) - len(plain) + 1) if whole[n : n + len(plain)] == plain]
    if not plain or not starts:
        raise ModelUnsupported("the tokenizer does not put its special tokens around the text")
    own = model.max_seq_length or getattr(tokenizer, "model_max_length", None) or _UNBOUNDED
    if own >= _UNBOUNDED:
        own = getattr(getattr(model[0], "config", None), "max_position_embeddings", None) or 512
    return Layout(
        prefix=tuple(whole[: starts[0]]),
        suffix=tuple(whole[starts[0] + len(plain) :]),
        max_length=own,
        pad_id=tokenizer.pad_token_id or 0,
        pad_left=tokenizer.padding_side == "left",
        token_types="token_type_ids" in tokenizer.model_input_names,
    )


def _prompts(model: SentenceTransformer, folder: Path) -> tuple[str, str]:
    own: dict[str, str] = dict(getattr(model, "prompts", None) or {})
    query, passage = own.get("query", ""), own.get("document") or own.get("passage", "")
    if query or passage:
        return query, passage
    for name in _names_in(folder):
        for known, known_query, known_passage in _KNOWN_PROMPTS:
            if known.search(name):
                return known_query, known_passage
    return "", ""


def _names_in(folder: Path) -> Iterator[str]:
    """The names of the model in its files, the most reliable first. The folder's name may be anything."""
    try:
        card = (folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        card = ""
    for names in _CARD_NAMES:
        if found := names.search(card):
            yield found[1].strip(" \"'")
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return
    if isinstance(name := config.get("_name_or_path"), str):
        yield name


def _is_out_of_memory(error: Exception) -> bool:
    """Whether a library reports that memory ran out."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return any(words in str(error) for words in _OUT_OF_MEMORY)
