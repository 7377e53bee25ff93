"""If the query is a file name or a path, the file comes first, before texts that mention it."""

import pytest

from chunksink.search.access import Access
from chunksink.search.fusion import PATH
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import FUSIONS, FusionName, Mode, Question
from chunksink.sinks.reader import Filter
from tests.search.support import family

MENTIONS = [
    family(f"docs/{number}.md", "read guide/install.py and install.py", f"cat guide/install.py {number}")
    for number in range(40)
]
FAMILIES = [
    *MENTIONS,
    *(family(f"docs/{number}/index.md", "an index.md") for number in range(11)),
    family("src/guide/install.py", *(f"boat {number}" for number in range(70))),
    family("lib/install.py", "a ship", tenant_id="acme"),
    family("src/reinstall.py", "a vessel"),
]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize(
    "query",
    [
        *("guide/install.py", " ./src/guide/install.py", "src/guide/install.py", "/home/me/src/guide/install.py"),
        *("guide/install.py:41", "guide/install.py:41:7:", "guide/install.py#L3-L9"),
    ],
)
def test_file_comes_first(legs: Legs, mode: Mode, fusion: FusionName, query: str) -> None:
    first, second, *others = search(legs, Question(query, mode=mode, fusion=fusion)).hits
    assert (first.source_uri, first.ranks[PATH]) == ("src/guide/install.py", 1)
    assert first.score > second.score
    assert not first.weak
    assert all(PATH not in hit.ranks for hit in (second, *others))


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_every_file_of_that_name_comes_first(legs: Legs, mode: Mode) -> None:
    answer = search(legs, Question("install.py", mode=mode))
    assert {hit.source_uri for hit in answer[:2]} == {"src/guide/install.py", "lib/install.py"}
    assert [hit.source_uri for hit in search(legs, Question("install.py"), Access("acme"))] == ["lib/install.py"]
    in_docs = Question("install.py", filters=(Filter("path", like=("docs/*",)),))
    assert all(PATH not in hit.ranks for hit in search(legs, in_docs))


def test_pages_continue_after_the_file(legs: Legs) -> None:
    question = Question("guide/install.py", collapse=False, limit=170)
    whole = [hit.chunk_id for hit in search(legs, question)]
    assert len(whole) == len(set(whole)) == 163
    paged = [
        hit.chunk_id
        for offset in range(0, 170, 40)
        for hit in search(legs, Question("guide/install.py", collapse=False, limit=40, offset=offset))
    ]
    assert paged == whole


@pytest.mark.parametrize(
    "query", ["guide install.py", "*/install.py", "stall.py", "other/install.py", "install", "index.md"]
)
def test_other_queries_are_searched_as_before(legs: Legs, query: str) -> None:
    assert all(PATH not in hit.ranks for hit in search(legs, Question(query)))
