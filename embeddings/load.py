"""Loads a model and makes an encoder of it: find it, read it, settle precision and prompts, take its fingerprint."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from chunksink.embeddings.attention import set_attention
from chunksink.embeddings.encoder import LongTexts, ModelInfo, PrecisionRequest
from chunksink.embeddings.errors import EncoderOutOfMemory, ModelUnsupported
from chunksink.embeddings.fingerprint import digest_of_files, fingerprint_of_model
from chunksink.embeddings.precision import choose_device, choose_precision, has_vector_bfloat16, set_precision
from chunksink.embeddings.resolve import DEFAULT_MODEL, ResolvedModel, resolve_model
from chunksink.embeddings.tokens import Layout
from chunksink.embeddings.transformer import TransformerEncoder, is_out_of_memory

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# Models whose prompts stand in their description only; a model's own configuration goes before this. The instructed E5
# wants another prompt for every task, so it has none here.
_KNOWN_PROMPTS = tuple(
    (re.compile(rf"(?:^|[/_ ]){name}", re.IGNORECASE), query, passage)
    for name, query, passage in (
        (r"(?:multilingual-)?e5-(?:small|base|large)\b.*instruct", "", ""),
        (r"(?:multilingual-)?e5-(?:small|base|large)\b", "query: ", "passage: "),
        (r"bge-(?:small|base|large)-en\b", "Represent this sentence for searching relevant passages: ", ""),
        (r"bge-(?:small|base|large)-zh\b", "为这个句子生成表示以用于检索相关文章：", ""),
    )
)
# What a model card calls its model, or the model it was made from: in its head, then in its title.
_CARD_NAMES = (
    re.compile(r"^model-index:\s*-\s*name:(.+)$", re.MULTILINE),
    re.compile(r"^base_model:\s*(?:-\s)?(.+)$", re.MULTILINE),
    re.compile(r"^#{1,2} (.+)$", re.MULTILINE),
)
_UNBOUNDED = 1_000_000
_CPU_BUDGET = 1024
_GPU_BUDGET = 65536


@contextmanager
def _uncollected() -> Iterator[None]:
    """Libraries and weights come to stay, half a million objects: to look through them for garbage again and again
    while they come takes a fifth of the load."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@_uncollected()
def load_encoder(
    name: str = DEFAULT_MODEL,
    *,
    precision: PrecisionRequest = "auto",
    long_texts: LongTexts = "windows",
    query_prompt: str | None = None,
    passage_prompt: str | None = None,
    max_length: int | None = None,
    device: str | None = None,
    network: bool = True,
    token_budget: int | None = None,
    workers: int | None = None,
) -> TransformerEncoder:
    """An encoder for a sentence-transformers model, found as `resolve_model` says.

    Prompts are the model's own unless given; "" switches one off. `max_length` can only lower the model's.
    `token_budget` (tokens in one batch) and `workers` decide speed and memory only.
    """
    found = resolve_model(name, network=network)
    with _importing():
        import torch  # slow to import

    device = device or choose_device()
    taken = choose_precision(precision, device)
    model = _read(found, device)
    layout = _layout(model, max_length)
    own_query, own_passage = _prompts(model, found.folder)
    queries = own_query if query_prompt is None else query_prompt
    passages = own_passage if passage_prompt is None else passage_prompt
    fingerprint = fingerprint_of_model(
        found.folder,
        max_length=layout.max_length,
        long_texts=long_texts,
        query_prompt=queries,
        passage_prompt=passages,
    )
    set_precision(model, taken)
    if taken == "bfloat16" and has_vector_bfloat16(device):
        set_attention(model)
    dimension = model.get_embedding_dimension()
    if dimension is None:
        raise ModelUnsupported(f"{found.name} does not say how many dimensions its vectors have")
    info = ModelInfo(
        name=found.name,
        fingerprint=fingerprint,
        dimension=dimension,
        max_length=layout.max_length,
        precision=taken,
        requested=precision,
        long_texts=long_texts,
        query_prompt=queries,
        passage_prompt=passages,
        source=f"{found.source}:{found.folder}",
        device=device,
        libraries=library_versions(),
        files=digest_of_files(found.folder),
    )
    cpu = device == "cpu"
    return TransformerEncoder(
        model,
        info,
        layout,
        token_budget=token_budget or (_CPU_BUDGET if cpu else _GPU_BUDGET),
        workers=workers or (torch.get_num_threads() if cpu else 1),
    )


