"""Markdown: a file is one document, cut by the chunking specification v1.

In goes the text of a file; out comes one family of chunks. Other formats that make text use the same steps:
`structure` (text to blocks), `passages` (blocks to stretches of text), `records` (stretches to chunks), which
`document_format.chunk_document` runs.
"""

from collections.abc import Iterator

from chunksink.ingest.formats.markdown.policy import CANONICALIZER_NAME, DEFAULT_POLICY, PARSER_NAME, PARSER_VERSION
from chunksink.ingest.formats.registry import Format
from chunksink.ingest.model import Item, Source


class MarkdownFormat(Format):
    """Markdown and its dialects. Tags of MDX are read as MDX has them, in files of that suffix."""

    name = "markdown"
    suffixes = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")
    source_type = "md"
    mime_type = "text/markdown"
    parser = (PARSER_NAME, PARSER_VERSION)
    canonicalizer = (CANONICALIZER_NAME, DEFAULT_POLICY.policy_id)

    def read(self, source: Source) -> Iterator[Item]:
        from chunksink.ingest.formats.document_format import chunk_document
        from chunksink.ingest.formats.markdown.normalise import decode
        from chunksink.ingest.formats.markdown.structure import parse

        with source.path.open("rb") as file:
            text = decode(file.read(source.size))
        document = parse(text, is_mdx=source.uri.lower().endswith(".mdx"))
        yield from chunk_document(document, source, self)
