"""The faults. Each function causes one before the next run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from bench.faults import corpus
from bench.faults.stores import lose
from bench.faults.trial import Strike, Trial


@dataclass(frozen=True)
class Scenario:
    title: str
    strike: Strike
    filled: bool = True
    """Whether the index is complete when the trial begins."""
    kills: int = 0
    """How many runs are killed. The result depends on the instant of the kill, so there are more of these trials."""
    remedies: bool = False
    """Whether tools are also tried with the option that their documentation offers."""


def plain(trial: Trial, _seconds: float) -> None:
    (trial.sources / trial.edit()[0]).unlink()
    corpus.write(trial.sources, 900, trial.rng)


def killed(trial: Trial, seconds: float) -> None:
    trial.run_killed(seconds)


def killed_later(trial: Trial, seconds: float) -> None:
    trial.edit()
    trial.run_killed(seconds)


def killed_twice(trial: Trial, seconds: float) -> None:
    killed_later(trial, seconds)
    trial.run_killed(seconds)


def killed_then_edited(trial: Trial, seconds: float) -> None:
    edited = trial.edit()
    trial.run_killed(seconds)
    corpus.edit(trial.sources, edited, trial.rng)


def store_lost(trial: Trial, _seconds: float) -> None:
    lose(trial.tool.store, trial.folder, 0.97, trial.rng)


def older_copy(trial: Trial, _seconds: float) -> None:
    store, copy = trial.folder / trial.tool.store.below, trial.folder / "copy"
    shutil.copytree(store, copy)
    trial.edit()
    trial.run()
    shutil.rmtree(store)
    copy.rename(store)


def model_fails(trial: Trial, _seconds: float) -> None:
    edited = trial.edit()
    marks = corpus.marks_of(trial.sources)[edited[len(edited) // 2]]
    (trial.folder / "failure").write_text(min(marks))


def poison(trial: Trial, _seconds: float) -> None:
    trial.edit()
    corpus.write(trial.sources, 30, trial.rng, word=corpus.POISON)
    trial.poisoned = "doc-030.md"


def model_changes(trial: Trial, _seconds: float) -> None:
    (trial.folder / "model").write_text("b")


def replaced(trial: Trial, _seconds: float) -> None:
    trial.edit()


def two_at_once(trial: Trial, _seconds: float) -> None:
    both = trial.begin(), trial.begin()
    for process in both:
        trial.finish(process)


def names_swapped(trial: Trial, _seconds: float) -> None:
    names = corpus.names(trial.sources)[::7]
    for one, other in zip(names[:2], names[2:4], strict=True):
        texts = [(trial.sources / name).read_text() for name in (one, other)]
        for name, text in zip((other, one), texts, strict=True):
            (trial.sources / name).write_text(text)


SCENARIOS = {
    "plain": Scenario("No fault: sources are edited, one is added, one removed", plain),
    "killed_first": Scenario("Killed while the first run writes", killed, filled=False, kills=1),
    "killed_later": Scenario("Killed while a later run writes", killed_later, kills=1),
    "killed_twice": Scenario("Killed while two runs in a row write", killed_twice, kills=2),
    "killed_then_edited": Scenario(
        "Killed, then the same sources are edited again", killed_then_edited, kills=1, remedies=True
    ),
    "store_lost": Scenario("The store loses 97 % of its rows", store_lost, remedies=True),
    "older_copy": Scenario("An older copy of the store is restored", older_copy, remedies=True),
    "batch_fails": Scenario("The model fails once", model_fails),
    "poison": Scenario("The model refuses one of the new documents every time", poison),
    "model_changes": Scenario("Another model is configured", model_changes, remedies=True),
    "replaced": Scenario("A reader looks while sources are replaced", replaced),
    "two_at_once": Scenario("Two first runs at once", two_at_once, filled=False),
    "names_swapped": Scenario("Sources swap their names", names_swapped),
}
