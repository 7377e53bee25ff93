"""Data in the text itself is no text and no link, and takes no words with it. A line too long fails its source."""

import time

import pytest

from chunksink.producers.errors import SourceFailed
from chunksink.producers.markdown import MarkdownChunker
from chunksink.producers.markdown.records import Form, SourceVersion
from chunksink.producers.text import TextChunker, paragraphs
from tests.producers.bench import Bench
from tests.producers.support import CREATED_AT, PRODUCER, chunks_of, own_parts, texts_of, without_space

DATA = "data:image/png;base64," + "iVBORw0KGgo+/=" * 400
LONG = "https://a.example/" + "x" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"One ![two]({DATA}) three.", "One two three."),
        (f"One ![two](<{DATA}>) three.", "One two three."),
        (f"One\n![two\n  words](\n{DATA}) three.", "One\ntwo\nwords\n three."),
        (f'One ![two]({DATA} "The title") three.', 'One ![two]( "The title") three.'),
        (f"One ![a [b] c]({DATA}) three.", "One ![a [b] c]() three."),
        (f"One [![two]({DATA})](b.md) three.", "One [two](b.md) three."),
        (f"One [two]({DATA}) ![three](data:image/svg+xml,%3Csvg%20a='b(1)'/%3E) four.", "One two three four."),
        (f"One [two]({LONG}) ![three]({LONG}) four.", "One two three four."),
        (f"One <{DATA}> two.", "One two."),
        (f'One <img alt="two" src="{DATA}" width="3"> four.', 'One <img alt="two" width="3"> four.'),
        (f'<p>\n<img src="{DATA}\nAAAA" alt="two">\n</p>', '<p>\n<img \n alt="two">\n</p>'),
        (f"One ![][image1] two.\n\n[image1]: <{DATA}>", "One two."),
        (f"One ![two][Image1] [three][IMAGE1] ![image1] four.\n\n[image1]: {DATA}", "One two three image1 four."),
        (f"One [image1](b.md) [two][x].\n\n[image1]: {DATA}\n[x]: c.md", "One [image1](b.md) [two][x].\n\n[x]: c.md"),
        (f"One ![two][i].\n\n[i]: {DATA}\n  'A\n  title'\n\nThree.", "One two.\n\nA title\n\nThree."),
        (f"One ![two][i].\n\n[i]: b.png\n[i]: {DATA}", "One ![two][i].\n\n[i]: b.png"),
        (f"> One ![two]({DATA})\n> three.", "> One two\n> three."),
        (f"| a | b |\n|---|---|\n| ![one]({DATA}) | ![two]({DATA}) |", "| a | b |\n|---|---|\n| one | two |"),
        (f"# One ![two]({DATA})\n\nThree.", "# One two\n\nThree."),
        (f"One \\[two\\]({LONG[:40]}) three.", f"One \\[two\\]({LONG[:40]}) three."),
        ("The data: as [expected](data.md).", "The data: as [expected](data.md)."),
    ],
)
def test_the_words_stay_and_nothing_else_of_the_text_goes(text: str, expected: str) -> None:
    records = chunks_of(text)
    assert without_space("".join(own_parts(records))) == without_space(expected)
    assert records[0]["text"].split()[:5] == expected.split()[:5], "words are parted as before"


def test_they_are_no_links_and_hide_none() -> None:
    text = f"![a]({DATA}) [b](b.md) ![][i] [c]({LONG}) <https://a.example/d> [e][i]\n\n[i]: <{DATA}>\n"
    (record,) = chunks_of(text)
    assert [link["url"] for link in record["metadata"]["links"]] == ["b.md", "https://a.example/d"]
    assert record["text"] == "a [b](b.md) c <https://a.example/d> e"


@pytest.mark.parametrize(
    "text", ["Returns Promise<data:Foo> value and <data:Bar>", "[note]: data:loss", "Set <data:text/plain>."]
)
def test_what_only_begins_like_data_is_text(text: str) -> None:
    (record,) = chunks_of(text)
    assert record["text"] == text
    assert "links" not in record["metadata"]


@pytest.mark.parametrize("data", ["data:,Hi", "data:text/plain;charset=utf-8;base64,AAAA", "DATA:;base64,AAAA"])
def test_data_is_what_says_that_it_is(data: str) -> None:
    assert texts_of(f"One <{data}> two.") == ["One two."]


