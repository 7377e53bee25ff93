"""A table that takes several chunks: each later part has the header above it, as overlap."""

import pytest

from tests.ingest.markdown.support import chunks_of, own_parts


@pytest.mark.parametrize("margin", ["", "> ", "- ", "  "])
def test_every_part_of_a_table_is_below_its_header(margin: str) -> None:
    head = ["| city | population |", "|:-----|-----------:|"]
    rows = [f"| Leipzig-{number} | {number * 467} |" for number in range(300)]
    below = margin.replace("-", " ")
    first, *parts = chunks_of("\n".join([margin + head[0], *(below + line for line in [head[1], *rows])]))
    assert len(parts) > 3
    above = [f"{margin if margin == '> ' else ''}{line}" for line in head]
    for part in parts:
        lines = part["text"].split("\n")
        assert lines[:2] == above
        assert sum("population" in line for line in lines) == 1
        assert part["text"][: part["metadata"]["overlap_chars"]].startswith(lines[0] + "\n" + lines[1] + "\n")
    own = "".join(own_parts([first, *parts]))
    assert [row for row in rows if own.count(row) != 1] == []


def test_overlap_of_rows_begins_below_the_header() -> None:
    head = [f"| {' | '.join(f'name{number}' for number in range(20))} |", "|" + "---|" * 20]
    for words, above in ((370, head), (450, [])):  # without room for all of it, nothing of it is repeated
        rows = [f"| {'word ' * words}{number} |" for number in range(3)]
        first, *parts = chunks_of("\n".join([*head, *rows]))
        assert (first["text"].split("\n"), len(parts)) == (head, 3)
        for part in parts:
            lines = part["text"].split("\n")
            assert lines[: len(above)] == above
            assert "---" not in "".join(lines[len(above) :])


def test_header_that_leaves_little_room_is_not_repeated() -> None:
    head = f"| {' | '.join(f'column {number}' for number in range(80))} |\n|{'---|' * 80}\n"
    _, *parts = chunks_of(head + f"| {'cell | ' * 80}\n" * 20)
    assert len(parts) > 3
    assert [part for part in parts if part["text"].startswith("| column")] == []
