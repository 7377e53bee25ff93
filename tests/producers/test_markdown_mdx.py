"""MDX: tags stand on lines of their own beside blocks of Markdown, without an empty line between."""

from __future__ import annotations

from chunksink.producers.markdown import MarkdownChunker, SourceVersion, parse
from chunksink.producers.markdown.document import Kind

GUIDE = """# Guide

Intro text.

<CodeGroup>
```python Python
import x

# connect first
x.connect()
```
</CodeGroup>

<Tabs>
  <Tab title="One" on={() => { a > 1 }}>
    Some words.

    ```bash
    # no heading
    ls
    ```
  </Tab>
</Tabs>

<Card
  title="x > y"
  href="/y"
>
## In the card
Words.
</Card>

<>
    Indented, and no code.
</>

## Limits

At most ten zebras.
"""


def blocks(text: str, *, is_mdx: bool = True) -> list[tuple[Kind, str]]:
    return [(block.kind, text[block.start : block.end].strip()) for block in parse(text, is_mdx=is_mdx).blocks]


def test_what_stands_between_tags_is_markdown() -> None:
    document = parse(GUIDE, is_mdx=True)
    assert document.text == GUIDE.strip() + "\n"
    assert document.sections == ((), ("Guide",), ("Guide", "In the card"), ("Guide", "Limits"))
    found = blocks(GUIDE)
    code = [
        "```python Python\nimport x\n\n# connect first\nx.connect()\n```",
        "```bash\n    # no heading\n    ls\n    ```",
    ]
    assert [text for kind, text in found if kind is Kind.CODE] == code
    prose = [text for kind, text in found if kind is Kind.PROSE]
    assert '<Card\n  title="x > y"\n  href="/y"\n>' in prose
    assert "Indented, and no code.\n</>" in prose


def test_only_where_the_name_says_so() -> None:
    """In Markdown a tag takes all that follows up to an empty line."""
    assert blocks("<CodeGroup>\n```\nx\n```\n", is_mdx=False) == [(Kind.PROSE, "<CodeGroup>\n```\nx\n```")]
    for name, is_heading in (("a.md", True), ("a.MDX", False)):
        chunks = MarkdownChunker().chunks(
            GUIDE.encode(), SourceVersion.of(name, GUIDE.encode()), created_at="2026-01-01T00:00:00Z", producer={}
        )
        assert any("connect first" in chunk["metadata"]["headings_path"] for chunk in chunks) == is_heading


def test_what_is_no_tag_alone_is_what_it_is_in_markdown() -> None:
    for text in ("<b>bold</b> words\n", "<Tab title=\n\nwords\n", "words\n<Note>\n", "<!-- a -->\n", "a < b\n", "<"):
        assert blocks(text) == blocks(text, is_mdx=False)


def test_a_tag_within_a_list_and_within_a_quote() -> None:
    assert blocks("- item\n  <Note>\n  words\n\n> <Note>\n> words\n") == [
        (Kind.PROSE, "- item\n  <Note>\n  words"),
        (Kind.PROSE, "> <Note>"),
        (Kind.PROSE, "> words"),
    ]


def test_tags_without_end_are_text() -> None:
    """Many of them, on each of which all that may be attributes is looked at: that must not take long."""
    for text in ("<a b={{{\n" * 20_000, "<a b\n" * 20_000, "<a " + "b " * 100_000, '<a b="' * 20_000):
        assert blocks(text) == blocks(text, is_mdx=False)
