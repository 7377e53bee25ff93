"""The faults. Each function does what happens to a filled or empty index before the next run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from bench.faults import corpus
from bench.faults.trial import Strike, Trial


@dataclass(frozen=True)
class Scenario:
    title: str
    strike: Strike
    filled: bool = True
    """Whether the index is complete when the trial begins."""
    kills: int = 0
    """How many runs are killed. Such trials depend on the instant, so there are more of them."""
    watched: bool = False
    """Whether a reader looks during the next run."""
    remedies: bool = False
    """Whether tools are also tried with the option that their documentation offers."""
    prunes: bool = False
    """Needs a tool that removes what came from removed sources."""


def plain(trial: Trial, _seconds: float) -> None:
    gone, *others = trial.some(0.4)
    (trial.sources / gone).unlink()
    corpus.edit(trial.sources, others, trial.rng)
    corpus.add(trial.sources, 900, trial.rng)


def killed_first(trial: Trial, seconds: float) -> None:
    trial.run_killed(seconds)


def killed_later(trial: Trial, seconds: float) -> None:
    trial.edit()
    trial.run_killed(seconds)


def killed_twice(trial: Trial, seconds: float) -> None:
    trial.edit()
    trial.run_killed(seconds)
    trial.run_killed(seconds)


def killed_then_edited(trial: Trial, seconds: float) -> None:
    edited = trial.edit()
    trial.run_killed(seconds)
    corpus.edit(trial.sources, edited, trial.rng)


def store_lost(trial: Trial, _seconds: float) -> None:
    trial.tool.store.lose(trial.folder, 0.97, trial.rng)


def older_copy(trial: Trial, _seconds: float) -> None:
    store = trial.tool.store.path(trial.folder)
    copy = trial.folder / "copy"
    shutil.copytree(store, copy)
    trial.edit()
    trial.run()
    shutil.rmtree(store)
    copy.rename(store)


def batch_fails(trial: Trial, _seconds: float) -> None:
    edited = sorted(trial.edit())
    (trial.folder / "failure").write_text(corpus.mark_of(trial.sources, edited[len(edited) // 2]))


def poison(trial: Trial, _seconds: float) -> None:
    trial.edit()
    corpus.add(trial.sources, 30, trial.rng, corpus.POISON)
    trial.poisoned = "doc-030.md"


def model_changes(trial: Trial, _seconds: float) -> None:
    trial.set_model("b")


def replaced(trial: Trial, _seconds: float) -> None:
    trial.edit()


def two_at_once(trial: Trial, _seconds: float) -> None:
    first, second = trial.begin(), trial.begin()
    trial.finish(first)
    trial.finish(second)


def names_swapped(trial: Trial, _seconds: float) -> None:
    one, other, third, fourth = corpus.names(trial.sources)[::7][:4]
    corpus.swap(trial.sources, one, other)
    corpus.swap(trial.sources, third, fourth)


SCENARIOS = {
    "plain": Scenario("No fault: sources are edited, one is added, one removed", plain, prunes=True),
    "killed_first": Scenario("Killed during the first run", killed_first, filled=False, kills=1),
    "killed_later": Scenario("Killed during a later run", killed_later, kills=1),
    "killed_twice": Scenario("Killed during two runs in a row", killed_twice, kills=2),
    "killed_then_edited": Scenario(
        "Killed, then the same sources are edited again", killed_then_edited, kills=1, remedies=True
    ),
    "store_lost": Scenario("The store loses 97 % of its rows", store_lost, remedies=True),
    "older_copy": Scenario("An older copy of the store is restored", older_copy, remedies=True),
    "batch_fails": Scenario("The model fails once", batch_fails),
    "poison": Scenario("The model never accepts one new document", poison),
    "model_changes": Scenario("The configured model changes", model_changes, remedies=True),
    "replaced": Scenario("A reader looks while sources are replaced", replaced, watched=True),
    "two_at_once": Scenario("Two first runs at once", two_at_once, filled=False),
    "names_swapped": Scenario("Sources swap their names", names_swapped),
}
