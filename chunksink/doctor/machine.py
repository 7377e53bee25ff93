"""Checks of the machine: interpreter, SQLite, configuration, home, disk, other runs, model or endpoint, Ray and its
segments, reranker."""

import os
import secrets
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from chunksink.chunkbus.errors import ExtraMissing, StorageError
from chunksink.chunkbus.storage import is_bucket, open_storage
from chunksink.chunkbus.wording import sized, some
from chunksink.doctor import AGAIN, BUCKET, CheckProblem, remedies
from chunksink.embeddings.connection import checked_url, client_for
from chunksink.embeddings.errors import EndpointError, ModelError
from chunksink.embeddings.graphs import expected_runtime
from chunksink.embeddings.resolve import ResolvedModel, default_model_cache, resolve_model
from chunksink.embeddings.segments import arrow
from chunksink.rebuild.errors import ComputeError
from chunksink.rebuild.locks import held_locks
from chunksink.rebuild.state import FULL_BYTES, can_write
from chunksink.settings.config import MEILI_URL, PREFIX, Config, unknown_variables
from chunksink.settings.errors import ConfigError
from chunksink.settings.ray import RayOptions
from chunksink.settings.rerank import RerankOptions
from chunksink.settings.secret import key_in

MIN_FREE_BYTES = 10**9
ENDPOINT_SECONDS = 5.0
_SHOWN = 3
_GATEWAY_ERRORS = (502, 503, 504)
"""A proxy answers with these if it cannot reach its server."""


def python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def sqlite() -> str:
    db = sqlite3.connect(":memory:")
    try:
        db.execute("create virtual table t using fts5(text, tokenize = 'trigram')")
    except sqlite3.OperationalError as error:
        remedy = "use a Python whose SQLite is 3.34 or later and has FTS5, such as one from python.org"
        raise CheckProblem(f"{sqlite3.sqlite_version}: {error}", remedy) from error
    finally:
        db.close()
    return f"{sqlite3.sqlite_version} with FTS5"


def configuration(config: Config) -> str:
    """Where settings come from. Variables are shown by name only, since a value may be a key."""
    if config.origin.file is None:
        return "made in Python; no file was read"
    file = Path(config.origin.file)
    variables = sorted(name for name in os.environ if name.startswith(PREFIX) or name == MEILI_URL)
    source = f"{file} can be read" if file.exists() else f"no {file}"
    if unknown := unknown_variables():
        remedy = "correct the name; ignore this if the variable belongs to another program"
        raise CheckProblem(f"{source}; no setting is called {', '.join(unknown)}", remedy, "warn")
    if variables:
        why = f"; {config.why_these_sinks}" if config.why_these_sinks else ""
        return f"{source}; the environment sets {', '.join(variables)}{why}"
    return source if file.exists() else f"{source}: every setting has its default"


def home(home: Path) -> str:
    _require_writable(home, "name another folder with --home")
    if not home.exists():
        return f"{home} does not exist yet; the first run creates it"
    if unusable := sorted(_unusable(home)):
        owner, names = _owner(home), some([f"{path} of {_owner(path)}" for path in unusable], _SHOWN)
        at = shlex.quote(str(home))
        remedy = f"as root: `chown -R {owner} {at}` and `chmod -R u+rwX {at}`; run every command as {owner}"
        raise CheckProblem(f"this user cannot read or write {names}", remedy)
    mode = home.stat().st_mode & 0o777
    if mode & 0o077:
        found = f"{home} can be written, and its mode {mode:o} lets other users of this machine read its texts"
        raise CheckProblem(found, f"chmod 700 {home}, unless this is intended", "warn")
    return f"{home} can be written"


def _unusable(home: Path) -> Iterator[Path]:
    """Files and folders that this user cannot read or write, such as those of a command that root ran."""
    for folder, folders, files in os.walk(home):
        paths = [Path(folder, name) for name in (*folders, *files)]
        yield from (path for path in paths if not can_write(path) and path.exists())  # it may have been removed


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:  # the system has no name for it
        return str(path.stat().st_uid)


def disk(home: Path) -> str:
    place = _existing(home)
    free = shutil.disk_usage(place).free
    found = f"{sized(free)} free below {place}"
    if free < FULL_BYTES:
        raise CheckProblem(found, "make room: no run can write its record")
    if free < MIN_FREE_BYTES:
        raise CheckProblem(found, "make room: a rebuild needs room for a second index beside the live one", "warn")
    return found


