"""The machine and the versions that a run is measured with."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.processes import ROOT
from tools import engines

_PACKAGES = ("chunksink", "chromadb", "torch", "sentence-transformers", "langchain-core", "llama-index-core")


def description() -> dict[str, Any]:
    return {
        "commit": commit(),
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
            "load_before": round(os.getloadavg()[0], 2),
        },
        "python": platform.python_version(),
        "versions": {
            **{name: version(name) for name in _PACKAGES},
            "sqlite": sqlite3.sqlite_version,
            "meilisearch": engines.MEILISEARCH_VERSION,
        },
    }


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _processor() -> str:
    """The processor's name, and its instructions for bfloat16, on which the speed of the model depends."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    name = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    features = [feature for feature in ("amx_bf16", "avx512_bf16") if re.search(rf"\b{feature}\b", text)]
    return (name[1] if name else platform.machine()) + (f" with {' and '.join(features)}" if features else "")
