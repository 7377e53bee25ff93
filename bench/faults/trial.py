"""One trial: a folder of sources, a tool that runs in processes of its own, and its store beside them."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.faults import corpus, run
from bench.faults.tools import Tool
from bench.faults.vectors import model_of

_LONGEST = 120.0  # seconds that a run may take


@dataclass(frozen=True)
class Gaps:
    """How a store differs from the sources: numbers of sources, and of rows whose vector is of another model."""

    missing: int
    """Sources of which some text is not in the store."""
    surplus: int
    """Sources with text that they no longer have, or more than once."""
    model: int

    @property
    def right(self) -> bool:
        return not (self.missing or self.surplus or self.model)


@dataclass(frozen=True)
class Ran:
    code: int
    output: str
    seconds: float
    reported: bool


@dataclass
class Trial:
    folder: Path
    tool: Tool
    rng: random.Random
    ran: list[Ran] = field(default_factory=list)
    looks: int = 0
    absent: int = 0
    """Looks of a reader in which some source was not found."""
    poisoned: str = ""
    kills: int = 0

    @property
    def sources(self) -> Path:
        return self.folder / "sources"

    def create(self, count: int) -> None:
        self.folder.mkdir(parents=True)
        corpus.create(self.sources, count, self.rng)
        self.set_model("a")

    def set_model(self, name: str) -> None:
        (self.folder / "model").write_text(name)

    def some(self, share: float) -> list[str]:
        names = corpus.names(self.sources)
        return self.rng.sample(names, round(len(names) * share))

    def edit(self, share: float = 0.4) -> list[str]:
        chosen = self.some(share)
        corpus.edit(self.sources, chosen, self.rng)
        return chosen

    def run(self, *, remedy: bool = False) -> Ran:
        return self.finish(self.begin(remedy=remedy))

    def begin(self, *, remedy: bool = False) -> run.Run:
        options = (self.tool.remedy if remedy else ()) or self.tool.options
        return run.begin(self.tool.adapter, self.folder, options)

    def finish(self, begun: run.Run) -> Ran:
        began = time.monotonic()
        begun.process.join(_LONGEST)
        code = begun.process.exitcode
        assert code is not None, f"{self.tool.title} did not end"
        output = begun.output()
        self.ran.append(Ran(code, output[-2000:], time.monotonic() - began, self.tool.reported(code, output)))
        return self.ran[-1]

    def run_killed(self, longest: float) -> None:
        """A run that is killed at a random instant, unless it has ended before."""
        process = self.begin().process
        process.join(self.rng.uniform(0, longest))
        if process.exitcode is None:
            process.kill()
            self.kills += 1
        process.join()

    def run_watched(self) -> Ran:
        """A run during which a reader looks for every source that exists before and after it."""
        wanted = self.tool.store.sources(self.folder) & set(corpus.names(self.sources))
        begun = self.begin()
        while begun.process.is_alive():
            found = self.tool.store.sources(self.folder)
            self.looks += 1
            self.absent += not wanted <= found
        return self.finish(begun)

    def gaps(self) -> Gaps:
        wanted = corpus.marks_of(self.sources)
        found: dict[str, Counter[str]] = {name: Counter() for name in wanted}
        rows = self.tool.store.rows(self.folder)
        for row in rows:
            found.setdefault(row.source, Counter()).update(corpus.MARK.findall(row.text))
        wanted.pop(self.poisoned, None)
        found.pop(self.poisoned, None)
        return Gaps(
            missing=sum(bool(marks - found[name]) for name, marks in wanted.items()),
            surplus=sum(bool(marks - wanted.get(name, Counter())) for name, marks in found.items()),
            model=sum(row.model != model_of(self.folder) for row in rows),
        )

    def copy_to(self, folder: Path) -> None:
        shutil.copytree(self.folder, folder, symlinks=True)

    def restore(self, folder: Path) -> None:
        """Goes back to a copy, at the same path: some tools record paths."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(folder, self.folder, symlinks=True)


Strike = Callable[[Trial, float], None]
"""Does what happens before the next run; the number is how long a run takes."""