def _existing(folder: Path) -> Path:
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    return place


def _require_writable(folder: Path, otherwise: str) -> None:
    place = _existing(folder)
    if not (place.is_dir() and can_write(place)):
        raise CheckProblem(f"{place} cannot be written", f"change its owner or mode, or {otherwise}")


def locks(home: Path) -> str:
    held = held_locks(home)
    if held:
        raise CheckProblem(
            f"another run holds these locks: {', '.join(held)}", "wait for it, or find its process", "warn"
        )
    return "no other run"


def model(config: Config) -> str:
    """Whether the model's files exist. Does not read the weights."""
    with remedies((ModelError, "correct the setting `model`, or download that model: the next rebuild needs it")):
        found = resolve_model(config.model, network=False)
    if not any(any(found.folder.rglob(f"*{ending}")) for ending in (".safetensors", ".bin")):
        raise CheckProblem(f"no weights in {found.folder}", "copy the model again")
    return f"{found.name} is on this machine ({found.source}): {found.folder}; {_runtime(config, found)}"


def _runtime(config: Config, found: ResolvedModel) -> str:
    """The runtime that computes vectors of this model."""
    cache = config.model_cache_path or default_model_cache()
    expected = expected_runtime(found, config.precision, cache)
    if not expected.reason:
        when = "is prepared" if expected.prepared else "the first run prepares"
        return f"OpenVINO computes its vectors, from a graph that {when} in {cache}"
    if config.precision == "int8":
        problem = f"{found.name} cannot be computed in int8: {expected.reason}"
        raise CheckProblem(problem, "set `precision` to auto, or fix the cause")
    return f"sentence-transformers computes its vectors: {expected.reason}"


def endpoint(url: str, model: str, variable: str | None, option: str) -> str:
    """Whether the endpoint answers. Neither key nor text is sent, since that may cost money. `variable` is the
    environment variable with its key, and `option` the setting that names the variable, for messages."""
    start = "start it, or correct its address"
    with remedies(((ConfigError, EndpointError), "correct it, and keep the key in the environment only")):
        address = checked_url(url)
        if variable is not None:
            key_in(variable, option, needed=True)
    with remedies((EndpointError, "correct the proxy and certificate variables in the environment")):
        client = client_for(address, httpx.Client, timeout=ENDPOINT_SECONDS)
    try:
        with client:
            status = client.get(address).status_code
    except httpx.HTTPError as error:
        reason = f"{type(error).__name__}: {error or f'nothing in {ENDPOINT_SECONDS:g} s'}"
        raise CheckProblem(f"{address} does not answer: {reason}", start) from error
    if status in _GATEWAY_ERRORS:
        raise CheckProblem(f"{address} answers {status}", start)
    untested = f"{model} and the key in {variable} were" if variable else f"{model} was"
    return f"{address} answers; {untested} not tested, since that may cost money"


def ray(config: Config) -> str:
    """Whether Ray is installed, and its cluster answers."""
    from chunksink.compute.cluster import Cluster

    with remedies((ExtraMissing, AGAIN), (ComputeError, "start the cluster, or correct `address` in [ray]")):
        return Cluster(config.ray or RayOptions()).examine()


def segments(config: Config) -> str:
    """Whether vector segments can be written. In a bucket, by writing and removing an empty object."""
    place = config.segments
    with remedies((ExtraMissing, AGAIN), (StorageError, BUCKET)):
        arrow()
        if is_bucket(place):
            storage = open_storage(place)
            name = f".doctor-{secrets.token_hex(8)}"
            next(iter(storage.entries("")), None)  # first, as a write could create a bucket
            storage.write(name, b"")
            storage.remove(name)
            return f"{place} can be written"
    _require_writable(Path(place), "change `segments` in [ray]")
    return f"{place} can be written"


def reranker(options: RerankOptions) -> str:
    """Whether its endpoint answers, or its model is on this machine."""
    if options.url is not None:
        return endpoint(options.url, options.model, options.key_variable, "option key_variable of [rerank]")
    with remedies(
        (ModelError, "correct `model` in [rerank], or download that model: hits keep their order without it")
    ):
        found = resolve_model(options.model, network=False)
    return f"{found.name} is on this machine ({found.source}): {found.folder}"
