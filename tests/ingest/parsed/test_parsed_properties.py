"""What must hold for every parsed document: no text is lost, rows stay whole, the same bytes each time."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.policy import V2, Policy
from chunksink.ingest.formats.parsed import ParsedFormat
from chunksink.ingest.model import Notice
from chunksink.sinks.projection import project_family
from tests.ingest.parsed.samples import parsed, read_documents
from tests.ingest.reading import families, solid

POLICY = Policy(target=20, soft_max=26, hard_max=30)
SOFT = replace(V2, target=20, soft_max=26, hard_max=30, minimum=5)

words = st.text(alphabet="ab .!?,茶é-#|`\n1\t", max_size=80)
page = st.fixed_dictionaries({}, optional={"page": st.integers(0, 9)})
block = st.builds(
    lambda type_, text, level, about: {"type": type_, "text": text, "level": level, **about},
    st.sampled_from(["heading", "paragraph", "list_item", "code", "quote", "title"]),
    words | words.map(lambda text: (text + " word. ") * 12),
    st.integers(0, 4),
    page,
)
cells = st.lists(st.none() | st.integers(0, 99) | st.text(alphabet="ab |\n茶", max_size=30), min_size=1, max_size=4)
table = st.fixed_dictionaries(
    {"rows": st.lists(cells, max_size=12)},
    optional={"header": cells | st.just(True), "caption": words, "after_block": st.integers(-2, 9)},
)
image = st.fixed_dictionaries({"file": words}, optional={"caption": words, "alt": words, "page": st.integers(0, 9)})
documents = st.builds(
    lambda blocks, tables, images: {**parsed("a/b.pdf"), "blocks": blocks, "tables": tables, "images": images},
    st.lists(block, max_size=8),
    st.lists(table, max_size=3),
    st.lists(image, max_size=3),
)


@given(documents, st.sampled_from([POLICY, SOFT]))
def test_no_text_is_lost_and_everything_has_its_place(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any], policy: Policy
) -> None:
    items = read_documents(tmp_path_factory.mktemp("p"), [document], ParsedFormat(policy))
    assert not any(isinstance(item, Notice) and item.is_failure for item in items)
    chunks = next(iter(families(items)), [])
    own = "".join(solid(chunk["text"][chunk["overlap_chars"] :]) for chunk in chunks)
    for unit in document["blocks"]:
        assert solid(unit["text"]) in own
    for unit in document["images"]:
        assert solid(unit.get("caption", "")) in own
    images = [image for chunk in chunks for image in chunk["metadata"].get("images", [])]
    if chunks:
        assert sorted(map(str, images)) == sorted(map(str, document["images"]))
    rows = [line for chunk in chunks if chunk["kind"] == "table" for line in chunk["text"].split("\n")]
    for unit in document["tables"]:
        for row in unit["rows"]:
            texts = ("" if cell is None else str(cell) for cell in row)
            assert "| " + " | ".join(" ".join(text.split()).replace("|", "\\|") for text in texts) + " |" in rows
    for index, chunk in enumerate(chunks):
        assert chunk["text"].strip() == chunk["text"] != ""
        assert (chunk["chunk_index"], chunk["chunk_count"]) == (index, len(chunks))
        assert tokens.count(chunk["text"]) == chunk["tokens"]["count"]
        assert chunk["kind"] == "table" or chunk["tokens"]["count"] <= POLICY.hard_max
        span = chunk["span"]["char_range"]
        assert span["char_end"] - span["char_start"] == len(chunk["text"])
    assert len({chunk["chunk_id"] for chunk in chunks}) == len(chunks)
    project_family(chunks)
