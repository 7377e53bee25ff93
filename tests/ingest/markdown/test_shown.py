"""Chunks begin at the left margin and keep their meaning."""

import pytest

from tests.ingest.markdown.support import NO_OVERLAP, chunks_of, own_parts, texts_of

YAML = "server:\n  port: 80\n\n  hosts:\n    - a"


def indented(text: str, by: str) -> str:
    return "\n".join(by + line if line else line for line in text.split("\n"))


@pytest.mark.parametrize("by", ["    ", "        ", "\t"])
def test_indented_code_keeps_its_structure(by: str) -> None:
    assert texts_of(f"Words:\n\n{indented(YAML, by)}\n\nMore.", NO_OVERLAP) == ["Words:", YAML, "More."]


def test_code_below_a_repeated_heading_moves_by_itself() -> None:
    heading, code = chunks_of(f"# Config\n\n{indented(YAML, '    ')}\n")
    assert code["text"] == f"# Config\n\n{YAML}"
    assert code["text"][code["metadata"]["overlap_chars"] :] == YAML
    assert heading["text"] == "# Config"


def test_code_with_a_deeper_first_line_keeps_it_below_a_heading() -> None:
    assert texts_of("# A\n\n      deep:\n    flat\n")[1] == "# A\n\n  deep:\nflat"


def test_part_of_code_with_a_deeper_first_line_keeps_it() -> None:
    lines = [f"{'    ' * (number % 3)}if oars[{number}]:" for number in range(300)]
    text = "\n".join(["", "```python", *lines, "```"])
    texts = texts_of(text)
    assert any(one.startswith("    ") for one in texts)
    assert [one for one in texts if f"\n{one}" not in text] == []


@pytest.mark.parametrize(("marker", "by"), [("1. ", "   "), ("- ", "  "), ("10. - ", "      ")])
def test_fence_in_a_list_begins_and_ends_at_the_margin(marker: str, by: str) -> None:
    fence = f"```yaml\n{YAML}\n```"
    assert texts_of(f"{marker}one\n\n{indented(fence, by)}\n", NO_OVERLAP)[1] == fence


def test_table_and_items_in_a_list_begin_at_the_margin() -> None:
    table = "| a |\n|---|\n| b |"
    after = "- b\n- c"
    assert texts_of(f"- a\n\n{indented(table, '  ')}\n\n{indented(after, '  ')}\n", NO_OVERLAP)[1:] == [table, after]


def test_repeated_items_have_the_indentation_of_those_below() -> None:
    items = "\n\n".join(f"  - Item {number} says a little about itself and ends." for number in range(200))
    records = chunks_of(f"- All:\n\n{items}\n")
    assert len(records) > 4
    for record in records[1:]:
        assert record["metadata"]["overlap_chars"] > 0
        assert all(line.startswith("- Item ") for line in record["text"].split("\n") if line)


# -- a table that takes several chunks: each later part has the header above it, as overlap


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