def test_a_long_address_that_is_the_text_stays_and_is_no_link() -> None:
    records = chunks_of(f"<{LONG}> and {LONG} and ![a [b] c][i]\n\n[i]: {DATA}")
    assert "".join(own_parts(records)).count("x" * 5000) == 2
    assert not any("links" in record["metadata"] for record in records)


def test_code_stays_as_it_is_written() -> None:
    text = f"```html\n<img src='{DATA[:300]}'>\n```"
    assert texts_of(text) == [text]
    span = f"One `![two]({DATA[:300]})` three."
    assert texts_of(span) == [span]
    assert texts_of(f"    ![a]({DATA[:300]})") == [f"![a]({DATA[:300]})"]


def test_a_document_of_images_alone_has_no_text() -> None:
    assert chunks_of(f"![]({DATA})\n\n![][i]\n\n[i]: <{DATA}>\n") == []


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        (f"# ![]({DATA})", ["#"]),
        (f"# ![]({DATA})\n\n# Next", ["#", "# Next"]),
        (f"```\nx\n```\n\n![]({DATA})", ["```\nx\n```"]),
        (f"# Head\n\n![]({DATA})\n\n```\ncode\n```", ["# Head", "# Head\n\n\n\n```\ncode\n```"]),
    ],
)
def test_what_is_left_without_words_changes_nothing_beside_it(text: str, texts: list[str]) -> None:
    assert texts_of(text) == texts


def test_an_export_with_many_images_is_ingested(bench: Bench) -> None:
    """As Google Docs writes it: each image is a definition at the end."""
    image = "[image{}]: <data:image/png;base64," + "A" * 2_500_000 + ">\n"
    used = "![][image1]![][image2]![][image3]![][image4] words"
    bench.write("doc.md", f"# Doc\n\n{used}\n\n" + "\n".join(image.format(number) for number in range(1, 5)))
    bench.write("good.md", "# Good")
    assert bench.ingest().failures == ()
    assert bench.texts("doc.md") == ["# Doc\n\n words"]
    bench.assert_valid()


@pytest.mark.parametrize(
    "text",
    [
        "![](data:" * 20_000,
        "![a](data:" + "(" * 100_000,
        "<img src=data:" * 20_000,
        "data: " + "".join("`" * length + " " for length in range(1, 1000)),
        "[a][b" * 20_000 + "\n\n[b]: data:x",
        "![a](" + ("x" * 4097 + "(") * 50,
        "![a](data:x" + "\\(x)" * 50_000,
        "|" + "[a]|" * 4_000 + "\n|" + "-|" * 4_000 + "\n\n[b]: data:x",
    ],
    ids=lambda text: text[:12],
)
def test_hostile_texts_take_time_in_proportion(text: str) -> None:
    start = time.process_time()
    chunks_of(text)
    assert time.process_time() - start < 5


def test_a_chunk_that_no_partition_takes_fails_its_source_and_no_other(bench: Bench) -> None:
    bench.write("a.md", "# Good")
    bench.write("b.md", "# Wide\n\n```\na" + " " * 9_000_000 + "b\n```\n")
    bench.write("c.md", "# Good too")
    (failure,) = bench.ingest().failures
    assert (failure.source_uri, failure.code) == ("b.md", "SCHEMA_INVALID:line_too_long")
    assert failure.reason == "chunk 1 is longer than 8 MiB"
    assert {record["provenance"]["source_uri"] for record in bench.records()} == {"a.md", "c.md"}
    assert [row["source_uri"] for row in bench.attempts(status="failed")] == ["b.md"]
    bench.assert_valid()


def test_every_chunker_refuses_it() -> None:
    data = ("a" + " " * 9_000_000 + "b").encode()
    with pytest.raises(SourceFailed, match="chunk 0 is longer than 8 MiB"):
        TextChunker().chunks(data, SourceVersion.of("a.txt", data), created_at=CREATED_AT, producer=PRODUCER)


def test_a_title_that_no_json_can_carry_fails_its_source() -> None:
    document = paragraphs("Text", {"title": "\ud800"})
    form = Form(("x", "1"), "x", "x")
    with pytest.raises(SourceFailed, match="not a value that JSON can carry"):
        MarkdownChunker().cut(document, SourceVersion.of("a", b""), form, created_at=CREATED_AT, producer=PRODUCER)
