"""The headings in chunks below them: words without attributes, limited in length, an anchor, and the title."""

import time

import orjson
import pytest

from chunksink.ingest.formats.markdown.document import Block, Kind, Structure
from chunksink.ingest.formats.markdown.normalise import MAX_REPEATED
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.ingest.model import Family
from chunksink.sinks.projection import project_family
from tests.ingest.markdown.support import chunks_of, items_of, own_parts, source_of
from tests.ingest.reading import solid


@pytest.mark.parametrize(
    ("heading", "words", "anchor"),
    [
        ("## Usage {#usage-en}", "Usage", "usage-en"),
        ("## Usage {.wide #usage-en key='a b' x=1}", "Usage", "usage-en"),
        ("## C# {#c-sharp} ##", "C#", "c-sharp"),
        ("Usage {#usage}\n---", "Usage", "usage"),
        ("## *Ü* `a`{#ü}", "Ü a", "ü"),
        ("## Notes {.unnumbered}", "Notes", None),
        ("## `useState` {/*usestate*/}", "useState", "usestate"),
        ("## Usage `{/*usage*/}`", "Usage {/*usage*/}", None),
        ("## {/*usage*/}", "{/usage/}", None),
        ("## Usage \\{#usage}", "Usage {#usage}", None),
        ("## Usage `{#usage}`", "Usage {#usage}", None),
        ("## The set {a, b}", "The set {a, b}", None),
        ("## {#each items}", "{#each items}", None),
    ],
)
def test_heading_attributes_are_an_anchor_and_not_words(heading: str, words: str, anchor: str | None) -> None:
    (record,) = chunks_of(f"{heading}\n\nText.")
    assert record["metadata"]["headings_path"] == record["span"]["section"] == [words]
    assert record["metadata"].get("anchor") == anchor
    assert record["text"].startswith(heading.split("\n")[0])


def test_anchors_of_repeated_headings_are_numbered_as_viewers_do() -> None:
    text = "# Log\n\n## 2.0\n\n### Fixed\n\na\n\n## 1.0\n\n### Fixed\n\nb\n\n### fixed {#own}\n\nc\n\n### *Fixed*!\n\nd"
    assert parse(text).anchors == {5: "fixed-1", 6: "own", 7: "fixed-2"}


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("4.18.2 / 2022\n===\n\n* a\n\n4.18.1 / 2021\n===\n\n* b", None),
        ("# [1.2.3](https://ex.com)\n\n# Version 1.2.2", None),
        ("# 2.0 is here\n\nwords\n\n## Why", "2.0 is here"),
        ("# Tool\n\n# Install\n\n# 1.0", "Tool"),
    ],
)
def test_title_is_not_one_version_of_several(text: str, title: str | None) -> None:
    assert parse(text).metadata.get("title") == title


def test_anchor_belongs_to_its_section_only() -> None:
    records = chunks_of("before\n\n# A {#a}\n\ntext\n\n## B\n\ntext\n\n# C {#c}\n\ntext")
    assert [record["metadata"].get("anchor") for record in records] == [None, "a", None, "c"]
    assert [document.anchor for document in project_family(records)] == [None, "a", None, "c"]
    assert parse("# A\n\n# B {#b}").anchors == {2: "b"}


@pytest.mark.parametrize(
    "text",
    ["# " + "long heading " * 50_000, "long heading " * 20_000 + "\n---\n", "# " + "茶" * 300_000],
    ids=["atx", "setext", "chinese"],
)
def test_endless_heading_is_carried_in_part_and_whole_in_the_text(text: str) -> None:
    start = time.process_time()
    records = chunks_of(f"{text}\n\nBelow it.")
    assert time.process_time() - start < 10
    assert solid("".join(own_parts(records))) == solid(f"{text}Below it.")
    (carried,) = records[-1]["metadata"]["headings_path"]
    assert MAX_REPEATED // 2 < len(carried) <= MAX_REPEATED and carried.endswith("…")
    assert carried[:-1] in text and records[-1]["metadata"]["title"] == carried
    assert max(len(orjson.dumps(record)) for record in records) < 20_000


@pytest.mark.parametrize(
    "text", ["```" + "x" * 500_000 + "\ncode\n```", "|" + "x" * 300_000 + "|\n|---|\n" + "| cell |\n" * 900]
)
def test_endless_language_or_table_header_is_carried_in_part(text: str) -> None:
    records = chunks_of(text)
    assert max(len(orjson.dumps(record)) for record in records) < 20_000
    assert solid("".join(own_parts(records))) == solid(text)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('<h1 align="center">Rocket</h1>\n\n## Table of contents', "Rocket"),
        (
            '<div align="center">\n<h1>\n  <img src="r.png">\n  Rocket &amp;\n  <b>Co</b>\n</h1>\n</div>\n\n## T',
            "Rocket & Co",
        ),
        ("# Rocket\n\n<h1>Other</h1>", "Rocket"),
        ("## Contents\n\n### Deeper\n\n### Deeper", "Contents"),
        ("---\ndate: 2024-05-01\n---\n\n<!-- a -->\n\n![b](b.png) [![c](c.png)](c.md)\n\n## Contents", "Contents"),
        ('<p align="center">\n<img src="r.png">\n</p>\n\n[r]: r.md\n\n---\n\n## Contents', "Contents"),
        ("## Types\n\nWords.\n\n## Improvements", None),
        ("<p>Words.</p>\n\n## Types", None),
        ("#\n\n## Types", None),
        ('<h1><img src="r.png"></h1>\n\n## Contents', "Contents"),
        ("<!-- <h1>Old</h1> -->\n\n## Contents", "Contents"),
        ("> <h1>Quoted</h1>\n\n- # Listed\n\n## Contents", None),
        ("<h1>Open\n\n## Contents", None),
        ("---\ntitle: Said\n---\n<h1>Rocket</h1>", "Said"),
    ],
)
def test_title_is_the_first_top_heading_or_the_opening_one(text: str, title: str | None) -> None:
    assert {record["metadata"].get("title") for record in chunks_of(text, uri="")} == {title}


@pytest.mark.parametrize(
    ("uri", "title"),
    [
        ("notes/Tea & cake.md", "Tea & cake"),
        ("notes/a.tar.md", "a.tar"),
        ("notes/tea/README.md", "tea"),
        ("notes/tea/_Index.md", "tea"),
        ("README.md", "README"),
        ("a\x1b\u0085b .md", "a b"),
        ("notes/", None),
    ],
)
def test_title_without_a_heading_is_the_file_name(uri: str, title: str | None) -> None:
    assert chunks_of("Words.", uri=uri)[0]["metadata"].get("title") == title
    assert chunks_of("# Own", uri=uri)[0]["metadata"]["title"] == "Own"


def test_metadata_of_another_reader_is_carried_in_part() -> None:
    metadata = {"title": "long title " * 500, "authors": ["A"]}
    document = Structure("Text", (Block(Kind.PROSE, 0, 4, 0),), ((),), (), metadata)
    (family,) = items_of(document, source_of(b"", "a"))
    assert isinstance(family, Family)
    found = family.chunks[0]["metadata"]
    assert len(found["title"]) <= MAX_REPEATED
    assert found["authors"] == ["A"]
