"""After any sequence of edits and a sync, the engines' content equals a plain dict's.

CHUNKSINK_SOAK_SEQUENCES is the number of sequences of edits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from math import ceil

import pytest

from tests.support.machine import Begun, beginnings, run_sequences

pytestmark = [pytest.mark.promise(1), pytest.mark.promise(3)]

SEQUENCES = int(os.environ.get("CHUNKSINK_SOAK_SEQUENCES", "0"))
SHORT, LONG = 8, 30  # steps
# So many sequences of so many steps. In the soak in parts, for several processes.
PARTS = [*[(ceil(SEQUENCES / 8), SHORT)] * 8, (ceil(SEQUENCES / 200), LONG)] if SEQUENCES else [(12, SHORT), (1, LONG)]


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
