"""Runs models with OpenVINO, and computes token ids with `tokenizers`. Imports neither torch nor transformers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from chunksink.embeddings.encoder import Precision, Vectors
from chunksink.embeddings.errors import GraphUnavailable, GraphUnreadable
from chunksink.embeddings.precision import has_bfloat16
from chunksink.embeddings.tokens import Arrays

GRAPH_FILE, TOKENIZER_FILE = "model.xml", "tokenizer.json"
_TOKEN_BUDGET = 1024
_STEPS: dict[Precision, int] = {"float32": 1, "bfloat16": 16, "int8": 16}
"""Batches are padded to a multiple of this many tokens. AMX multiplies tiles of 16 rows, and OpenVINO prepares its
kernels again whenever the shape changes. Without padding, queries took 1.3 to 1.5 times as long, and texts of equal
length took 1.1 to 1.2 times as long."""
_starting = threading.Lock()
OUT_OF_MEMORY = ("bad_alloc", "allocate memory", "out of memory")


class OpenVinoRuntime:
    """A graph on the processor. Each core computes its own batch."""

    token_budget = _TOKEN_BUDGET

    def __init__(self, folder: Path, precision: Precision) -> None:
        """Loads a graph from its folder. The parts of an int8 graph that are not int8 are computed in bfloat16 if the
        hardware supports it, else in float32."""
        from tokenizers import Tokenizer

        openvino = import_openvino()
        in_bfloat16 = precision == "bfloat16" or (precision == "int8" and has_bfloat16("cpu"))
        settings = {
            "INFERENCE_PRECISION_HINT": "bf16" if in_bfloat16 else "f32",
            "PERFORMANCE_HINT": "THROUGHPUT",
            "ENABLE_CPU_PINNING": False,  # other processes need the cores, too
        }
        try:
            self._graph = openvino.Core().compile_model(folder / GRAPH_FILE, "CPU", settings)
        except RuntimeError as error:
            kind = GraphUnavailable if self.was_out_of_memory(error) else GraphUnreadable
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]  # the lines above it are a trace
            raise kind(f"OpenVINO cannot load it: {reason}") from error
        self.width_step = _STEPS[precision]
        self.workers: int = self._graph.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        self._inputs = {name for each in self._graph.inputs for name in each.names}
        try:
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # tokenizers raises plain Exception
            raise GraphUnreadable(f"this version of tokenizers cannot read its tokenizer: {error}") from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._per_thread = threading.local()

    def token_ids(self, texts: list[str]) -> list[list[int]]:
        return [encoded.ids for encoded in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

    def vectors(self, arrays: Arrays, prompt_length: int) -> Vectors:
        request = getattr(self._per_thread, "request", None)
        if request is None:
            request = self._per_thread.request = self._graph.create_infer_request()
        inputs = {name: array for name, array in arrays.items() if name in self._inputs}
        vectors: Vectors = request.infer(inputs, share_inputs=True)[0]
        return vectors

    def preparing_threads(self, workers: int) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)

    def was_out_of_memory(self, error: Exception) -> bool:
        return isinstance(error, MemoryError) or any(words in str(error) for words in OUT_OF_MEMORY)


def import_openvino() -> Any:
    """Imports OpenVINO without telemetry.

    OpenVINO and NNCF send reports with the module `openvino_telemetry`, so its import is blocked.
    """
    modules: dict[str, Any] = sys.modules
    modules["openvino_telemetry"] = None
    try:
        import openvino
    except (ImportError, OSError) as error:
        raise GraphUnavailable(f"OpenVINO cannot be imported ({error})") from error
    with _starting:  # the first array initialises the bindings to numpy; two threads at once would deadlock
        _ = openvino.Tensor(np.zeros(1, dtype=np.float32)).data
    return openvino
