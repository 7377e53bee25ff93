"""What chunks carry of the headings above them: words without attributes, not too many, and an anchor."""

import time

import orjson
import pytest

from chunksink.producers.markdown import MarkdownChunker, SourceVersion, parse
from chunksink.producers.markdown.headings import MAX_CARRIED
from chunksink.producers.markdown.records import Form
from chunksink.producers.text import paragraphs
from chunksink.sinks.projection import project_family
from tests.producers.support import CREATED_AT, PRODUCER, chunks_of, own_parts, without_space


@pytest.mark.parametrize(
    ("heading", "words", "anchor"),
    [
        ("## Usage {#usage-en}", "Usage", "usage-en"),
        ("## Usage {: #usage-en}", "Usage", "usage-en"),
        ("## Usage {.wide #usage-en key='a b' x=1}", "Usage", "usage-en"),
        ("## Usage ## {#usage}", "Usage", "usage"),
        ("## C# {#c-sharp} ##", "C#", "c-sharp"),
        ("Usage {#usage}\n---", "Usage", "usage"),
        ("## *Ü* `a`{#ü}", "Ü a", "ü"),
        ("## Notes {.unnumbered}", "Notes", None),
        ("## `useState` {/*usestate*/}", "useState", "usestate"),
        ("## 参考 {/* my-id */} ##", "参考", "my-id"),
        ("## Usage \\{/*usage*/}", "Usage {/usage/}", None),
        ("## Usage `{/*usage*/}`", "Usage {/*usage*/}", None),
        ("## Usage {/* to be written */}", "Usage {/* to be written */}", None),
        ("## {/*usage*/}", "{/usage/}", None),
        ("## Usage \\{#usage}", "Usage {#usage}", None),
        ("## Usage `{#usage}`", "Usage {#usage}", None),
        ("## The set {a, b}", "The set {a, b}", None),
        ("## if {x=1}", "if {x=1}", None),
        ("## {#a} first", "{#a} first", None),
    ],
)
def test_attributes_are_no_words(heading: str, words: str, anchor: str | None) -> None:
    (record,) = chunks_of(f"{heading}\n\nText.")
    assert record["metadata"]["headings_path"] == record["span"]["section"] == [words]
    assert record["metadata"].get("anchor") == anchor
    assert record["text"].startswith(heading.split("\n")[0]), "the text stays as it is written"


def test_headings_of_the_same_words_have_the_anchors_that_viewers_give_them() -> None:
    text = "# Log\n\n## 2.0\n\n### Fixed\n\na\n\n## 1.0\n\n### Fixed\n\nb\n\n### fixed {#own}\n\nc\n\n### *Fixed*!\n\nd"
    assert parse(text).anchors == {5: "fixed-1", 6: "own", 7: "fixed-2"}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("4.18.2 / 2022\n===\n\n* a\n\n4.18.1 / 2021\n===\n\n* b", None),
        ("# v2.0.0-rc.1\n\n# v1.9", None),
        ("# [1.2.3](https://ex.com)\n\n# Version 1.2.2", None),
        ("# 2.0 is here\n\nwords\n\n## Why", "2.0 is here"),
        ("# Tool\n\n# Install\n\n# 1.0", "Tool"),
        ("# 3 ways\n\n# 4 ways", "3 ways"),
    ],
)
def test_a_version_among_others_is_no_title(text: str, title: str | None) -> None:
    assert parse(text).metadata.get("title") == title


def test_an_anchor_is_that_of_its_section_and_of_no_other() -> None:
    records = chunks_of("before\n\n# A {#a}\n\ntext\n\n## B\n\ntext\n\n# C {#c}\n\ntext")
    assert [record["metadata"].get("anchor") for record in records] == [None, "a", None, "c"]
    assert [document.anchor for document in project_family(records)] == [None, "a", None, "c"]
    assert parse("# A\n\n# B {#b}").anchors == {2: "b"}


@pytest.mark.parametrize(
    "text",
    ["# " + "long heading " * 50_000, "long heading " * 20_000 + "\n---\n", "# " + "茶" * 300_000],
    ids=["atx", "setext", "chinese"],
)
def test_a_heading_without_end_is_carried_in_part_and_stands_whole_in_the_text(text: str) -> None:
    start = time.process_time()
    records = chunks_of(f"{text}\n\nBelow it.")
    assert time.process_time() - start < 10
    assert without_space("".join(own_parts(records))) == without_space(f"{text}Below it.")
    (carried,) = records[-1]["metadata"]["headings_path"]
    assert MAX_CARRIED // 2 < len(carried) <= MAX_CARRIED and carried.endswith("…")
    assert carried[:-1] in text and records[-1]["metadata"]["title"] == carried
    assert max(len(orjson.dumps(record)) for record in records) < 20_000


