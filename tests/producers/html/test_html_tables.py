"""Tables that only place things are taken apart; those of data stay tables."""

import re

import pytest

from tests.producers.html.support import FAQ, chunks, links, paths, text


def test_a_table_that_only_places_blocks_is_taken_apart() -> None:
    assert paths(FAQ)[-1] == ["FAQ", "Third"]
    assert ["FAQ", "After"] in paths(FAQ)
    assert links(FAQ) == ["x.html"]
    assert "2.1\n\nIt fails like this:\n\n```\n% make\nboom\n```\n\n## After" in text(FAQ)


@pytest.mark.parametrize(
    "table",
    [
        "<table><tr><td><h2>Head</h2>a</td></tr></table>",
        "<table><tr><th>Site</th></tr><tr><td>x<h2>Head</h2>a</td></tr></table>",
        "<table><tr><td>nav</td><td><table><tr><td><h2>Head</h2>a</td></tr></table></td></tr></table>",
        "<table><form><tr><td>x<td><h2>Head</h2>a</form></table>",
        "<table><caption><h2>Head</h2></caption><tr><th>a</th></tr></table>",
        "<tr><td>x</td><td><h2>Head</h2>a</td></tr>",
    ],
)
def test_a_heading_in_a_table_is_a_heading(table: str) -> None:
    assert paths(f"{table}<p>after</p>")[-1] == ["Head"]


def test_code_in_a_table_keeps_its_lines() -> None:
    rows = "<tr><th>Option</th><th>Example</th></tr><tr><td>-v</td><td><pre>one\n  two</pre></td></tr>"
    assert text(f"<table>{rows}</table>").split("\n\n") == ["Option", "Example", "-v", "```\none\n  two\n```"]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("<tr><th>A<th>B<tr><td>1<td>2", "| 1 | 2 |"),
        ("<tr><td>A<td>B<tr><td>1<td>2", "| 1 | 2 |"),
        ("<tr><td><p>A<td><p>B<tr><td><p>1<p>one<td><p>2", "| 1 one | 2 |"),
        ("<tr><th>A<th>B<tr><td>1<td><ul><li>x<li>y</ul>", "| 1 | x y |"),
        ("<tr><td>A<td>B<tr><td><pre>x</pre><td>2", "| `x` | 2 |"),
    ],
)
def test_a_table_of_data_stays_one(table: str, row: str) -> None:
    (record,) = chunks(f"<table>{table}</table>")
    assert record["metadata"]["kind"] == "table"
    assert re.sub(" +", " ", record["text"]).endswith(row)


def test_a_cell_with_the_whole_page_in_it_is_no_datum() -> None:
    page = f"<table><tr><th>Site</th></tr><tr><td><p>{'word ' * 150}</p><p>{'word ' * 150}</p></td></tr></table>"
    assert {record["metadata"]["kind"] for record in chunks(page)} == {"prose"}


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (
            "<th>Name<th>Qty<tr><td colspan=1000>Group one<tr><td>Bolt<td>3",
            ["| Name | Qty |", "| Group one | |", "| Bolt | 3 |"],
        ),
        ("<th>A<th colspan=100>B<tr><td>1<td>2<td>3", ["| A | B | |", "| 1 | 2 | 3 |"]),
        ("<th colspan=2>A<th colspan=2>B<tr><td>1<td>2<td>3<td>4", ["| A | | B | |", "| 1 | 2 | 3 | 4 |"]),
        ("<th rowspan=2>A<th colspan=9>B<tr><td>1<td>2", ["| A | B | |", "| | 1 | 2 |"]),
        ("<th colspan=9>A<tr><td colspan=9>1", ["| A |", "| 1 |"]),
    ],
)
def test_a_table_is_as_wide_as_its_rows_need(rows: str, shown: list[str]) -> None:
    (record,) = chunks(f"<table><tr>{rows}</table>")
    head, rule, *body = (re.sub(" +", " ", line) for line in record["text"].split("\n"))
    assert [head, *body] == shown
    assert rule.count("|") == shown[0].count("|")
