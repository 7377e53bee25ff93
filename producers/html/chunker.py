"""HTML becomes Markdown and is cut as such: headings, lists, tables, code and links keep their meaning."""

import re
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import CHUNKING_FAILED, PARTS_LEFT_OUT, SITE_LEFT_OUT, SourceFailed
from chunksink.producers.html.charset import decode
from chunksink.producers.html.marks import BACKSLASH
from chunksink.producers.html.notes import take_notes
from chunksink.producers.html.numbers import write_alike
from chunksink.producers.html.page import cleaned
from chunksink.producers.html.tree import PARSER_VERSIONS, Tidied, tidy
from chunksink.producers.markdown.chunker import MarkdownChunker
from chunksink.producers.markdown.document import Document
from chunksink.producers.markdown.odd import tell_removed
from chunksink.producers.markdown.policy import PARSER_NAME, PARSER_VERSION
from chunksink.producers.markdown.records import Form, SourceVersion
from chunksink.producers.markdown.structure import parse
from chunksink.producers.pdf import unreadable
from chunksink.producers.produced import Tell, untold

if TYPE_CHECKING:
    from html_to_markdown import ConversionOptions, ConversionResult

_CONVERTER = "html-to-markdown"
# Raise it with any change in this package that the chunks show.
_RULES_VERSION = "7"
# What the converter says of the page, before the page.
_ABOUT = re.compile(r"---[ \t]*\n(?=[A-Za-z_][\w-]*[ \t]*:)(?:.*\n){1,400}?---[ \t]*(?:\n|\Z)")


@dataclass(frozen=True)
class HtmlChunker:
    """Cuts HTML by the policy and tokenizer of the Markdown chunker."""

    markdown: MarkdownChunker = field(default_factory=MarkdownChunker)

    @property
    def parser(self) -> tuple[str, str]:
        return (_CONVERTER, html_version())

    @property
    def canonicalizer(self) -> tuple[str, str]:
        return self.markdown.canonicalizer

    def chunks(
        self, data: bytes, source: SourceVersion, *, created_at: str, producer: Record, tell: Tell = untold
    ) -> list[Record]:
        """The page's chunks, none where it has no text. Raises SourceFailed."""
        form = Form(self.parser, "html", "text/html")
        tell_removed(data, tell)
        document = document_of(decode(data))
        return self.markdown.cut(document, source, form, created_at=created_at, producer=producer, tell=tell)


@cache
def html_version() -> str:
    """Whatever can change the chunks by a change of its own."""
    return f"{version(_CONVERTER)}+tree-{_RULES_VERSION}+{PARSER_VERSIONS}+{PARSER_NAME}-{PARSER_VERSION}"


def document_of(html: str) -> Document:
    """The page as Markdown, with what its head says of it. Raises SourceFailed where text would be lost."""
    result, tidied = _convert(cleaned(html))
    content = write_alike((result.content or "").replace(BACKSLASH, "\\"))
    content = _ABOUT.sub("", content, count=1) if content.startswith("---") else content
    # A page has no front matter: where it begins with a rule, a line before that says so.
    document = parse(f"\n{content}" if content.startswith(("---", "+++")) else content)
    document = replace(document, anchors={}) if tidied.notes is None else take_notes(document, tidied.notes)
    said = result.metadata.document
    about = {"title": said.title, "author": said.author, "language": said.language}
    found = {name: " ".join(value.split()) for name, value in about.items() if value and value.strip()}
    first = next(filter(None, (headings[-1] for headings in document.sections[1:])), "")
    metadata = ({"title": first} if first else {}) | document.metadata | found
    left_out = {SITE_LEFT_OUT: tidied.lacks_site, PARTS_LEFT_OUT: tidied.lacks_drawings}
    odd = document.odd.union(code for code, is_lacking in left_out.items() if is_lacking)
    return replace(document, metadata=metadata, odd=odd)


def _convert(html: str) -> tuple["ConversionResult", Tidied]:
    """Tidied first. Tags that are never closed can make that tree too deep: then the page is converted as it stands."""
    from html_to_markdown import convert

    try:
        tidied = tidy(html) or Tidied(html)
        result = convert(tidied.html, _options())
        if result.warnings and tidied.html != html:
            tidied = Tidied(html)
            result = convert(html, _options())
    except Exception as error:
        raise unreadable("HTML", error) from error
    if result.warnings:  # it went on without a part of the page
        raise SourceFailed(CHUNKING_FAILED, f"cannot be read whole: {result.warnings[0].message}")
    return result, tidied


@cache
def _options() -> "ConversionOptions":
    from html_to_markdown import ConversionOptions, PreprocessingOptions

    return ConversionOptions(
        preprocessing=PreprocessingOptions(enabled=False),  # it leaves text out that it takes for navigation
        exclude_selectors=["svg", "script", "style", "template"],
        hidden_content="all",  # it is text, of a tab or a page without programs
        inline_data_media="alt_text_only",
    )
