"""Ids of chunks over edits: by the specification v2 an edit renames only chunks whose text it changes."""

import hashlib
from collections import Counter

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.identity import parent_id
from chunksink.ingest.formats.markdown.policy import V1, V2, Policy
from tests.ingest.markdown.support import chunks_of

Section = tuple[str, list[str]]
"""A heading and its paragraphs."""

_words = st.lists(st.sampled_from(["tea", "steeps", "slowly", "`a. B`", "at", "80"]), min_size=1, max_size=60)
_paragraph = st.one_of(
    _words.map(lambda words: f"{' '.join(words)}."),
    _words.map(lambda words: "\n".join(f"- {word}" for word in words)),
    _words.map(lambda words: "```\n" + "\n".join(words) + "\n```"),
)
_sections: st.SearchStrategy[list[Section]] = st.lists(
    st.tuples(st.sampled_from(["Tea", "Coffee", "Water"]), st.lists(_paragraph, min_size=1, max_size=4)),
    min_size=2,
    max_size=6,
)


def markdown(sections: list[Section]) -> str:
    return "\n\n".join("\n\n".join([f"## {heading}", *paragraphs]) for heading, paragraphs in sections)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, str]:
    """A document before and after an edit."""
    before = draw(_sections)
    after = [(heading, list(paragraphs)) for heading, paragraphs in before]
    number = draw(st.integers(0, len(after) - 1))
    heading, paragraphs = after[number]
    place = draw(st.integers(0, len(paragraphs) - 1))
    match draw(st.sampled_from(["insert", "delete", "change", "rename", "move"])):
        case "insert":
            paragraphs.insert(place, draw(_paragraph))
        case "delete":
            del paragraphs[place]
        case "change":
            paragraphs[place] = draw(_paragraph)
        case "rename":
            after[number] = (f"{heading} again", paragraphs)
        case _:
            after.insert(draw(st.integers(0, len(after) - 1)), after.pop(number))
    return markdown(before), markdown(after)


def texts_and_ids(text: str, policy: Policy, **about: str) -> Counter[tuple[str, str]]:
    return Counter((record["text"], record["chunk_id"]) for record in chunks_of(text, policy=policy, **about))


@given(edits())
def test_an_edit_renames_only_chunks_whose_text_it_changes(texts: tuple[str, str]) -> None:
    before, after = (texts_and_ids(text, V2) for text in texts)
    for found in (before, after):
        assert len({chunk_id for _, chunk_id in found}) == found.total()
    kept = Counter(text for text, _ in before) & Counter(text for text, _ in after)
    assert (before & after).total() == kept.total()


@given(edits())
def test_by_v1_every_edit_renames_all_chunks(texts: tuple[str, str]) -> None:
    before, after = (texts_and_ids(text, V1) for text in texts)
    assert before == after if texts[0] == texts[1] else not before & after


def test_id_is_the_hash_of_tenant_family_text_and_occurrence() -> None:
    text = "## A\n\nTea.\n\n## B\n\nCoffee.\n\n## A\n\nTea.\n"
    records = chunks_of(text, uri="kitchen/tea.md", tenant="acme", policy=V2)
    family = hashlib.sha256(b"kitchen/tea.md").hexdigest()
    expected = [("## A\n\nTea.", 0), ("## B\n\nCoffee.", 0), ("## A\n\nTea.", 1)]
    assert [record["chunk_id"] for record in records] == [
        hashlib.sha256(rfc8785.dumps(["acme", family, *place])).hexdigest() for place in expected
    ]
    without_tenant = chunks_of(text, uri="kitchen/tea.md", policy=V2)[0]
    assert without_tenant["chunk_id"] == hashlib.sha256(rfc8785.dumps([None, family, *expected[0]])).hexdigest()


def test_ids_differ_by_source_and_tenant() -> None:
    owners = [("a.md", None), ("b.md", None), ("a.md", "x"), ("a.md", "y")]
    found = [chunks_of("Tea.", uri=uri, tenant=tenant, policy=V2)[0] for uri, tenant in owners]
    assert len({chunk_id(record) for record in found}) == 4
    assert [parent_id(record) for record in found[2:]] == [parent_id(found[0])] * 2


def chunk_id(record: Record) -> str:
    return str(record["chunk_id"])
