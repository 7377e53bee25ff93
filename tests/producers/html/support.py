"""Chunks of a page, and what the tests of HTML look at in them."""

from chunksink.chunkbus.chunk import Record
from chunksink.producers.html import HtmlChunker
from chunksink.producers.markdown import SourceVersion
from tests.producers.support import CREATED_AT, PRODUCER, own_parts

FAQ = """<h1>FAQ</h1><table border="0"><tr><td colspan="2">Contents</td></tr><tr><td>2.1</td><td>It fails like this:
<pre>% make\nboom</pre></td></tr></table><h2>After</h2><p>Tail text with <a href="x.html">link</a>.</p><h2>Third</h2>
<p>More.</p>"""


def chunks(page: str) -> list[Record]:
    data = page.encode()
    return HtmlChunker().chunks(data, SourceVersion.of("a", data), created_at=CREATED_AT, producer=PRODUCER)


def text(page: str) -> str:
    return "\n\n".join(own_parts(chunks(page)))


def paths(page: str) -> list[list[str]]:
    """The headings over each chunk, without those of chunks before the first one."""
    return [path for record in chunks(page) if (path := record["metadata"]["headings_path"])]


def links(page: str) -> list[str]:
    return [link["url"] for record in chunks(page) for link in record["metadata"].get("links", [])]