@pytest.mark.parametrize(
    "text", ["```" + "x" * 500_000 + "\ncode\n```", "|" + "x" * 300_000 + "|\n|---|\n" + "| cell |\n" * 900]
)
def test_neither_is_a_language_nor_the_head_of_a_table(text: str) -> None:
    records = chunks_of(text)
    assert max(len(orjson.dumps(record)) for record in records) < 20_000
    assert without_space("".join(own_parts(records))) == without_space(text)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('<h1 align="center">Rocket</h1>\n\n## Table of contents', "Rocket"),
        (
            '<div align="center">\n<h1>\n  <img src="r.png">\n  Rocket &amp;\n  <b>Co</b>\n</h1>\n</div>\n\n## T',
            "Rocket & Co",
        ),
        ("## Contents\n\n# Rocket\n\n# Other", "Rocket"),
        ("## Contents\n\n<h1>Rocket</h1>\n\n# Other", "Rocket"),
        ("# Rocket\n\n<h1>Other</h1>", "Rocket"),
        ("## Contents\n\n### Deeper\n\n### Deeper", "Contents"),
        ("---\ndate: 2024-05-01\n---\n\n<!-- a -->\n\n![b](b.png) [![c](c.png)](c.md)\n\n## Contents", "Contents"),
        ('<p align="center">\n<img src="r.png">\n</p>\n\n[r]: r.md\n\n---\n\n## Contents', "Contents"),
        ("## Types\n\nWords.\n\n## Improvements", None),
        ("### Types\n\nWords.\n\n## Improvements", None),
        ("Words.\n\n## Types", None),
        ("- Words.\n\n## Types", None),
        ("<p>Words.</p>\n\n## Types", None),
        ("```\ncode\n```\n\n## Types", None),
        ("#\n\n## Types", None),
        ('<h1><img src="r.png"></h1>\n\n## Contents', "Contents"),
        ("<!-- <h1>Old</h1> -->\n\n## Contents", "Contents"),
        ("> <h1>Quoted</h1>\n\n- # Listed\n\n## Contents", None),
        ("<h1>Open\n\n## Contents", None),
        ("> # Quoted\n\n## Contents", None),
        ("---\ntitle: Said\n---\n<h1>Rocket</h1>", "Said"),
        ("Words.", None),
    ],
)
def test_the_title_is_the_first_heading_of_the_top_level_or_the_one_that_opens(text: str, title: str | None) -> None:
    assert {record["metadata"].get("title") for record in chunks_of(text, uri="")} == {title}


@pytest.mark.parametrize(
    ("uri", "title"),
    [
        ("notes/Tea & cake.md", "Tea & cake"),
        ("notes/2024-05-01.md", "2024-05-01"),
        ("notes/Chapter 1.2", "Chapter 1.2"),
        ("notes/a.tar.md", "a.tar"),
        ("notes/.md", ".md"),
        ("notes/tea/README.md", "tea"),
        ("notes/tea/index.html", "tea"),
        ("notes/tea/_Index.md", "tea"),
        ("README.md", "README"),
        ("a\x1b\u0085b .md", "a b"),
        ("notes/", None),
    ],
)
def test_a_text_that_has_no_title_is_called_as_its_file(uri: str, title: str | None) -> None:
    assert chunks_of("Words.", uri=uri)[0]["metadata"].get("title") == title
    assert chunks_of("# Own", uri=uri)[0]["metadata"]["title"] == "Own"


def test_hostile_headings_cost_no_time() -> None:
    for text in ("<h1>" * 100_000, "<div>\n" + "<h1 " * 100_000, "<div>\n" + "<h1>x<" * 100_000):
        assert "title" not in parse(text).metadata


def test_nor_is_a_title_that_another_reader_found() -> None:
    form = Form(("x", "1"), "x", "x")
    document = paragraphs("Text", {"title": "long title " * 500, "author": "x" * 5000})
    version = SourceVersion.of("a", b"")
    (record,) = MarkdownChunker().cut(document, version, form, created_at=CREATED_AT, producer=PRODUCER)
    assert len(record["metadata"]["title"]) <= MAX_CARRIED
    assert [len(author) for author in record["metadata"]["authors"]] == [MAX_CARRIED]


def test_attributes_are_found_in_time_in_proportion() -> None:
    start = time.process_time()
    for heading in (
        "# " + "{#a " * 100_000,
        "# " + "{#a" + " .b" * 100_000,
        "# {#a" + " b=" * 100_000,
        "# a" + " " * 200_000 + "{",
        "# " + "{/*a " * 100_000,
        "# {/*" + " " * 200_000 + "a",
    ):
        chunks_of(heading)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("heading", ["{#if}", "{#each items}", "{#a .b}"])
def test_braces_alone_are_the_words_of_a_heading(heading: str) -> None:
    (chunk,) = chunks_of(f"# Docs\n\n## {heading}\n\nwords\n")[-1:]
    assert chunk["metadata"]["headings_path"][-1] == heading
    assert "anchor" not in chunk["metadata"]