def _read(found: ResolvedModel, device: str) -> SentenceTransformer:
    with _importing():
        import torch
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer

    try:
        with _quiet():
            model = SentenceTransformer(
                str(found.folder), device=device, local_files_only=True, model_kwargs={"dtype": torch.float32}
            )
    except (OSError, ValueError, KeyError, ImportError) as exc:
        raise ModelUnsupported(f"cannot load the model {found.name} from {found.folder}: {exc}") from exc
    except (RuntimeError, EOFError, SafetensorError, UnpicklingError) as exc:
        if is_out_of_memory(exc):
            hint = "" if device == "cpu" else "; end what else uses it, or hide it with CUDA_VISIBLE_DEVICES="
            raise EncoderOutOfMemory(f"the model {found.name} does not fit into the memory of {device}{hint}") from exc
        raise ModelUnsupported(
            f"the weights in {found.folder} are cut off, or do not belong to its config.json ({exc}); "
            "copy the model again"
        ) from exc
    return model.eval()


@contextmanager
def _importing() -> Iterator[None]:
    try:
        yield
    except (ImportError, OSError) as exc:
        raise ModelUnsupported(
            f"the libraries that models are computed with cannot be loaded ({exc}); install torch and "
            "sentence-transformers again"
        ) from exc


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bar while weights are read: libraries never print."""
    from transformers.utils import logging

    bars: Any = logging
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


def _layout(model: SentenceTransformer, max_length: int | None) -> Layout:
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    if type(model[0]).__name__ != "Transformer" or not callable(tokenizer):
        raise ModelUnsupported(
            f"the model begins with {type(model[0]).__name__}; only text transformers with a tokenizer can be driven"
        )
    plain: list[int] = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole: list[int] = tokenizer("a")["input_ids"]
    starts = [n for n in range(len(whole) - len(plain) + 1) if whole[n : n + len(plain)] == plain]
    if not plain or not starts:
        raise ModelUnsupported("the tokenizer does not put its special tokens around the text")
    own = model.max_seq_length or getattr(tokenizer, "model_max_length", None) or _UNBOUNDED
    if own >= _UNBOUNDED:
        own = getattr(getattr(model[0], "config", None), "max_position_embeddings", None) or 512
    layout = Layout(
        prefix=tuple(whole[: starts[0]]),
        suffix=tuple(whole[starts[0] + len(plain) :]),
        max_length=min(own, max_length) if max_length else own,
        pad_id=tokenizer.pad_token_id or 0,
        pad_left=tokenizer.padding_side == "left",
        token_types="token_type_ids" in tokenizer.model_input_names,
    )
    if layout.room < 1:
        raise ModelUnsupported(f"a maximum length of {layout.max_length} leaves no room for text")
    return layout


def _prompts(model: SentenceTransformer, folder: Path) -> tuple[str, str]:
    own: dict[str, str] = dict(getattr(model, "prompts", None) or {})
    query, passage = own.get("query", ""), own.get("document") or own.get("passage", "")
    if query or passage:
        return query, passage
    for name in _names(folder):
        for known, known_query, known_passage in _KNOWN_PROMPTS:
            if known.search(name):
                return known_query, known_passage
    return "", ""


def _names(folder: Path) -> Iterator[str]:
    """What the model's own files call it, the surest first. What its folder is called depends on whoever copied it."""
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


def library_versions() -> dict[str, str]:
    """Of all that decides what a model's vectors are, besides its files."""
    versions = {}
    for library in ("torch", "sentence-transformers", "transformers", "tokenizers"):
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    return versions
