"""Starts Ray on this machine, or connects to a cluster, when it is first needed.

Ray that was started here ends with the run. It sends no usage statistics, shows no dashboard and prints nothing.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

from chunksink.chunkbus.errors import ExtraMissing, extra_needed
from chunksink.rebuild.errors import ComputeError
from chunksink.settings.errors import ConfigError
from chunksink.settings.ray import RayOptions

_STORE_BYTES = 128 * 2**20
"""Size of the object store. It holds reports of validated ranges, never vectors."""
_MAX_FOLDER_LENGTH = 20
"""Longest path of the parent of Ray's folder. The paths of Ray's sockets begin with it, and are limited to 107
characters."""
_ANSWER_SECONDS = 10.0
T = TypeVar("T")


class Cluster:
    """Ray, started or connected on first use."""

    def __init__(self, options: RayOptions) -> None:
        self._options = options
        self._ray: Any = None
        self._owned = False
        self._folder: str | None = None

    def connect(self) -> Any:
        """The module `ray`, connected."""
        if self._ray is None:
            ray = _import_ray()
            if not ray.is_initialized():  # if the calling program has connected to Ray, its connection is used
                self._start(ray)
                self._owned = True
            self._ray = ray
        return self._ray

    def close(self) -> None:
        """End Ray if it was started here, or the connection to a cluster."""
        ray, self._ray = self._ray, None
        if ray is not None and self._owned:
            ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def examine(self) -> str:
        """Where Ray runs. ComputeError if nothing answers at its address. Neither starts Ray nor joins a cluster."""
        version, address = _import_ray().__version__, self._options.address
        if address is None:
            return f"Ray {version} starts on this machine for each run that needs it"
        _require_reachable(address)
        return f"Ray {version}; a cluster answers at {address}"

    def slots(self) -> int:
        """How many workers the cluster would have room for if nothing else ran on it."""
        ray, gpus = self.connect(), self._options.gpus_per_worker
        resources = ray.cluster_resources()
        if self._options.address is None and (found := resources.get("GPU", 0)) < gpus:
            raise ConfigError(f"Ray finds {found:g} GPUs on this machine: lower --gpus-per-worker or leave it out")
        return max(1, int(resources.get("GPU", 0) // gpus if gpus else resources.get("CPU", 1)))

    def _start(self, ray: Any) -> None:
        address = self._options.address
        options: dict[str, Any] = {"address": address}
        if address is None:
            self._folder = tempfile.mkdtemp(prefix="ray-", dir=_short_folder())
            options = {
                "address": "local",
                "num_cpus": self._options.workers or os.cpu_count(),
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_temp_dir": self._folder,
            }
        else:
            _require_reachable(address)
        on_sigterm = signal.getsignal(signal.SIGTERM)  # Ray replaces it
        # Ray prints the death of a worker on standard output, where a command may print one JSON document.
        ray._private.worker.print_to_stdstream = lambda *_message, **_options: None
        try:
            ray.init(log_to_driver=False, logging_level=logging.CRITICAL, **options)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            where = "on this machine" if address is None else f"at {address}"
            raise ComputeError(f"cannot use Ray {where}: {first_line(error)}") from error
        finally:
            if on_sigterm is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, on_sigterm)


class RayExecutor(Executor):
    """Runs functions as tasks on Ray. The result of a failed task is None; the caller then does that work itself."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._remote: dict[Any, Any] = {}

    def submit(self, function: Callable[..., T], /, *args: Any, **named: Any) -> Future[T | None]:  # type: ignore[override]
        remote = self._remote.get(function)
        if remote is None:
            remote = self._remote[function] = self._ray.remote(function)
        outcome: Future[T | None] = Future()

        def take(task: Future[T]) -> None:
            outcome.set_result(None if task.exception() is not None else task.result())

        remote.remote(*args, **named).future().add_done_callback(take)
        return outcome


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else a warning about a future version
    try:
        import ray
    except ImportError as error:
        raise ExtraMissing(f"the engine `ray` needs Ray: {extra_needed('ray')}") from error
    return ray


def _require_reachable(address: str) -> None:
    """Raises ComputeError if nothing answers there. Ray itself would try for minutes."""
    try:
        at = _import_ray()._private.services.canonicalize_bootstrap_address("auto") if address == "auto" else address
        host, _, port = str(at).removeprefix("ray://").rpartition(":")
        if not port.isdecimal():
            return
        socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ComputeError(f"cannot use Ray at {address}: {getattr(error, 'strerror', None) or error}") from error


def first_line(error: object) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _short_folder() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _MAX_FOLDER_LENGTH else "/tmp"
