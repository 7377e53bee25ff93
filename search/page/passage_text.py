"""Renders the text of a passage as safe HTML, with the found words marked."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from chunksink.search.excerpt import IS_SPACED, WORD_LETTER
from chunksink.sinks.reader import marked

_WEB = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_FRONT_MATTER = re.compile(
    r"\A(---|\+\+\+)[ \t]*\n(?=[ \t]*(?:[\w.-]+[ \t]*[:=]|#|\[))(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE
)
_TOP_HEADING = 2
"""The page's own title is `h1`, so headings of a passage begin below it."""


def as_html(text: str, found: Sequence[str], *, markdown: bool) -> Markup:
    """Escapes HTML in the text, shows the alternative text of images, and keeps only web and e-mail links."""
    pattern = _pattern(found)
    if not markdown:
        return _with_marks(text, pattern)
    shown = _FRONT_MATTER.sub(r"~~~~~\n\2~~~~~\n", text)  # as code, because Markdown reads its end as a heading
    return Markup(_parser().render(shown, {"found": pattern}))


def _pattern(found: Sequence[str]) -> re.Pattern[str] | None:
    words = sorted({word.strip().lower() for word in found if word.strip()}, key=len, reverse=True)
    return re.compile("|".join(map(_whole, words)), re.IGNORECASE) if words else None


def _whole(word: str) -> str:
    """Matches the word as a whole, except at an end where its script has no spaces between words."""
    before = f"(?<!{WORD_LETTER})" if IS_SPACED(word[0]) else ""
    after = f"(?!{WORD_LETTER})" if IS_SPACED(word[-1]) else ""
    return f"{before}{re.escape(word)}{after}"


def _with_marks(text: str, found: re.Pattern[str] | None) -> Markup:
    if found is None:
        return escape(text)
    pieces = marked(text, (match.span() for match in found.finditer(text)))
    return Markup("").join(
        Markup("<mark>{}</mark>").format(piece.text) if piece.match else piece.text for piece in pieces
    )


class _Renderer(RendererHTML):
    def text(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        return _with_marks(tokens[idx].content, env["found"])

    def code_inline(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        return f"<code>{_with_marks(tokens[idx].content, env['found'])}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        return f"<pre><code>{_with_marks(tokens[idx].content, env['found'])}</code></pre>"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self.code_block(tokens, idx, options, env)

    def image(self, tokens: Sequence[Token], idx: int, _options: Any, env: Any) -> str:
        return _with_marks(tokens[idx].content, env["found"])

    def heading_open(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        return f"<h{_level(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        return f"</h{_level(tokens[idx])}>"

    def table_open(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Any) -> str:
        return '<div class="wide" tabindex="0"><table>'

    def table_close(self, _tokens: Sequence[Token], _idx: int, _options: Any, _env: Any) -> str:
        return "</table></div>"

    def th_open(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        return f"<{tokens[idx].tag}>"  # without its style: the Content-Security-Policy forbids it

    td_open = th_open

    def link_open(self, tokens: Sequence[Token], idx: int, _options: Any, _env: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if not _WEB.match(address):
            return "<a>"  # a place in the source, which this server does not have
        return f'<a href="{escape(address)}" rel="noreferrer noopener">'


def _level(token: Token) -> int:
    return min(6, int(token.tag[1:]) + _TOP_HEADING - 1)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable(["table", "strikethrough"])
