"""Chooses the precision and the device to compute with."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from chunksink.embeddings.encoder import Precision, PrecisionRequest

# Flags of processors that compute bfloat16: two of x86 (AVX-512 and AMX) and one of Arm.
_BFLOAT16_FLAGS = frozenset(("avx512_bf16", "amx_bf16", "bf16"))
_LIMITS_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Values of ONEDNN_MAX_CPU_ISA, by which a user keeps OpenVINO and torch from using newer instructions."""
_GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def choose_device() -> str:
    """The GPU if there is one. torch is imported only if there may be one, because that takes seconds."""
    if not _may_have_gpu():
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _may_have_gpu() -> bool:
    try:
        if version("torch").endswith("+cpu"):
            return False
    except PackageNotFoundError:
        return False
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    return any(Path(file).exists() for file in _GPU_FILES)


def choose_precision(request: PrecisionRequest, device: str) -> Precision:
    """The requested precision. `auto` is bfloat16 if the hardware supports it, else float32."""
    if request != "auto":
        return request
    return "bfloat16" if has_bfloat16(device) else "float32"


def has_bfloat16(device: str) -> bool:
    """Whether the device computes bfloat16 in hardware, not only by emulation."""
    if device.startswith("cuda"):
        import torch

        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu" or os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in _LIMITS_WITHOUT_BFLOAT16:
        return False
    return not _BFLOAT16_FLAGS.isdisjoint(_cpu_flags())


def lacks_avx2() -> bool:
    """Whether this is an x86 processor without AVX2: OpenVINO loads a model there, but fails when it computes."""
    flags = _cpu_flags()
    return "sse2" in flags and "avx2" not in flags


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
