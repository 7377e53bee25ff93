"""Makes a graph for OpenVINO: `python -m chunksink.embeddings.convert PARENT MODEL_FOLDER TARGET [FLOAT32_GRAPH]`.

The graph is the model's whole chain of modules, from token ids to the vector. Its vectors for the sample texts are
compared with those of sentence-transformers. With FLOAT32_GRAPH, that graph is converted to int8, and compared with the
result. PARENT is the id of the calling process. If that process ends, this one ends, too.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from chunksink.chunkbus.errors import extra_needed
from chunksink.chunkbus.shortage import shortage
from chunksink.embeddings.encoder import ModelInfo, Vectors
from chunksink.embeddings.errors import EmbeddingsError, EncoderOutOfMemory, GraphUnavailable, GraphUnreadable
from chunksink.embeddings.graphs import RECORD, REFUSED, Graph
from chunksink.embeddings.openvino_runtime import (
    GRAPH_FILE,
    OUT_OF_MEMORY,
    TOKENIZER_FILE,
    OpenVinoRuntime,
    import_openvino,
)
from chunksink.embeddings.resolve import ResolvedModel
from chunksink.embeddings.tokens import Arrays, ModelForm, TokenWindow, cut, padded
from chunksink.embeddings.transformer import TransformerEncoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MIN_COSINE = 0.9999
MIN_COSINE_IN_INT8 = 0.9
_NORM_TOLERANCE = 0.01
_WATCH_SECONDS = 0.5
_JOINED_LINES = 6
_LONG_LINES = 12
_TRANSIENT = (*OUT_OF_MEMORY, "No space left", "couldn't connect", "offline mode")
"""Messages of libraries about transient failures."""


def main(arguments: list[str]) -> int:
    folder, target, *source = map(Path, arguments)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # libraries print
            if source:
                quantize(source[0], target)
            else:
                convert(ResolvedModel(folder.name, folder, "folder"), target)
    except Exception as error:  # OpenVINO, NNCF, torch and the model's code raise any class
        words = str(error) if isinstance(error, EmbeddingsError) else f"it cannot be converted for OpenVINO: {error}"
        sys.stderr.write(f"{' '.join(words.split()):.300}\n")
        return 1 if _is_transient(error) else REFUSED
    return 0


def convert(found: ResolvedModel, target: Path) -> None:
    """Writes the float32 graph of a model, its tokenizer and its form into the folder `target`."""
    from chunksink.embeddings.torch_runtime import form_of, read_model

    model = read_model(found, "cpu")
    form = form_of(model, found)
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", None)
    if tokenizer is None:
        raise GraphUnavailable("its tokenizer is not from the library `tokenizers`")
    if any(getattr(module, "include_prompt", True) is False for module in model):
        raise GraphUnavailable("its pooling leaves out the prompt")
    tokenizer.save(str(target / TOKENIZER_FILE))
    _trace(model, form, target / GRAPH_FILE)
    (target / RECORD).write_bytes(msgspec.json.encode(form))
    texts = sample_texts()
    uneven = [" ".join(texts[:_LONG_LINES]), texts[0]]  # the second one is mostly padding beside the first
    for sample, token_budget in ((texts, None), (uneven, sys.maxsize)):
        theirs = model.encode(sample, prompt="", show_progress_bar=False)
        _compare(_vectors(target, form, sample, token_budget), theirs, MIN_COSINE)


def quantize(source: Path, target: Path) -> None:
    """Writes an int8 graph, made from a float32 one and calibrated with the sample texts."""
    openvino = import_openvino()
    try:
        import nncf
    except ImportError as error:
        raise GraphUnavailable(f"NNCF is not installed: {extra_needed('int8')}") from error
    form = msgspec.json.decode((source / RECORD).read_bytes(), type=Graph).form
    runtime = OpenVinoRuntime(source, "float32")
    texts = sample_texts()
    graph = nncf.quantize(
        openvino.Core().read_model(source / GRAPH_FILE),
        nncf.Dataset([_inputs(runtime, form, [text]) for text in texts]),
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=len(texts),
    )
    openvino.save_model(graph, target / GRAPH_FILE, compress_to_fp16=False)
    shutil.copyfile(source / TOKENIZER_FILE, target / TOKENIZER_FILE)
    (target / RECORD).write_bytes(msgspec.json.encode(form))
    _compare(_vectors(target, form, texts), _vectors(source, form, texts), MIN_COSINE_IN_INT8)


def sample_texts() -> list[str]:
    """Texts in several languages, and longer texts that join several of these."""
    lines = Path(__file__).with_name("sample_texts.txt").read_text(encoding="utf-8").splitlines()
    longer = [" ".join(lines[start : start + _JOINED_LINES]) for start in range(0, len(lines) - _JOINED_LINES, 2)]
    return [*lines, *longer]


def _trace(model: SentenceTransformer, form: ModelForm, file: Path) -> None:
    import torch

    openvino = import_openvino()

    class Chain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.chain = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            features = {"input_ids": input_ids, "attention_mask": attention_mask}
            if token_type_ids is not None:
                features["token_type_ids"] = token_type_ids
            return self.chain(features)["sentence_embedding"]

    longer = TokenWindow(0, [*form.layout.prefix, *range(20, 31), *form.layout.suffix])
    shorter = TokenWindow(1, longer.ids[:7])  # so that padding is traced too
    example = {name: torch.from_numpy(array) for name, array in padded([longer, shorter], form.layout).items()}
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        graph = openvino.convert_model(Chain(), example_input=example)
    openvino.save_model(graph, file, compress_to_fp16=False)


def _inputs(runtime: OpenVinoRuntime, form: ModelForm, texts: list[str]) -> Arrays:
    pieces = [
        TokenWindow(position, cut(ids, 0, form.layout, "truncate")[0])
        for position, ids in enumerate(runtime.token_ids(texts))
    ]
    return padded(pieces, form.layout)


def _vectors(folder: Path, form: ModelForm, texts: list[str], token_budget: int | None = None) -> Vectors:
    runtime = OpenVinoRuntime(folder, "float32")
    info = ModelInfo("", "", form.dimension, form.layout.max_length, "float32", "float32", "truncate")
    with contextlib.closing(TransformerEncoder(runtime, info, form.layout, token_budget=token_budget)) as encoder:
        return encoder.encode(texts)


def _compare(ours: Vectors, theirs: Vectors, least: float) -> None:
    """Refuses a graph whose vectors `ours` differ too much from the vectors that it should compute."""
    norms, expected = np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1)
    cosines = (ours * theirs).sum(axis=1) / (norms * expected)
    if not (cosines.min() >= least and np.allclose(norms, expected, rtol=_NORM_TOLERANCE)):
        ratios = norms / expected
        raise GraphUnavailable(
            f"its vectors differ too much: lowest cosine {cosines.min():.5f}, lengths {ratios.min():.3f} to "
            f"{ratios.max():.3f} times what they should be"
        )


def _is_transient(error: BaseException | None) -> bool:
    """Whether the machine caused the failure, not the model: too little memory or disk space, no network."""
    while error is not None:
        is_system_error = isinstance(error, OSError) and error.errno is not None
        if is_system_error or isinstance(error, EncoderOutOfMemory | ConnectionError) or shortage(error) is not None:
            return True
        if isinstance(error, GraphUnreadable):  # made with other versions of the libraries: not the model's fault
            return True
        if any(words in str(error) for words in _TRANSIENT):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end_with_parent(parent: int) -> None:
    """Ends this process when its parent has ended, even by a kill."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
