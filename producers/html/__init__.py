"""HTML becomes Markdown and is cut as such. `HtmlChunker` is the way in.

charset -> page -> tree (landmarks, confluence, anchors, headings, tables, columns, nesting, raised, addresses, numbers,
notes) -> chunker; `tags` says which elements do what
"""

from chunksink.producers.html.chunker import HtmlChunker, document_of, html_version

__all__ = ["HtmlChunker", "document_of", "html_version"]
