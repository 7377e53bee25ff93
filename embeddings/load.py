"""Loads a model: finds its files, chooses the runtime, the precision and the prompts, and makes an encoder."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from chunksink.embeddings.encoder import ModelInfo, Precision
from chunksink.embeddings.errors import GraphUnavailable, GraphUnreadable, ModelUnsupported
from chunksink.embeddings.fingerprint import digest_of_files, file_digests, fingerprint_of_model
from chunksink.embeddings.graphs import graph_of, library_versions
from chunksink.embeddings.precision import choose_device, choose_precision
from chunksink.embeddings.resolve import ResolvedModel, default_model_cache, resolve_model
from chunksink.embeddings.settings import EncoderSettings
from chunksink.embeddings.tokens import ModelForm
from chunksink.embeddings.transformer import Runtime, TransformerEncoder

_log = logging.getLogger("chunksink.embeddings")


def load_encoder(
    settings: EncoderSettings,
    *,
    device: str | None = None,
    network: bool = True,
    token_budget: int | None = None,
    workers: int | None = None,
    model_cache: Path | None = None,
    use_graph: bool = True,
) -> TransformerEncoder:
    """An encoder for a sentence-transformers model, found by `resolve_model`.

    Prompts are the model's own unless they are set; "" switches one off. The setting `max_length` can only lower the
    model's own maximum.
    `token_budget` (tokens in one batch) and `workers` affect speed and memory only. On a processor, OpenVINO computes
    from a graph in `model_cache`; a missing graph is made first. sentence-transformers computes on a GPU, and wherever
    no graph can be made or `use_graph` is False; it cannot compute int8, which raises `ModelUnsupported`.
    """
    found = resolve_model(settings.model, network=network)
    model_cache = model_cache or default_model_cache()
    device = device or choose_device()
    precision = choose_precision(settings.precision, device)
    digests = file_digests(found.folder, model_cache)
    files = digest_of_files(digests)
    runtime, form, runtime_name = _runtime(found, files, precision, device, model_cache, use_graph)
    layout = form.layout
    if settings.max_length:
        layout = replace(layout, max_length=min(layout.max_length, settings.max_length))
    if layout.room < 1:
        raise ModelUnsupported(f"a maximum length of {layout.max_length} leaves no room for text")
    queries = form.query_prompt if settings.query_prompt is None else settings.query_prompt
    passages = form.passage_prompt if settings.passage_prompt is None else settings.passage_prompt
    fingerprinted: dict[str, Any] = {
        "max_length": layout.max_length,
        "long_texts": settings.long_texts,
        "prompts": {"query": queries, "passage": passages},
    }
    if settings.embed_context:  # without context, the fingerprint is the same as in earlier versions
        fingerprinted["context"] = settings.embed_context
    info = ModelInfo(
        name=found.name,
        fingerprint=fingerprint_of_model(found.folder, digests, fingerprinted),
        dimension=form.dimension,
        max_length=layout.max_length,
        precision=precision,
        requested=settings.precision,
        long_texts=settings.long_texts,
        query_prompt=queries,
        passage_prompt=passages,
        source=f"{found.source}:{found.folder}",
        device=device,
        runtime=runtime_name,
        libraries=library_versions(),
        files=files,
        index_dimension=_index_dimension(found, form.dimension, settings.dimensions),
        embed_context=settings.embed_context,
    )
    return TransformerEncoder(runtime, info, layout, token_budget=token_budget, workers=workers)


def _index_dimension(found: ResolvedModel, dimension: int, requested: int | None) -> int:
    """How many numbers of each vector are stored in an index; 0 means all.

    Raises `ModelUnsupported` if the model's config.json does not declare this dimension: search results would be poor.
    """
    if requested in (None, dimension):
        return 0
    file = found.folder / "config.json"
    declared = json.loads(file.read_bytes()).get("matryoshka_dimensions") if file.exists() else None
    if requested not in (declared or ()):
        possible = f"it declares {', '.join(map(str, declared))}" if declared else "it declares no shorter vectors"
        raise ModelUnsupported(
            f"{found.name} has no vectors of {requested} dimensions: {possible} (`matryoshka_dimensions` in its "
            "config.json). Leave `dimensions` out, or choose another model"
        )
    return requested or 0


def _runtime(
    found: ResolvedModel, files: str, precision: Precision, device: str, model_cache: Path, use_graph: bool
) -> tuple[Runtime, ModelForm, str]:
    """The runtime, the model's form, and the name of the runtime for reports."""
    reason = ""
    if device == "cpu" and use_graph:
        try:
            return *_with_graph(found, files, precision, model_cache), "openvino"
        except GraphUnavailable as error:
            reason = str(error)
    if precision == "int8":
        raise ModelUnsupported(
            f"{found.name} cannot be computed in int8: {reason or 'that needs OpenVINO on a processor'}. "
            "Remove the cause, or set the precision to auto"
        )
    if reason:
        _log.info("running %s with sentence-transformers: %s", found.name, reason)
    from chunksink.embeddings.torch_runtime import TorchRuntime, form_of, read_model

    model = read_model(found, device)
    return (
        TorchRuntime(model, precision, device),
        form_of(model, found),
        f"sentence-transformers ({reason})" if reason else "sentence-transformers",
    )


def _with_graph(found: ResolvedModel, files: str, precision: Precision, model_cache: Path) -> tuple[Runtime, ModelForm]:
    """Makes a graph again, once, if it cannot be loaded, as after an upgrade of OpenVINO."""
    from chunksink.embeddings.openvino_runtime import OpenVinoRuntime

    quantized = precision == "int8"
    folder, form = graph_of(found, files, model_cache, quantized=quantized)
    try:
        return OpenVinoRuntime(folder, precision), form
    except GraphUnreadable as error:
        _log.info("making the graph of %s again: %s", found.name, error)
    folder, form = graph_of(found, files, model_cache, quantized=quantized, renew=True)
    return OpenVinoRuntime(folder, precision), form
