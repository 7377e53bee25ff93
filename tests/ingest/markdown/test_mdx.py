"""MDX: tags on lines of their own beside blocks of Markdown, without an empty line between."""

from pathlib import Path

from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.document import Kind
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Family
from tests.ingest.markdown.support import source_of

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


def test_text_between_tags_is_markdown() -> None:
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


def test_mdx_is_recognised_by_the_suffix(tmp_path: Path) -> None:
    for name, has_heading in (("a.md", True), ("a.MDX", False)):
        path = tmp_path / name
        path.write_text(GUIDE)
        family, *_ = MarkdownFormat().read(source_of(GUIDE.encode(), name, path=path))
        assert isinstance(family, Family)
        assert any("connect first" in chunk["metadata"]["headings_path"] for chunk in family.chunks) == has_heading


def test_lines_that_are_not_only_a_tag_are_read_as_markdown() -> None:
    for text in ("<b>bold</b> words\n", "<Tab title=\n\nwords\n", "words\n<Note>\n", "<!-- a -->\n", "a < b\n", "<"):
        assert blocks(text) == blocks(text, is_mdx=False)


def test_unclosed_tags_are_text_and_take_linear_time() -> None:
    for text in ("<a b={{{\n" * 20_000, "<a b\n" * 20_000, "<a " + "b " * 100_000, '<a b="' * 20_000):
        assert blocks(text) == blocks(text, is_mdx=False)
