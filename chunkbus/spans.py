"""OpenTelemetry spans of runs and searches, if the OTEL_ variables ask for them; else nothing is imported.

Spans have names and numbers, but never texts of documents or queries. A background thread sends them. An exporter that
does not respond delays only the end of the process, by at most two seconds.
"""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from importlib.metadata import entry_points
from threading import Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from chunksink.chunkbus.errors import extra_needed

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Tracer

P = ParamSpec("P")
T = TypeVar("T")

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
_OF_EXTRA = "otlp_proto_grpc"
"""The exporter that the extra `otel` installs."""
_FLUSH_SECONDS = 2.0
_OFF = nullcontext()
_log = logging.getLogger("chunksink.spans")


def span(name: str, **attributes: str | int) -> AbstractContextManager[None]:
    """A span around the block, below the current one."""
    tracer = _tracer()
    return _OFF if tracer is None else _open(tracer, name, attributes)


def annotate(**attributes: str | int) -> None:
    """Add attributes to the current span."""
    if _tracer() is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(attributes)


def within_span(work: Callable[P, T]) -> Callable[P, T]:
    """The function, prepared for another thread: spans that it opens are children of the current span."""
    return work if _tracer() is None else partial(copy_context().run, work)


@contextmanager
def _open(tracer: "Tracer", name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
    # Messages of errors may name sources, so only their class is recorded.
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            raise


@cache
def _tracer() -> "Tracer | None":
    """The tracer of the provider that the program has set, else of one that the variables configure. None unless the
    variables ask for traces."""
    if not _is_configured(os.environ):
        return None
    try:
        from opentelemetry import trace

        provider = trace.get_tracer_provider()
        if isinstance(provider, trace.ProxyTracerProvider):
            provider = _provider()
        return provider.get_tracer("chunksink")
    except Exception as error:  # a missing package, or an exporter that is unknown or refuses its variables
        remedy = extra_needed("otel") if isinstance(error, ImportError) else "correct the OTEL_ variables"
        _log.warning("warning: no traces are sent: %s; %s", error, remedy)
        return None


def _is_configured(environment: Mapping[str, str]) -> bool:
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not is_off and environment.get("OTEL_TRACES_EXPORTER") != "none" and any(map(environment.get, _VARIABLES))


def _provider() -> "TracerProvider":
    import atexit

    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # it repeats every failure
    name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "chunksink"}
    provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_exporter(os.environ)))
    atexit.register(_flush, provider)
    return provider


def _exporter(environment: Mapping[str, str]) -> "SpanExporter":
    name = environment.get("OTEL_TRACES_EXPORTER") or "otlp"
    if name == "otlp":
        protocols = (environment.get(f"OTEL_EXPORTER_OTLP{of}_PROTOCOL") for of in ("_TRACES", ""))
        name = "otlp_proto_http" if next(filter(None, protocols), "") == "http/protobuf" else _OF_EXTRA
    found = entry_points(group="opentelemetry_traces_exporter", name=name)
    if not found:
        raise (ImportError if name == _OF_EXTRA else LookupError)(f"the exporter {name} is not installed")
    exporter: SpanExporter = next(iter(found)).load()()
    return exporter


def _flush(provider: "TracerProvider") -> None:
    sending = Thread(target=provider.shutdown, daemon=True)
    sending.start()
    sending.join(_FLUSH_SECONDS)
    if sending.is_alive():
        _log.warning("warning: the trace exporter does not respond; the last spans are lost")
