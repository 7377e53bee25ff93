"""Lists say the numbers that the page shows, and are one list."""

import pytest

from tests.producers.html.support import chunks


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ('<ol><li value="7">x<li>y</ol>', "7. x\n8. y"),
        ("<ol reversed start=3><li>a<li>b<li>c</ol>", "3. a\n\n2. b\n\n1. c"),
        ("<ol reversed><li>a<li><b>b</b></ol>", "2. a\n\n1. **b**"),
        ("<ol><li>x<li value=5>y<li>z<li value=x>w</ol>", "1. x\n\n5. y\n6. z\n7. w"),
        ("<ul><li>o<ol reversed><li>a<li># b</ol></ul>", "- o\n\n  2. a\n  1. \\# b"),
        ("<ol start=4><li>a<li>b</ol>", "4. a\n5. b"),
        ("<ol reversed start=1><li>a<li>b<li>c</ol>", "1. a\n\n0. b\n\n0. c"),
    ],
)
def test_items_have_the_numbers_that_the_page_shows(page: str, shown: str) -> None:
    (record,) = chunks(page)
    assert record["text"].endswith(shown)
