"""One trial: a folder of sources, a tool that runs in processes of its own, and its store beside them."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from bench.faults import corpus, run
from bench.faults.tools import Tool

_MAX_SECONDS = 120.0  # seconds that a run may take


@dataclass(frozen=True)
class Gaps:
    """How a store differs from the sources. `model` counts rows whose vector is of another model."""

    missing: int
    """Sources of which some text is not in the store."""
    surplus: int
    """Sources of which the store has text that they no longer have, or the same text twice."""
    model: int

    @property
    def right(self) -> bool:
        return not (self.missing or self.surplus or self.model)


@dataclass
class Trial:
    folder: Path
    tool: Tool
    rng: random.Random
    codes: list[int] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    kills: int = 0
    looks: int = 0
    absent: int = 0
    """How often a reader looked and did not find every source."""
    poisoned: str = ""

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    @property
    def _output(self) -> Path:
        return self.folder.with_suffix(".output")

    def edit(self, share: float = 0.4) -> list[str]:
        names = corpus.names(self.sources)
        chosen = sorted(self.rng.sample(names, round(len(names) * share)))
        corpus.edit(self.sources, chosen, self.rng)
        return chosen

    def begin(self, *, remedy: bool = False) -> BaseProcess:
        options = (self.tool.remedy if remedy else ()) or self.tool.options
        return run.begin(self.tool.adapter, self.folder, options, self._output)

    def finish(self, process: BaseProcess) -> None:
        process.join(_MAX_SECONDS)
        assert process.exitcode is not None, f"{self.tool.title} did not end"
        self.codes.append(process.exitcode)
        self.remarks.append(self.tool.remark(process.exitcode, self._output.read_text(errors="replace")))
        self._output.write_text("")

    def run(self, *, remedy: bool = False) -> None:
        self.finish(self.begin(remedy=remedy))

    def run_timed(self) -> float:
        """Run the tool. Returns the seconds from its first write to the store to its end."""
        process = self._begin_and_await_write()
        began = time.monotonic()
        self.finish(process)
        return time.monotonic() - began

    def run_killed(self, longest: float) -> None:
        """Run the tool and kill it at a random instant after its first write, often soon after it. It may end first."""
        process = self._begin_and_await_write()
        process.join(longest * self.rng.random() ** 2)
        if process.exitcode is None:
            process.kill()
            self.kills += 1
        process.join()
        self._output.write_text("")

    def _begin_and_await_write(self) -> BaseProcess:
        before = self.tool.store.writes(self.folder)
        process = self.begin()
        while process.exitcode is None and self.tool.store.writes(self.folder) == before:
            process.join(0.001)
        return process

    def run_watched(self) -> None:
        """Run the tool while a reader looks for every source that exists before and after the run."""
        wanted = self.tool.store.sources(self.folder) & set(corpus.names(self.sources))
        process = self.begin()
        while process.is_alive():
            self.looks += 1
            self.absent += not wanted <= self.tool.store.sources(self.folder)
        self.finish(process)

    def gaps(self) -> Gaps:
        wanted = corpus.marks_of(self.sources)
        found: dict[str, Counter[str]] = {name: Counter() for name in wanted}
        rows = self.tool.store.rows(self.folder)
        for row in rows:
            found.setdefault(row.source, Counter()).update(corpus.MARK.findall(row.text))
        wanted.pop(self.poisoned, None)
        found.pop(self.poisoned, None)
        model = (self.folder / "model").read_text()
        return Gaps(
            missing=sum(bool(marks - found[name]) for name, marks in wanted.items()),
            surplus=sum(bool(marks - wanted.get(name, Counter())) for name, marks in found.items()),
            model=sum(row.model != model for row in rows),
        )

    def restore(self, folder: Path) -> None:
        """Restore a copy at the same path, because some tools record paths."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(folder, self.folder, symlinks=True)

    def outcome(self, *, watched: bool) -> dict[str, Any]:
        """The state after the next run, and after one more if something is still wrong."""
        if watched:
            self.run_watched()
        else:
            self.run(remedy=True)
        first = self.gaps()
        if not first.right:
            self.run()
        last = self.gaps()
        return {
            "right": first.right,
            "right_after_another": last.right,
            "reported": any(self.remarks),
            "remark": next(filter(None, reversed(self.remarks)), ""),
            "codes": self.codes,
            "gaps": asdict(first),
            "last_gaps": asdict(last),
            "looks": self.looks,
            "absent": self.absent,
        }


Strike = Callable[[Trial, float], None]
"""Causes a fault before the next run. The number is the longest delay of a kill after the first write, in seconds."""
