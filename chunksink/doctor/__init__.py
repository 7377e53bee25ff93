"""The checks of `chunksink doctor`: each examines one thing that a run needs, and names a remedy for a problem.

A check is a function that returns what it found, or raises a `CheckProblem`. Nothing is changed, no model is loaded, an
endpoint gets no request that costs, and no message shows a key.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]
Errors = type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True)
class Check:
    """One thing that was examined."""

    name: str
    verdict: Verdict
    found: str
    remedy: str = ""


class CheckProblem(Exception):
    """Something that a run would fail over, or with `warn` should be known, and what to do about it."""

    def __init__(self, found: str, remedy: str, verdict: Verdict = "fail") -> None:
        super().__init__(found)
        self.remedy = remedy
        self.verdict = verdict


def check(name: str, examine: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", examine())
    except CheckProblem as problem:
        return Check(name, problem.verdict, str(problem), problem.remedy)


@contextmanager
def remedies(*known: tuple[Errors, str]) -> Iterator[None]:
    """Turns these errors into problems with their remedies; the first that fits counts."""
    try:
        yield
    except Exception as error:
        for errors, remedy in known:
            if isinstance(error, errors):
                raise CheckProblem(str(error), remedy) from error
        raise
