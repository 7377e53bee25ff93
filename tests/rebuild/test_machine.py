"""After any sequence of edits and a sync, the engines' content equals a plain dict's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conftest import HEAVY
from tests.support.machine import Begun, beginnings, run_sequences

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(3)]

SHORT, LONG = 8, 30  # steps
# So many sequences of so many steps. In the soak in parts, for several processes.
PARTS = [*[(1250, SHORT)] * 8, (50, LONG)] if HEAVY else [(12, SHORT), (1, LONG)]


@pytest.fixture(scope="module")
def begun() -> Iterator[Callable[[bool], Begun]]:
    with beginnings() as begun:
        yield begun


@pytest.mark.parametrize(("sequences", "steps"), PARTS)
def test_engines_match_a_plain_dict_after_every_sync(
    sequences: int, steps: int, begun: Callable[[bool], Begun], record_property: Callable[[str, object], None]
) -> None:
    done = run_sequences(begun, sequences, steps)
    for what, number in done.items():
        record_property(what, number)
