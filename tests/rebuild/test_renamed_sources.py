"""The brake does not count sources that were renamed: another source has at least half of their chunks."""

from __future__ import annotations

import pytest

from tests.rebuild.test_brake import stopped
from tests.support.bus import commit, source
from tests.support.home import Home
from tests.support.watched_sinks import Moment, raising, watching

pytestmark = pytest.mark.promise(6)


def in_four_chunks(folder: str, numbers: range, *, edited: int = 0, **fields: object) -> list[dict[str, object]]:
    """Sources of four chunks; the first `edited` ones keep only two."""
    return [
        record
        for number in numbers
        for record in source(
            f"{folder}/{number}.md",
            f"text {number}",
            f"part 1 of {number}",
            *(f"part {part} of {number}" + (", edited" if number < edited else "") for part in (2, 3)),
            **fields,
        )
    ]


def test_renamed_sources_do_not_count(home: Home) -> None:
    commit(home.root, "p1", in_four_chunks("docs", range(20)))
    home.rebuild()
    commit(home.root, "p1", in_four_chunks("guides", range(20), edited=20))
    with pytest.raises(KeyboardInterrupt):  # one engine has the new sources, and nothing is removed yet
        home.sync(wrap=watching("fts", Moment("delete", 1, raising(KeyboardInterrupt()))))
    home.sync()
    assert len(home.contents()["fts"]) == 20 * 4


def test_sources_that_no_other_one_resembles_count(home: Home) -> None:
    commit(home.root, "p1", in_four_chunks("docs", range(20)))
    home.rebuild()
    commit(home.root, "p1", in_four_chunks("guides", range(10)))
    with stopped(10, named="docs/10.md, docs/11.md, docs/12.md"):
        home.sync()


def test_renamed_sources_of_which_too_little_is_left_count(home: Home) -> None:
    def in_chunks(folder: str, number: int) -> list[dict[str, object]]:
        texts = [[f"{n} {part}" for part in range(number)] for n in range(20)]
        return [record for n in range(20) for record in source(f"{folder}/{n}.md", *texts[n])]

    commit(home.root, "p1", in_chunks("docs", 9))
    home.rebuild()
    commit(home.root, "p1", in_chunks("guides", 4))
    with stopped(20):
        home.sync()
    commit(home.root, "p1", in_chunks("guides", 5))
    home.sync()
    assert len(home.contents()["fts"]) == 20 * 5


def test_sources_that_share_less_than_half_with_existing_ones_count(home: Home) -> None:
    def pages(version: str) -> list[dict[str, object]]:
        own = [[f"{version} {n} {part}" for part in range(3)] for n in range(20)]
        return [r for n in range(20) for r in source(f"{version}/{n}.md", f"same {n}", f"too {n}", *own[n])]

    commit(home.root, "p1", [*pages("v1"), *pages("v2")])
    home.rebuild()
    commit(home.root, "p1", pages("v2"))
    with stopped(20, 40, named="v1/"):
        home.sync()


def test_renamed_copies_of_one_file_do_not_count(home: Home) -> None:
    commit(home.root, "p1", [record for n in range(20) for record in source(f"old/{n}/LICENSE.txt", "MIT licence")])
    home.rebuild()
    commit(home.root, "p1", [record for n in range(20) for record in source(f"new/{n}/LICENSE.txt", "MIT licence")])
    home.sync()
    assert len(home.contents()["fts"]) == 20


def test_shared_licences_and_collections_prove_no_renaming(home: Home) -> None:
    with_licence = [
        record for n in range(20) for record in source(f"docs/{n}.md", f"text {n}", "Licensed under the MIT licence.")
    ]
    commit(home.root, "p1", with_licence)
    home.rebuild()
    commit(home.root, "p1", with_licence[:2])
    with stopped(19):
        home.sync()
    commit(home.root, "p1", source("archive.md", *(f"text {n}" for n in range(20))))
    with stopped(20):
        home.sync()


@pytest.mark.parametrize(("before", "after"), [("acme", "other"), ("acme", None), (None, "acme")])
def test_sources_whose_texts_only_another_tenant_has_count(before: str | None, after: str | None, home: Home) -> None:
    commit(home.root, "p1", in_four_chunks("docs", range(20), tenant_id=before))
    home.rebuild()
    commit(home.root, "p1", in_four_chunks("guides", range(20), tenant_id=after))
    with stopped(20):
        home.sync()
