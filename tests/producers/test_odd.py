"""What is read whole but otherwise than may be meant has a code; what is well written has none."""

from pathlib import Path

import pytest

from chunksink.chunkbus.chunk import Record
from chunksink.producers.html import HtmlChunker
from chunksink.producers.markdown import MarkdownChunker
from chunksink.producers.markdown.records import SourceVersion
from chunksink.producers.parsed import ParsedReader
from chunksink.producers.rows.reader import RowReader
from chunksink.producers.text import TextChunker
from tests.producers.parsed.samples import paragraph, parsed
from tests.producers.reading import read_records, refusals
from tests.producers.support import CREATED_AT, PRODUCER

WIDE_ROW = "| " + "word " * 600 + "|\n"


def odd(text: str, chunker: MarkdownChunker | TextChunker | HtmlChunker | None = None, uri: str = "a.md") -> list[str]:
    told: list[str] = []
    data = text.encode()
    chunker = chunker or MarkdownChunker()
    version = SourceVersion.of(uri, data)
    assert chunker.chunks(data, version, created_at=CREATED_AT, producer=PRODUCER, tell=told.append)
    return sorted(told)


@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n",
        "```\nx",
        "# A\n\n~~~ python\nx\n\n# no heading\n",
        "~~~\n```\nx\n```\n",
        "````\nx\n```\n",
        "```",
        "> ```\n> x\n\nText.",
        "- ```\n  x\n\nText.",
        "1. a\n\n   ```\n   x\n\n   y\n\nText.",
        "```\nx\n```\n\n```\ny\n",
    ],
)
def test_code_that_is_never_ended(text: str) -> None:
    assert odd(f"Words.\n\n{text}") == ["FENCE_UNCLOSED"]


@pytest.mark.parametrize(
    "text",
    [
        "```\nx\n```",
        "```\n```\n",
        "~~~\nx\n~~~\n",
        "~~~\nx\n\n~~~",
        "> ```\n> x\n> ```",
        "> ```\n> ```",
        "- ```\n  x\n  ```\n\nText.",
        "1. a\n\n   ```\n   x\n\n   ```\n\nText.",
        "    ```\n    x\n",
        "`` ` ``",
        "- ```\n\n  x\n  ```",
        "   ```\n   x\n  ````\n",
    ],
)
def test_code_that_is_ended(text: str) -> None:
    assert odd(f"Words.\n\n{text}") == []


def test_quotes_and_lists_that_stand_too_deep() -> None:
    assert odd(">" * 120 + " deep") == odd("- " * 60 + "deep") == ["NESTING_TOO_DEEP"]
    assert odd(">" * 90 + " deep") == odd("- " * 40 + "deep") == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Word. " * 4000, ["LINE_ENDLESS"]),
        ("Word. " * 3000, []),
        ("Word.\n" * 9000, []),
        ("```\n" + "x" * 30_000 + "\n```", ["LINE_ENDLESS"]),
        ("# H\n\n- " + "word " * 5000, ["LINE_ENDLESS"]),
    ],
)
def test_a_line_without_an_end(text: str, codes: list[str]) -> None:
    assert odd(text) == codes
    if "`" not in text:
        assert odd(text, TextChunker(), "a.txt") == codes


def test_a_paragraph_of_html_without_an_end() -> None:
    assert odd(f"<p>{'Word.' * 5000}</p>", HtmlChunker(), "a.html") == ["LINE_ENDLESS"]
    assert odd("<p>Word.</p>" * 9000, HtmlChunker(), "a.html") == []


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        (WIDE_ROW, ["TABLE_TOO_WIDE"]),
        ("| a |\n" * 30 + WIDE_ROW + "| b |\n" * 30, ["TABLE_TOO_WIDE"]),
        ("| word word word |\n" * 3000, []),
        ("| a |", []),
    ],
)
def test_a_row_that_no_chunk_holds(rows: str, codes: list[str]) -> None:
    assert odd(f"Words.\n\n| h |\n|---|\n{rows}\n\nText.") == codes
    assert odd(f"| h |\n|---|\n{rows}") == codes


def test_characters_that_are_taken_out() -> None:
    assert odd("Bef\0ore " * 2 + "words " * 40) == ["NUL_REMOVED"]
    assert odd("Bef\0ore " * 2 + "words " * 40, TextChunker(), "a.txt") == ["NUL_REMOVED"]


@pytest.mark.parametrize(
    ("page", "codes"),
    [
        ("<nav>Home</nav><p>Words.</p>", ["SITE_LEFT_OUT"]),
        ("<p>Words.</p><footer><a href='/'><b>Ours</b></a></footer>", ["SITE_LEFT_OUT"]),
        ("<nav> </nav><p>Words.</p>", []),
        ("<nav>Home</nav>", []),
        ("<p>Words.</p>", []),
        ("<p>Words.</p><svg><g><text x='1'>Pump</text></g></svg>", ["PARTS_LEFT_OUT"]),
        ("<p>Words.</p><svg><foreignObject><p>Pump</p></foreignObject></svg>", ["PARTS_LEFT_OUT"]),
        ("<p>Words.</p><svg><title>Menu</title><text>12</text><path d='M0'/></svg>", []),
        ("<p>Words.</p><svg><text><title>Menu</title>1</text><defs><text>Pump</text></defs></svg>", []),
        ("<p>Words.</p><template><svg><text>Pump</text></svg></template>", []),
        ("<header><svg><text>ACME</text></svg></header><p>Words.</p>", []),
        ("<p>Words <svg><text>Pump</text></svg> go on.</p>", ["PARTS_LEFT_OUT"]),
    ],
)
def test_what_a_page_says_of_its_site(page: str, codes: list[str]) -> None:
    assert odd(page, HtmlChunker(), "a.html") == codes


def test_rows_are_told_like_documents(tmp_path: Path) -> None:
    texts = [
        "```\nx",
        f"Words.\n\n| h |\n|---|\n{WIDE_ROW}",
        ">" * 120 + " deep",
        "nul\0 and words",
        "Word. " * 4000,
        "Words.",
    ]
    rows = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    produced, left = read_records(RowReader(), tmp_path, rows)
    assert len(produced) == len(rows)
    assert refusals(left) == [
        (1, "FENCE_UNCLOSED", False),
        (2, "TABLE_TOO_WIDE", False),
        (3, "NESTING_TOO_DEEP", False),
        (4, "NUL_REMOVED", False),
        (5, "LINE_ENDLESS", False),
    ]


@pytest.mark.parametrize(
    ("block", "code"),
    [
        (paragraph("Word. " * 4000), "LINE_ENDLESS"),
        (paragraph("nul\0 and words"), "NUL_REMOVED"),
        ({"type": "table", "rows": [["h", "k"], ["cell " * 2000, "q"]]}, "TABLE_TOO_WIDE"),
        ({"type": "table", "rows": [["h", "k"], *[["cell " * 40, "q"]] * 30]}, None),
        (paragraph("a backslash and u0000: \\u0000"), None),
    ],
)
def test_parsed_documents_are_told_too(tmp_path: Path, block: Record, code: str | None) -> None:
    produced, left = read_records(ParsedReader(), tmp_path, [parsed("a.x", paragraph("Words.")), parsed("b.x", block)])
    assert len(produced) == 2
    assert refusals(left) == ([(2, code, False)] if code else [])
