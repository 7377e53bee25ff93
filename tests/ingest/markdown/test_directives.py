"""Directives of documentation frameworks, which the chunking specification v2 removes; their content stays."""

import time
from pathlib import Path

import pytest

from chunksink.ingest.formats.markdown import MarkdownFormat
from chunksink.ingest.formats.markdown.directives import without_directives
from chunksink.ingest.formats.markdown.passages import cut
from chunksink.ingest.formats.markdown.policy import V2
from chunksink.ingest.formats.markdown.structure import parse
from tests.ingest.markdown.test_properties import SECONDS
from tests.ingest.reading import read_items, texts


def shown(text: str, *, is_mdx: bool = False) -> str:
    return "\n".join(without_directives(text.split("\n"), is_mdx=is_mdx))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":::note\n\nKeep it dry.\n\n:::\n\nMore.", "\nKeep it dry.\n\nMore."),
        (":::tip[Tea *first*]\nBoil.\n:::", "Tea *first*\nBoil.\n"),
        ("::: warning Hot water\nBoil.\n:::", "Hot water\nBoil.\n"),
        ("::: {.callout-note}\nBoil.\n:::", "Boil.\n"),
        ("/// tip | Hot water\n\nBoil.\n\n///", "Hot water\n\nBoil.\n"),
        ("//// tab\n\n/// note\n\nBoil.\n\n///\n\n////", "Boil.\n"),
        ('!!! tip "Hot water"\n    Boil.\n\n        code\n\nMore.', "Hot water\nBoil.\n\n    code\n\nMore."),
        ("!!! note\n    One.\n\n    ??? note\n        Two.\n\n    Three.\n", "One.\n\nTwo.\n\nThree.\n"),
        ("!!! note\n\tOne.", "One."),
        ('=== "Windows"\n\n    Boil.\n\n=== "macOS"\n\n    Wait.', "Windows\n\nBoil.\n\nmacOS\n\nWait."),
        ("- item\n\n    !!! note\n        Boil.\n- more", "- item\n\n    Boil.\n- more"),
        ("{% raw %}\n{{ tea }}\n{% endraw %}", "{{ tea }}\n"),
        ("{{< note >}}\nBoil.\n{{< /note >}}\n{{#include tea.md}}\n{* tea.py hl[1] *}", "Boil.\n"),
        ('<Tabs\n  groupId="a"\n>\n<TabItem label="npm">\n\nRun.\n\n</TabItem>\n</Tabs>', "npm\n\nRun.\n"),
        ("import Tabs from '@theme/Tabs';\n\nText.", "Text."),
    ],
)
def test_directives_are_removed_and_titles_and_content_stay(text: str, expected: str) -> None:
    assert shown(text).lstrip("\n") == expected.lstrip("\n")


@pytest.mark.parametrize(
    "text",
    [
        "```\n:::note\n!!! x\n    y\n{% raw %}\nimport a from 'b'\n```",
        "~~~~ md\n```\n:::\n~~~\n:::\n~~~~",
        "!!! This is no directive, for nothing is indented below.\n\nText.",
        "::: fastapi.FastAPI\n    options: none",
        "a ::: b\n\na /// b\n\n<Type as Trait>::function()\n\n<div>\n\n<Card>Text</Card>",
        "import this into the other file\n\nexport it",
        "Use {{ tea }} here.\n\n\n\nMore.",
        "Heading\n===",
    ],
)
def test_other_lines_are_kept(text: str) -> None:
    assert shown(text) == text


def test_module_statements_are_removed_from_mdx() -> None:
    text = "import A from 'a'\nimport {\n  B,\n} from 'b'\n\nexport const c = 1\n\nText.\nexport const d\n\nexport it"
    assert shown(text, is_mdx=True) == "Text.\nexport const d\n\nexport it"


@pytest.mark.parametrize(
    "text",
    [
        *("{% a %} " * 20_000 + "x", "::: a" + " " * 50_000 + "{", "::: a[" + "b" * 50_000, "!!! " + "a " * 20_000),
        *("!!! a\n" * 10_000, "".join("    " * min(depth, 50) + "!!! a\n" for depth in range(1_000))),
        *("<Tabs\n" * 10_000, "<Tabs " + "a " * 10_000, "import a\n" * 10_000 + "\n\nText.", "`a``b. C " * 10_000),
    ],
    ids=lambda text: text[:8].strip(),
)
def test_hostile_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    document = parse(text, is_mdx=True, drops_directives=True)
    assert list(cut(document, V2))
    assert time.process_time() - start < SECONDS


def test_content_of_an_admonition_is_no_indented_code() -> None:
    document = parse("# A\n\n!!! note\n\n    Text with a [link](b.md).\n\n    - item\n", drops_directives=True)
    assert [(block.kind.value, block.element) for block in document.blocks] == [
        ("prose", ""),
        ("prose", ""),
        ("prose", "ul[1]"),
    ]
    assert [link.url for link in document.links] == ["b.md"]


def test_front_matter_is_kept_and_v1_keeps_directives(tmp_path: Path) -> None:
    file = tmp_path / "a.mdx"
    file.write_text("---\ntitle: A\n---\nimport A from 'a'\n\n:::note\n\nText.\n\n:::\n")
    format_ = MarkdownFormat()
    assert texts(read_items(format_.with_policy(V2), file)) == [["---\ntitle: A\n---", "Text."]]
    assert any(":::note" in text for text in texts(read_items(format_, file))[0])
