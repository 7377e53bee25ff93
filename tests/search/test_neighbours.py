"""Neighbours of hits. Chunks of headings, comments or front matter alone are replaced by the next chunk."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from chunksink.search import order
from chunksink.search.access import EVERYTHING, Access
from chunksink.search.legs import Legs
from chunksink.search.neighbours import get
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.document import Document, Family
from chunksink.sinks.projection import project_family
from chunksink.sinks.reader import Filter
from tests.search.support import MODES, Counted, family, legs_over, meaning, with_readers
from tests.support.bus import source

LONG = family("long.md", *(f"part {number}" for number in range(9)), "the cat")
SHORT = family("short.md", "a boat")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Legs]:
    with legs_over(tmp_path_factory.mktemp("index"), [LONG, SHORT]) as legs:
        yield legs


def texts(documents: tuple[Document, ...]) -> list[str]:
    return [document.text for document in documents]


def test_context_has_neighbours_in_the_order_of_the_source(sources: Legs) -> None:
    (hit,) = search(sources, Question('"part 4"', mode="keyword", context=2)).hits
    assert texts(hit.before) == ["part 2", "part 3"]
    assert texts(hit.after) == ["part 5", "part 6"]
    fields = hit.as_json()["context"]
    assert [one["text"] for one in fields["before"]] == ["part 2", "part 3"]


def test_context_ends_with_the_source(sources: Legs) -> None:
    (hit,) = search(sources, Question("cat", mode="keyword", context=3)).hits
    assert (texts(hit.before), texts(hit.after)) == (["part 6", "part 7", "part 8"], [])
    (alone,) = search(sources, Question("boat", mode="keyword", context=20)).hits
    assert (alone.before, alone.after) == ((), ())
    assert "context" not in alone.as_json()


def test_adjacent_hits_have_their_own_context(sources: Legs) -> None:
    answer = search(sources, Question("part", mode="keyword", collapse=False, limit=9, context=1))
    assert len(answer.hits) == 9
    for hit in answer.hits:
        number = int(hit.text.split()[1])
        assert texts(hit.before) == ([f"part {number - 1}"] if number else [])
        assert texts(hit.after) == ([f"part {number + 1}"] if number < 8 else ["the cat"])


def test_get_returns_a_chunk_by_its_id(sources: Legs) -> None:
    found = get(sources, EVERYTHING, LONG.documents[0].chunk_id, 1)
    assert found is not None
    assert (found.document.text, texts(found.before), texts(found.after)) == ("part 0", [], ["part 1"])
    for nowhere in ("", "nowhere", "h-" + "0" * 64, "\udcff", "x" * 5000):
        assert get(sources, EVERYTHING, nowhere) is None


def test_document_that_engines_lack_comes_from_the_chunks(tmp_path: Path) -> None:
    """The keyword engine refused it, and the vector engine stores no texts."""
    requests: list[dict[str, str]] = []

    def from_chunks(sources: Mapping[str, str]) -> list[Document]:
        requests.append(dict(sources))
        return [document for document in SHORT.documents if document.id in sources]

    with legs_over(tmp_path, [LONG, SHORT], fts_families=[LONG], store_text=False) as legs:
        found = search(replace(legs, from_chunks=from_chunks), Question("boat", mode="semantic", limit=1))
        assert texts(tuple(hit.document for hit in found.hits)) == ["a boat"]
        assert {SHORT.documents[0].id: SHORT.parent_id} in requests
        requests.clear()
        by_id = get(replace(legs, from_chunks=from_chunks), EVERYTHING, SHORT.documents[0].chunk_id)
        assert by_id is not None
        assert by_id.document.text == "a boat"
        assert requests[0][SHORT.documents[0].id] == SHORT.parent_id
        without = search(legs, Question("boat", mode="semantic", limit=1))
        assert [(hit.text, hit.source_uri) for hit in without.hits] == [("", "short.md")]


def test_id_that_moved_to_another_source_is_no_neighbour(tmp_path: Path) -> None:
    """The id of the old neighbour now belongs to a chunk of another source."""
    other = SHORT.documents[0]
    strayed = structs.replace(LONG.documents[0], previous_id=other.id, next_id=other.id)
    assert LONG.vectors is not None
    with legs_over(tmp_path, [Family([strayed], LONG.vectors[:1]), SHORT]) as legs:
        found = get(legs, EVERYTHING, strayed.chunk_id, 2)
    assert found is not None
    assert (found.before, found.after) == ((), ())


# -- chunks that are replaced by the next one

BACKUPS = ["Backups"]
HOURLY = "They are made every six hours, and kept for a year on another machine"
RESTORE = "## Restore\n\nbackups backups: restore one with the tool"
GUIDE: list[tuple[str, list[str]]] = [
    ("Welcome", []),
    ("# Backups", BACKUPS),
    ("## When", [*BACKUPS, "When"]),
    (HOURLY, [*BACKUPS, "When"]),
    ("## Restoring\n\n### By hand\n\n<!-- nowhere -->", [*BACKUPS, "Restoring", "By hand"]),
    (RESTORE, [*BACKUPS, "Restoring", "By hand", "Now"]),
    ('<a id="zebra"></a>\n<!-- zebra [[[end]]] -->', ["Asides"]),
    ("# Colours", ["Colours"]),
    (".. _lamps:", []),
    ("the lamps are red", ["Lamps"]),
    ("# a comment of some code, no heading", []),
    ("nothing of it", []),
]


def outlined(name: str, chunks: list[tuple[str, list[str]]], **fields: Any) -> Family:
    records = source(name, *(text for text, _ in chunks), **fields)
    for number, (record, (_, headings)) in enumerate(zip(records, chunks, strict=True), start=1):
        record |= {"headings": headings, "page_start": number}
    documents = project_family(records)
    return Family(documents, np.stack([meaning(document.text) for document in documents]))


FAMILIES = [
    outlined("guide.md", GUIDE, tenant_id="acme"),
    outlined("notes.md", [("## Backups of others", ["Notes", "Backups of others"])]),
    *(family(f"{number}.md", f"other text {number}") for number in range(20)),
]


@pytest.mark.parametrize("mode", MODES)
def test_bare_heading_is_replaced_by_the_next_chunk(legs: Legs, mode: Mode) -> None:
    (best, *_) = search(legs, Question("# Backups", mode=mode, context=1))
    assert best.text == HOURLY, "the heading between them is skipped, too"
    assert [one.text for one in (*best.before, *best.after)] == [GUIDE[2][0], GUIDE[4][0]]
    (hit,) = search(legs, Question("six hours", mode="keyword"))
    assert [piece.text for piece in hit.snippet if piece.match] == ["six", "hours"]
    assert search(legs, Question("backups six", mode="keyword")).hits[0].highlights == ["six"]


def test_chunks_replaced_by_one_document_are_one_hit_at_the_better_place(legs: Legs) -> None:
    question = Question("backups when", mode="keyword", collapse=False, limit=100)
    answer = search(legs, question)
    texts = [hit.text for hit in answer]
    assert len(texts) == len(set(texts)) == 3
    assert (texts[0], answer.hits[0].ranks) == (HOURLY, {"keyword": 1})
    assert texts.count(RESTORE) == 1
    for limit in (1, 2, 3):
        pages = [search(legs, replace(question, limit=limit, offset=start)) for start in range(0, 6, limit)]
        assert [hit.text for page in pages for hit in page] == texts
        assert [page.more for page in pages] == [start + limit < 3 for start in range(0, 6, limit)]


def test_chunks_replaced_by_one_document_are_one_hit_across_steps(legs: Legs, monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question("backups when", mode="keyword", collapse=False, limit=100)
    texts = [hit.text for hit in search(legs, question)]
    monkeypatch.setattr(order, "FETCH_AT_FIRST", 1)
    assert [hit.text for hit in search(legs, question)] == texts


def test_heading_without_a_following_chunk_in_its_section_is_shown(legs: Legs) -> None:
    """The next chunk is about something else."""
    (hit,) = search(legs, Question("zebra", mode="keyword"))
    assert "zebra" in hit.text
    (hit,) = search(legs, Question("colours", mode="keyword"))
    assert hit.text == "# Colours"
    assert "## Backups of others" in [hit.text for hit in search(legs, Question("backups", mode="keyword"))]


@pytest.mark.parametrize(("title", "shown"), [("# Zebra", "# Purpose\n\nstripes"), ("# Zebra\n\nDraft:", None)])
def test_title_on_the_level_of_the_next_heading_is_replaced(title: str, shown: str | None, tmp_path: Path) -> None:
    """Unless a text follows the title."""
    chunks = [(title, ["Zebra"]), ("# Purpose\n\nstripes", ["Purpose"])]
    with legs_over(tmp_path, [outlined("one.docx", chunks)], vectors_too=False) as legs:
        (hit,) = search(legs, Question("zebra", mode="keyword"))
        assert hit.text == (shown or title)


def test_label_is_replaced_by_the_next_chunk(legs: Legs) -> None:
    hits = search(legs, Question("lamps", mode="keyword"))
    assert [hit.text for hit in hits] == ["the lamps are red"]


def test_comment_in_code_is_no_heading(legs: Legs) -> None:
    (hit,) = search(legs, Question("comment code", mode="keyword"))
    assert hit.text.startswith("# a comment")


def test_chunk_with_the_phrase_in_hidden_text_is_shown(legs: Legs) -> None:
    """The next chunk need not contain the phrase."""
    (hit,) = search(legs, Question('"nowhere"', mode="keyword"))
    assert hit.text.startswith("## Restoring")
    assert [hit.text for hit in search(legs, Question('"when"', mode="keyword"))] == [HOURLY]


def test_replacement_passes_the_filters_and_belongs_to_the_tenant(legs: Legs) -> None:
    (hit,) = search(legs, Question("when", mode="keyword"), Access("acme"))
    assert hit.text == HOURLY
    assert not search(legs, Question("when", mode="keyword"), Access("other")).hits
    on_its_page = Question("when", mode="keyword", filters=(Filter("page_start", at_most=3),))
    assert [hit.text for hit in search(legs, on_its_page)] == ["## When"]


@pytest.mark.parametrize("headings", [BACKUPS, []])
@pytest.mark.parametrize(
    ("text", "is_hidden"),
    [
        ("<!-- zebra -->", True),
        ('<a id="zebra"></a>\n<a name=zebra />', True),
        ("---\n# zebra\ntags:\n  - disks\nsort_rank: 6\n---", True),
        ('+++\ntitle = "zebra"\n[extra]\n+++', True),
        ("<!-- zebra -->\nEvery night.", False),
        ("---\ntitle: zebra\n---\nEvery night.", False),
        ("---\nzebra every night.\n---", False),
        ("Every night.\n\n---\nat: zebra\n---", False),
    ],
)
def test_chunk_of_hidden_text_is_replaced(text: str, is_hidden: bool, headings: list[str], tmp_path: Path) -> None:
    """With headings and without."""
    chunks = [(text, headings), ("what follows", headings)]
    with legs_over(tmp_path, [outlined("one.md", chunks)], vectors_too=False) as legs:
        (hit,) = search(legs, Question("zebra", mode="keyword"))
        assert hit.text == ("what follows" if is_hidden else text)
        (quoted,) = search(legs, Question('"zebra"', mode="keyword"))
        assert quoted.text == text


def test_introduction_is_replaced_by_the_chunk_it_introduces(tmp_path: Path) -> None:
    chunks = [
        ("# Use\n\nRun the tests:", ["Use"]),
        ("Run the tests:\n\n```sh\nnpm test\n```", ["Use"]),
        ("Then build it:", ["Use"]),
        ("```sh\nnpm build\n```", ["Use"]),
        ("## Ports\n\nThe ports are:", ["Use", "Ports"]),
        ("The ports are:\n\n| a | b |\n|---|---|\n| 1 | 2 |", ["Other"]),
    ]
    with legs_over(tmp_path, [outlined("use.md", chunks)]) as legs:

        def best(words: str) -> str:
            return search(legs, Question(words, mode="keyword", collapse=False)).hits[0].text

        assert best("run tests") == chunks[1][0]
        assert best("then build") == "Then build it:", "the next chunk does not repeat it"
        assert {hit.text for hit in search(legs, Question("ports", mode="keyword", collapse=False))} == {
            chunks[4][0],
            chunks[5][0],
        }, "the next chunk is in another section"


def test_replaced_heading_is_still_found_by_its_id(legs: Legs) -> None:
    (hit,) = search(legs, Question("when", mode="keyword"))
    assert hit.document.previous_id is not None
    found = get(legs, Access("acme"), hit.document.previous_id)
    assert found is not None
    assert found.document.text == "## When"


def test_replacements_of_a_page_take_one_request(tmp_path: Path) -> None:
    families = [outlined(f"{number}.md", [("# Moon", ["Moon"]), (f"text {number}", ["Moon"])]) for number in range(9)]
    requests: list[int] = []

    class Watched(Counted):
        def get(self, ids: list[str]) -> object:
            requests.append(len(ids))
            return super().__getattr__("get")(ids)  # type: ignore[operator]

    with legs_over(tmp_path, families, vectors_too=False) as legs:
        assert legs.keyword is not None
        watched = with_readers(legs, keyword=Watched(legs.keyword.reader, ""))
        answer = search(watched, Question("moon", mode="keyword", limit=8))
    assert len(answer) == 8
    assert all(hit.text.startswith("text") for hit in answer)
    assert requests == [9, 9]
