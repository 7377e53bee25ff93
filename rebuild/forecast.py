"""What a plan will cost, before it is carried out: vectors to compute, tokens, seconds, money."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chunksink.rebuild.errors import Removal
from chunksink.rebuild.plan import FamilyCounts, Plan
from chunksink.rebuild.removals import LEAST_REMOVALS, held_by_reason, large_removal
from chunksink.rebuild.state import EMBEDDED, MODEL
from chunksink.rebuild.sync import Planned
from chunksink.rebuild.work import Work

_EXAMPLES = 20
_PAGE = 1000

SAMPLE = 300
"""Texts that are read: so many tell the share of text in a line to some hundredths."""

# Near what WordPiece makes of English, of source code, and of scripts that write without spaces. For alphabets other
# than Latin models differ by a factor of three, and this lies between them.
_TOKEN = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|[0-9]{1,3}|[\u0370-\u1fff]{1,2}|\S")

Lengths = Callable[[Sequence[str]], Mapping[str, int]]
"""From text hashes to the lengths in tokens of those that are cached; 0 where a length is not known."""


@dataclass(frozen=True)
class TextTotals:
    """Some texts, in numbers."""

    number: int = 0
    tokens: int = 0
    size: int = 0
    """In bytes of UTF-8."""


@dataclass(frozen=True)
class PlannedSink:
    families: FamilyCounts
    seconds: float | None
    filled: str | None
    """Why all of it must be written, where that is so."""


@dataclass(frozen=True)
class Forecast:
    """A plan in numbers. Seconds are None until a run has measured how fast this machine is."""

    hash: str | None
    """That of what a sync would write to the live builds; None where there are none yet."""
    families: FamilyCounts
    superseded: int
    held: int
    chunks: int
    deleted: int
    cached: int
    missing: int
    tokens: int
    """Of the texts that must be embedded, about."""
    seconds: float | None
    cost: float | None
    """In the currency of the configured price; None where none is configured."""
    sinks: dict[str, PlannedSink]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    rebuild_due: str | None
    settings: dict[str, list[str]]
    """Index settings that a sync would change, by sink."""
    brake: Removal | None
    """What a sync would stop at, unless it is told the number."""

    def __repr__(self) -> str:
        changes = f"{len(self.added)} added, {len(self.changed)} changed, {len(self.removed)} removed"
        return f"<Forecast {changes}, {self.missing:,} vectors to compute>"

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        return {
            "hash": facts["hash"],
            "families": facts["families"] | {"superseded": self.superseded, "held": self.held},
            "chunks": {"written": self.chunks, "deleted": self.deleted},
            "embeddings": {"cached": self.cached, "missing": self.missing, "tokens": self.tokens},
            "seconds": self.seconds,
            "cost": self.cost,
            "sinks": facts["sinks"],
            "examples": {"added": self.added, "changed": self.changed, "removed": self.removed},
            "settings": self.settings,
            "rebuild_due": self.rebuild_due,
            "brake": facts["brake"],
        }


def forecast(
    work: Work,
    planned: Planned,
    lengths: Lengths,
    *,
    price: float | None = None,
    rebuild_due: str | None = None,
) -> Forecast:
    """`price` is for a million tokens."""
    plan, builds = planned.plan, planned.builds
    cached, missing = _vectors(work, plan, _with_vectors(work, builds), lengths)
    pace = work.state.pace()
    embedding = _seconds(missing.size, pace.get(EMBEDDED), pace.get(MODEL, 0.0))
    sinks = {
        name: PlannedSink(
            plan.counts(build),
            _seconds(plan.chunks_to_write(build), pace.get(name)),
            planned.empty.get(name),
        )
        for name, build in builds.items()
    }
    # The engines work beside each other and beside the encoder: the slowest of them decides.
    parts = [embedding, *(sink.seconds for sink in sinks.values())]
    known = [seconds for seconds in parts if seconds is not None]
    return Forecast(
        hash=planned.hash,
        families=plan.counts(),
        superseded=work.catalog.counts().superseded,
        held=sum(held_by_reason(work.state.db, list(builds.values())).values()),
        chunks=plan.chunks_to_write(),
        deleted=max(map(plan.leaving, builds.values()), default=0),
        cached=cached,
        missing=missing.number,
        tokens=missing.tokens,
        seconds=max(known) if len(known) == len(parts) else None,
        cost=None if price is None else missing.tokens / 1_000_000 * price,
        sinks=sinks,
        added=tuple(each.label for each in work.records.project(plan.examples("write", False, _EXAMPLES))),
        changed=tuple(plan.examples("write", True, _EXAMPLES)),
        removed=tuple(plan.examples("remove", True, _EXAMPLES)),
        rebuild_due=rebuild_due,
        settings=planned.settings,
        brake=_brake(work, planned),
    )


def _brake(work: Work, planned: Planned) -> Removal | None:
    """Of a first index nothing is told: what a home that lost its records has, its engines would have to be asked."""
    live = work.state.live_or_none()
    if live is None:
        return None
    if work.catalog.is_whole() and planned.empty:
        # What is new or gone is made first, and before that it is asked about all that is live.
        return large_removal(work.state.db, list(live.builds.values()))
    if planned.plan.removed() < LEAST_REMOVALS:
        return None
    builds = [build for name, build in planned.builds.items() if name not in planned.empty]
    return large_removal(work.state.db, builds)


def _with_vectors(work: Work, builds: Mapping[str, str]) -> list[str]:
    """Those of the builds that are sent vectors: of a sink that wants them, but a live build without stays without."""
    live = work.state.live_or_none()
    without = live.builds if live is not None and not live.holds_vectors else {}
    return [build for name, build in builds.items() if work.sinks[name].wants_vectors and name not in without]


def _vectors(work: Work, plan: Plan, builds: Sequence[str], lengths: Lengths) -> tuple[int, TextTotals]:
    """Of what these builds are sent: how many chunks will find their vector in the cache, and the texts that have none;
    a text that several chunks have is computed for the first of them."""
    cached = missing = size = 0
    sample: list[tuple[str, int]] = []
    for page in plan.texts_to_write(_PAGE, builds):
        known = lengths([text_hash for text_hash, *_ in page])
        unknown = [(text_hash, length) for text_hash, length, _ in page if text_hash not in known]
        cached += sum(chunks for *_, chunks in page) - len(unknown)
        missing += len(unknown)
        size += sum(length for _, length in unknown)
        sample = sorted([*sample, *unknown])[:SAMPLE]  # by their hashes they are as good as drawn
    return cached, about_texts(work, missing, size, sample)


def _seconds(amount: int, pace: float | None, first: float = 0.0) -> float | None:
    if amount == 0:
        return 0.0
    return None if pace is None else round(first + amount * pace, 1)


def about_tokens(text: str) -> int:
    return sum(1 for _ in _TOKEN.finditer(text))


def about_texts(work: Work, number: int, size: int, sample: Sequence[tuple[str, int]]) -> TextTotals:
    """So many texts, whose lines have so many bytes: much of a line says where its text is from.

    `sample` are hashes of some of them, and the lengths of their lines.
    """
    texts = work.records.texts(work.catalog.places_of_texts([text_hash for text_hash, _ in sample]))
    read = [(about_tokens(text), len(text.encode("utf-8", "surrogatepass"))) for text in texts]
    share = size / max(1, sum(length for _, length in sample))
    return TextTotals(
        number, round(share * sum(tokens for tokens, _ in read)), round(share * sum(own for _, own in read))
    )
