"""Families compared once and unchanged since are not compared again, and the plan is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
from sqlite_utils import Database

from chunksink.rebuild.plan import Plan
from chunksink.rebuild.receipts import Receipt, Receipts
from chunksink.rebuild.schema import migrations

BUILDS = ("old", "new")
FAMILIES = ("a", "b", "c")
HASHES = ("1", "2")
STEPS = 3000

Planned = set[tuple[str, str, str]]
"""Build, family, action."""


@pytest.fixture
def db() -> Iterator[Database]:
    db = Database(memory=True)
    migrations().apply(db)
    yield db
    db.close()


def changes(db: Database, family: str, family_hash: str) -> None:
    """The catalog gets this version of a family."""
    db.execute(
        "insert into current (family, partition, reading_id, family_hash) values (?1, 'p', 1, ?2) "
        "on conflict (family) do update set family_hash = ?2",
        [family, family_hash],
    )


def withdraws(db: Database, family: str, _hash: str) -> None:
    db.execute("delete from current where family = ?", [family])


def holds(db: Database, family: str, _hash: str) -> None:
    db.execute("insert or ignore into held values (?, 'a reason', '')", [family])


def releases(db: Database, _family: str, _hash: str) -> None:
    db.execute("delete from held")


def begins(db: Database, family: str, _hash: str, build: str = "old") -> None:
    Receipts(db, build).intend([family])


def confirms(db: Database, family: str, family_hash: str, build: str = "old") -> None:
    Receipts(db, build).confirm([Receipt(family, family_hash, 1)], [])


def confirms_gone(db: Database, family: str, _hash: str, build: str = "old") -> None:
    Receipts(db, build).confirm_removed([family])


def forgets(db: Database, _family: str, _hash: str, build: str = "old") -> None:
    Receipts(db, build).forget_all()
    noted = "select build from compared where build = ?1 union select build from to_compare where build = ?1"
    assert db.execute(noted, [build]).fetchall() == []


def loses_a_receipt(db: Database, family: str, _hash: str, build: str = "old") -> None:
    db.execute("delete from receipt where build = ? and family = ?", [build, family])


def alters(db: Database, family: str, family_hash: str, build: str = "old") -> None:
    """No code does this today."""
    db.execute("update receipt set family_hash = ? where build = ? and family = ?", [family_hash, build, family])


CATALOG: Sequence[Callable[[Database, str, str], None]] = (changes, changes, withdraws, holds, releases)
RECORDS: Sequence[Callable[[Database, str, str, str], None]] = (
    *(begins, confirms, confirms, confirms, confirms, confirms_gone, loses_a_receipt, alters, forgets),
)


@pytest.mark.parametrize("seed", range(4))
def test_plan_equals_one_that_compares_everything(db: Database, seed: int) -> None:
    chance = Random(seed)
    written: list[str] = []
    for number in range(STEPS):
        family, family_hash, build = chance.choice(FAMILIES), chance.choice(HASHES), chance.choice(BUILDS)
        if number % 500 == 499:
            written.append(f"{build} is forgotten")
            forgets(db, family, family_hash, build)
        elif chance.random() < 0.5:
            written.append(f"{(change := chance.choice(CATALOG)).__name__} {family} {family_hash}")
            change(db, family, family_hash)
        else:
            written.append(f"{build} {(record := chance.choice(RECORDS)).__name__} {family} {family_hash}")
            record(db, family, family_hash, build)
        db.conn.commit()
        if chance.random() < 0.6:
            builds = chance.choice((BUILDS, BUILDS[:1]))
            state = "valid" if chance.random() < 0.8 else "missing"
            db.execute("insert or replace into partition (key, state) values ('p', ?)", [state])
            db.conn.commit()
            assert planned(db, builds) == compared(db, builds, removals=state == "valid"), written[-8:]


def planned(db: Database, builds: Sequence[str]) -> Planned:
    Plan(db, builds)
    return set(db.execute("select build, family, action from planned").fetchall())


def compared(db: Database, builds: Sequence[str], *, removals: bool) -> Planned:
    """The plan, computed from a comparison of every family."""
    current = dict(db.execute("select family, family_hash from current").fetchall())
    held = {family for (family,) in db.execute("select family from held")}
    plan = set()
    for build in builds:
        receipts = dict(db.execute("select family, family_hash from receipt where build = ?", [build]).fetchall())
        intents = {family for (family,) in db.execute("select family from intent where build = ?", [build])}
        for family in set(FAMILIES) - held:
            if family in current:
                if family not in receipts or family in intents or receipts[family] != current[family]:
                    plan.add((build, family, "write"))
            elif removals and (family in receipts or family in intents):
                plan.add((build, family, "remove"))
    return plan


def test_only_moved_families_are_compared_again(db: Database) -> None:
    for family in FAMILIES:
        changes(db, family, "1")
        confirms(db, family, "1")
    assert planned(db, ["old"]) == set()
    db.execute("drop trigger receipt_changed")
    alters(db, "a", "2")  # without the trigger, only a comparison of every family would find it
    changes(db, "b", "2")
    assert planned(db, ["old"]) == {("old", "b", "write")}
