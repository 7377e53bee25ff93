"""What makes vectors: a model on this machine, or an endpoint."""

from collections.abc import Iterator

from chunksink.doctor.check import Check
from chunksink.settings.config import Config, ConfigError

SECONDS = 5.0
"""For an endpoint to answer."""
_BEHIND = (502, 503, 504)
"""What a proxy answers for a server that it cannot reach."""


def model(config: Config) -> Iterator[Check]:
    """Weights are looked for and not read: `chunksink search` would say whether they fit."""
    from chunksink.embeddings.errors import ModelError
    from chunksink.embeddings.resolve import resolve_model

    if config.endpoint is not None:
        yield _endpoint(config, config.endpoint)
        return
    missing = [name for name in ("torch", "sentence_transformers") if not _is_installed(name)]
    if missing:
        yield Check(
            "model", "fail", f"not installed: {', '.join(missing)}", "install chunksink again, with all it needs"
        )
        return
    try:
        found = resolve_model(config.model, network=False)
    except ModelError as error:
        yield Check(
            "model", "fail", str(error), "correct the setting `model`, or get that model: the next rebuild needs it"
        )
        return
    if not any(any(found.folder.rglob(f"*{ending}")) for ending in (".safetensors", ".bin")):
        yield Check("model", "fail", f"no weights in {found.folder}", "copy the model again")
        return
    yield Check("model", "ok", f"{found.name} is here, as a {found.source}: {found.folder}")


def _is_installed(package: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(package) is not None


def _endpoint(config: Config, url: str) -> Check:
    """Whether anybody answers there. No key is sent and no text: one that is embedded costs money."""
    import httpx

    from chunksink.embeddings.connection import checked_url, client_for
    from chunksink.embeddings.errors import EndpointError
    from chunksink.settings.secret import key_in

    variable = config.endpoint_key_variable
    try:
        address = checked_url(url)
        if variable is not None:
            key_in(variable, "option endpoint_key_variable", needed=True)
    except (ConfigError, EndpointError) as error:
        return Check("endpoint", "fail", str(error), "correct it, and keep the key in the environment only")
    start = "start it, or correct its address"
    try:
        client = client_for(address, httpx.Client, timeout=SECONDS)
    except EndpointError as error:
        return Check("endpoint", "fail", str(error), "correct the environment of chunksink")
    try:
        with client:
            status = client.get(address).status_code
    except httpx.HTTPError as error:
        told = f"{address} does not answer: {type(error).__name__}: {error or f'nothing in {SECONDS:g} s'}"
        return Check("endpoint", "fail", told, start)
    if status in _BEHIND:
        return Check("endpoint", "fail", f"{address} answers {status}", start)
    key = f"its key, which is in {variable}, was" if variable else "no key is sent; it was"
    return Check("endpoint", "ok", f"{address} answers; {key} not tried with {config.model}: that may cost money")
