"""Words that are typed joined: one by one, and better side by side."""

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.fts.query import parse

OTHERS = ["run", "dry", "std", "vector", "read", "write"]


@pytest.mark.parametrize(
    ("typed", "apart", "joined"),
    [
        ("--dry-run", "run it, and then run it --dry", "publish with --dry-run: it shows what would go there"),
        ("dry-runs ", "run and run until all is dry", "a dry run of the whole publication, before it is made"),
        ("std::vector", "std has a vector and others, such a vector", "how std::vector grows when it is filled"),
        ("read/write", "write down whatever you read, and write more", "opened for read/write by whoever has a key"),
    ],
)
def test_side_by_side_is_better(build: FtsBuild, reader: FtsReader, typed: str, apart: str, joined: str) -> None:
    one, other = family("apart", [apart]), family("joined", [joined])
    others = [family(f"d{number}", [f"{OTHERS[number % 6]} is not all of it"]) for number in range(60)]
    build.replace([one, other, *others, *(family(f"e{number}", ["something else"]) for number in range(60))])
    assert [hit.parent_id for hit in reader.search(typed)][:2] == [other.parent_id, one.parent_id]


def test_no_text_has_more_than_is_waited_for(build: FtsBuild, reader: FtsReader) -> None:
    build.replace(
        [family("one", ["dry-run " * 90]), *(family(f"d{number}", ["something " * 90]) for number in range(20))]
    )
    (best, *_) = reader.search("dry-run something ")
    most = reader.most_score("dry-run something ")
    assert most is not None
    assert 0.7 * most < best.score < most


@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        ("a --dry-run", ("dry-run",)),
        ("the std::vector.", ("std::vector",)),
        ("how a --dry-run of it changes std::vector", ()),  # of many words one more says little
        ("plan.py's", ("plan.py",)),
        ("ls -la ...", ()),
        ("don't a+b", ()),
        ("E-417 err_42 v1.2-beta", ()),  # looked for as they stand
        ('"dry-run"', ()),
    ],
)
def test_what_hangs_together(typed: str, joined: tuple[str, ...]) -> None:
    assert parse(typed).joined == joined
