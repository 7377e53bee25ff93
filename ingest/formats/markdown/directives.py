"""Removes the directives of documentation frameworks from Markdown: `:::note`, `!!! tip`, `{% raw %}`, `<Tabs>`.

Their content and titles stay. Section 2 of docs/chunking_spec_v2.md lists them. Lines in fenced code are kept.
"""

import re

from chunksink.ingest.formats.markdown.parser import COMPONENT

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?!.*`)|~{3,})")
_COLONS = r":{3,}[ \t]*(?:[\w-]+(?:\[(?P<colons>[^\[\]]*)\]|[ \t]+(?P<words>[^{}]+?))?)?[ \t]*(?:\{[^{}]*\})?"
_SLASHES = r"/{3,}(?:[ \t]+[\w-]+[ \t]*(?:\|(?P<slashes>.*))?)?"
_TEMPLATE = r"(?:(?:\{%(?:(?!%\}).)*%\}|\{\{[<%#](?:(?!\}\}).)*\}\}|\{\*(?:(?!\*\}).)*\*\})[ \t]*)+"
_LINE = re.compile(rf"(?:{_COLONS}|{_SLASHES}|{_TEMPLATE})\s*")
_INDENTING = re.compile(
    r'(?:(?:!!!|\?\?\?\+?)(?:[ \t]+[\w-]+)+[ \t]*(?:"(?P<marks>.*)")?|===[!+]*[ \t]+"(?P<tab>.*)")\s*'
)
_TITLE_OF_COMPONENT = re.compile(r"""\s(?:title|label|caption)=(?:"([^"]*)"|'([^']*)')""")
_IMPORT = re.compile(r"""import\s+(?:[\w*{][^'"]*\sfrom\s+)?(?P<quote>['"])[^'"]+(?P=quote);?\s*""")
_MODULE = re.compile(r"import\s+[\w*{'\"]|export\s+(?:default|const|let|var|function|async|class)\b|export\s*[{*]")
_STEP = 4  # columns of indentation
_MAX_LINE = 1000  # characters; matching a longer line could take quadratic time
_MAX_LINES = 40  # in the tag of a component, and from a directive to its content


def without_directives(lines: list[str], *, is_mdx: bool) -> list[str]:
    """The lines without directives, and without the indentation of their content."""
    shown: list[str | None] = []  # None: removed
    contents: list[int] = []  # of each open directive: the least indentation of its content
    fence = ""
    for number, line in enumerate(lines):
        if number < len(shown):  # removed with an earlier line
            continue
        words, indentation = line.strip(), _indentation(line)
        while contents and words and not fence and indentation < contents[-1]:
            contents.pop()
        if contents:
            line = " " * (indentation - _STEP * len(contents)) + line.lstrip()
        if len(words) > _MAX_LINE:
            shown.append(line)
        elif fence:
            is_end = words.startswith(fence) and not words.strip(fence[0])
            fence = "" if is_end else fence
            shown.append(line)
        elif opening := _FENCE.match(line):
            fence = opening[1]
            shown.append(line)
        elif (directive := _INDENTING.fullmatch(words)) and indentation + _STEP <= _indentation(
            next(filter(str.strip, lines[number + 1 : number + _MAX_LINES]), "")
        ):
            contents.append(indentation + _STEP)
            shown.append(_title(line, directive))
        elif directive := _LINE.fullmatch(words):
            shown.append(_title(line, directive))
        elif _is_module(lines, number, words, is_mdx=is_mdx):
            end = next((later for later in range(number, len(lines)) if not lines[later].strip()), len(lines))
            shown += [None] * (end - number if is_mdx else 1)
        elif tag := _component(lines, number, words):
            titles = [found[1] or found[2] or "" for found in _TITLE_OF_COMPONENT.finditer(tag)]
            shown += [" ".join(titles) or None, *[None] * tag.rstrip().count("\n")]
        else:
            shown.append(line)
    return _joined(shown) or [""]


def _joined(shown: list[str | None]) -> list[str]:
    """The lines that were not removed. At most one empty line replaces removed lines and the empty lines after them."""
    lines: list[str] = []
    is_gap = False
    for line in shown:
        is_gap = line is None or (is_gap and not line.strip())
        if not is_gap or (lines and lines[-1].strip()):
            lines.append(line or "")
    return lines


def _title(line: str, directive: re.Match[str]) -> str | None:
    title = next(filter(None, directive.groupdict().values()), "").strip()
    return line[: len(line) - len(line.lstrip())] + title if title else None


def _indentation(line: str) -> int:
    expanded = line.expandtabs(_STEP)
    return len(expanded) - len(expanded.lstrip())


def _is_module(lines: list[str], number: int, words: str, *, is_mdx: bool) -> bool:
    """Whether an `import` or `export` begins here. Outside of MDX only a whole import on one line counts."""
    if not words.startswith(("import", "export")):
        return False
    if not is_mdx:
        return _IMPORT.fullmatch(words) is not None
    return _MODULE.match(lines[number]) is not None and (number == 0 or not lines[number - 1].strip())


def _component(lines: list[str], number: int, words: str) -> str:
    """The tag of a component that begins here and has its lines to itself, or ""."""
    name = words.removeprefix("<").removeprefix("/")
    if not words.startswith("<") or not name[:1].isupper() or not name[1:2].islower():
        return ""
    tag = COMPONENT.match("\n".join([words, *lines[number + 1 : number + _MAX_LINES]]))
    return tag[0] if tag else ""
