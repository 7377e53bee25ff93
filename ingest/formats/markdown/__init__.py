"""Markdown: a file is one document, cut by a chunking specification.

In: the text of a file. Out: one family of chunks. The steps are `structure` (text to blocks), `passages` (blocks to
stretches of text) and `records` (stretches to chunks). `document_format.chunk_document` runs the last two, for this
and other formats.
"""

from collections.abc import Iterator

from chunksink.ingest.formats.markdown.policy import PARSER_NAME, PARSER_VERSION, CutByPolicy
from chunksink.ingest.model import Item, Source


class MarkdownFormat(CutByPolicy):
    """Markdown and its dialects. With v1, MDX tags are recognised only in `.mdx` files."""

    name = "markdown"
    suffixes = (".md", ".markdown", ".mdown", ".mkd", ".mdx", ".qmd", ".rmd")
    source_type = "md"
    mime_type = "text/markdown"
    parser = (PARSER_NAME, PARSER_VERSION)

    def read(self, source: Source) -> Iterator[Item]:
        from chunksink.ingest.formats.document_format import chunk_document, read_whole
        from chunksink.ingest.formats.markdown.normalise import decode
        from chunksink.ingest.formats.markdown.structure import parse

        is_mdx = source.uri.lower().endswith(".mdx")
        document = parse(decode(read_whole(source)), is_mdx=is_mdx, drops_directives=self.policy.drops_directives)
        yield from chunk_document(document, source, self, self.policy)
