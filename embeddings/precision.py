"""Which precision and device to compute with, and how a model is set to them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunksink.embeddings.encoder import Precision, PrecisionRequest

if TYPE_CHECKING:
    import torch

# As the processor names them: x86 (AVX-512 or AMX), Arm.
_CPU_FLAGS = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
_VECTOR_FLAG, _MATRIX_FLAG = "avx512_bf16", "amx_bf16"


def choose_device() -> str:
    """The GPU when there is one."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_precision(request: PrecisionRequest, device: str) -> Precision:
    """`auto` takes bfloat16 where the hardware computes it; an explicit request is always met."""
    if request != "auto":
        return request
    return "bfloat16" if has_bfloat16(device) else "float32"


def has_bfloat16(device: str) -> bool:
    """Whether the device has bfloat16 in hardware, not only emulated."""
    if device.startswith("cuda"):
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device == "cpu" and not _CPU_FLAGS.isdisjoint(_cpu_flags())


def has_vector_bfloat16(device: str) -> bool:
    """Whether only the vector units of the processor have it, not its matrix units."""
    flags = _cpu_flags()
    return device == "cpu" and _VECTOR_FLAG in flags and _MATRIX_FLAG not in flags


def _cpu_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(
        flag
        for line in lines
        if line.partition(":")[0].strip() in ("flags", "Features")
        for flag in line.partition(":")[2].split()
    )


def set_precision(model: torch.nn.Module, precision: Precision) -> None:
    """Makes the matrix multiplications compute in bfloat16; `computing_in` does the rest.

    Only the weights of linear layers are converted: sums, norms, pooling and the residual stream stay float32.
    It costs nothing in speed, and the cosine to float32 is an order of magnitude nearer to 1 than that of a
    model converted whole.
    """
    import torch

    if precision == "bfloat16":
        for module in model.modules():
            if isinstance(module, torch.nn.Linear):
                module.to(torch.bfloat16)


def computing_in(precision: Precision, device: str) -> Any:
    """The context in which the model must be called."""
    import torch

    kind = device.partition(":")[0]
    return torch.autocast(kind, dtype=torch.bfloat16, enabled=precision == "bfloat16")
