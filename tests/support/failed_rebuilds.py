"""A home whose rebuild fails: two generations, a bus with newer chunks, and the expected result."""

from contextlib import closing

from chunksink.chunkbus.layout import BusRoot
from chunksink.rebuild.state import State
from chunksink.sinks.fts import FtsSink
from tests.support.bus import FEBRUARY, commit, projected, source
from tests.support.home import Home

EDITED = [source(f"docs/{number}.md", f"tapir {number}", f"zebra {number}", version="2") for number in range(4)]


def edited_home(root: BusRoot, home: Home) -> Home:
    for version in ("0", "1"):
        commit(root, "p1", source("docs/0.md", "okapi", version=version))
        home.rebuild()
    edit(root)
    return home


def edit(root: BusRoot) -> None:
    commit(root, "p1", [record for records in EDITED for record in records], at=FEBRUARY)


def answers(home: Home, word: str) -> int:
    """The number of hits that a reader of the live generation gets."""
    with closing(FtsSink(home.folder / "fts").reader(home.live().builds["fts"])) as reader:
        return len(reader.search(word))


def goes_through_after_all(home: Home, *, flips_first: bool = False) -> None:
    """The next rebuild succeeds. `flips_first`: the failed run had verified its generation, so the next run shows that
    one before its own."""
    before = home.live()
    if flips_first:
        with State.existing(home.folder) as state:
            before = state.begun_flip() or before
    report = home.rebuild()
    assert home.live().id == report.generation
    wanted = projected(*EDITED)
    assert all(documents == wanted for documents in home.contents().values())
    assert (answers(home, "okapi"), answers(home, "tapir")) == (0, 4)
    kept = sorted([before.id.lower(), report.generation.lower()])
    assert home.builds() == {name: [f"{name}-{id_}" for id_ in kept] for name in home.builds()}
