"""The checks of `chunksink doctor`. Each examines one thing that a run needs and has remedies for its problems.

A check is a function that returns its finding or raises a `CheckProblem`. It leaves nothing behind, loads no model,
sends no request that costs money, and shows no key.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from chunksink.settings.config import Config
from chunksink.settings.errors import ConfigError
from chunksink.sinks.custom_fields import FieldSet

AGAIN = "do what the message says, then run `chunksink doctor` again"
OWNER = "correct the owner and mode of that file or folder, or run this as its owner"
BUCKET = "correct the address, the credentials or AWS_ENDPOINT_URL"
Verdict = Literal["ok", "warn", "fail"]
Errors = type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True)
class Check:
    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


class CheckProblem(Exception):
    """A problem with its remedy. With `fail` a run would fail, with `warn` it would not."""

    def __init__(self, found: str, remedy: str, verdict: Verdict = "fail") -> None:
        super().__init__(found)
        self.remedy = remedy
        self.verdict = verdict

    def check(self, name: str) -> Check:
        return Check(name, self.verdict, str(self), self.remedy)


def check(name: str, examine: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", examine())
    except CheckProblem as problem:
        return problem.check(name)
    except PermissionError as error:  # such as a home of another user
        return Check(name, "fail", str(error), OWNER)


@contextmanager
def remedies(*known: tuple[Errors, str]) -> Iterator[None]:
    """Turn these errors into problems with their remedies; the first match counts."""
    try:
        yield
    except Exception as error:
        for errors, remedy in known:
            if isinstance(error, errors):
                raise CheckProblem(str(error), remedy) from error
        raise


def examine(load: Callable[[], Config]) -> Iterator[Check]:
    """All checks, in the order in which a run needs them. An invalid configuration ends them."""
    from chunksink.doctor import engines, machine, records

    yield check("python", machine.python)
    yield check("sqlite", machine.sqlite)
    try:
        config = load()
        FieldSet.of(config.fields)  # refuses custom fields with the name of a built-in field
    except ConfigError as error:
        yield Check("configuration", "fail", str(error), "correct it; `chunksink init` writes a commented example")
        return
    home = config.home_path
    yield check("configuration", partial(machine.configuration, config))
    yield check("chunks", partial(records.chunks, config))
    yield check("home", partial(machine.home, home))
    yield check("disk", partial(machine.disk, home))
    yield check("ingest", partial(records.ingest, home))
    yield check("index", partial(records.index, home))
    live = records.live_builds(home)
    if live is not None:
        yield check("partitions", partial(records.partitions, config))
        if config.tenants == "required":
            yield check("tenants", partial(records.tenants, config))
    yield check("locks", partial(machine.locks, home))
    for name in dict.fromkeys(config.sinks):
        yield from engines.sink(config, name, live)
    yield from engines.unused_options(config)
    if config.endpoint is None:
        yield check("model", partial(machine.model, config))
    else:
        about = (config.endpoint, config.model, config.endpoint_key_variable, "option endpoint_key_variable")
        yield check("endpoint", partial(machine.endpoint, *about))
    if config.engine == "ray":
        yield check("ray", partial(machine.ray, config))
        yield check("segments", partial(machine.segments, config))
    if config.rerank is not None:
        yield check("rerank", partial(machine.reranker, config.rerank))
    yield check("cache", partial(records.cache, config))
