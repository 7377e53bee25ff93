"""Embedded data and readings of ruby are removed from text and links, and the words beside them stay."""

import pytest

from tests.ingest.markdown.support import chunks_of, own_parts, texts_of
from tests.ingest.reading import solid

DATA = "data:image/png;base64," + "iVBORw0KGgo+/=" * 400
LONG = "https://a.example/" + "x" * 5000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"One ![two]({DATA}) three.", "One two three."),
        (f"One\n![two\n  words](\n{DATA}) three.", "One\ntwo\nwords\n three."),
        (f'One ![two]({DATA} "The title") three.', 'One ![two]( "The title") three.'),
        (f"One ![a [b] c]({DATA}) three.", "One ![a [b] c]() three."),
        (f"One [![two]({DATA})](b.md) three.", "One [two](b.md) three."),
        (f"One [two]({DATA}) ![three](data:image/svg+xml,%3Csvg%20a='b(1)'/%3E) four.", "One two three four."),
        (f"One <{DATA}> two.", "One two."),
        (f'One <img alt="two" src="{DATA}" width="3"> four.', 'One <img alt="two" width="3"> four.'),
        (f'<p>\n<img src="{DATA}\nAAAA" alt="two">\n</p>', '<p>\n<img \n alt="two">\n</p>'),
        (f"One ![two][Image1] [three][IMAGE1] ![image1] four.\n\n[image1]: {DATA}", "One two three image1 four."),
        (f"One ![two][i].\n\n[i]: {DATA}\n  'A\n  title'\n\nThree.", "One two.\n\nA title\n\nThree."),
        (f"One ![two][i].\n\n[i]: b.png\n[i]: {DATA}", "One ![two][i].\n\n[i]: b.png"),
        (f"> One ![two]({DATA})\n> three.", "> One two\n> three."),
        (f"| a | b |\n|---|---|\n| ![one]({DATA}) | ![two]({DATA}) |", "| a | b |\n|---|---|\n| one | two |"),
        (f"One \\[two\\]({LONG[:40]}) three.", f"One \\[two\\]({LONG[:40]}) three."),
    ],
)
def test_embedded_data_is_removed_and_its_words_stay(text: str, expected: str) -> None:
    records = chunks_of(text)
    assert solid("".join(own_parts(records))) == solid(expected)
    assert records[0]["text"].split()[:5] == expected.split()[:5]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# <ruby>避<rp>(</rp><rt>ひ</rt><rp>)</rp></ruby><RUBY><rb>難<rt>なん</RUBY>場所", "# 避難場所"),
        ("<p><ruby lang=ja>避<rb>難<rt>ひ<rt>なん<rtc><rt>x</rt></rtc></ruby></p>", "<p>避難</p>"),
        ("| a |\n|---|\n| <ruby>避<rt>ひ</rt></ruby> |", "| a |\n|---|\n| 避 |"),
        *((same, same) for same in ("`<ruby>避<rt>ひ</rt></ruby>`", "\\<ruby>避<rt>ひ</ruby>", "Use <Ruby> in <RT>.")),
    ],
)
def test_readings_of_ruby_are_removed_except_in_code(text: str, expected: str) -> None:
    assert texts_of(text) == [expected]


def test_embedded_data_is_no_link_and_hides_none() -> None:
    text = f"![a]({DATA}) [b](b.md) ![][i] [c]({LONG}) <https://a.example/d> [e][i]\n\n[i]: <{DATA}>\n"
    (record,) = chunks_of(text)
    assert [link["url"] for link in record["metadata"]["links"]] == ["b.md", "https://a.example/d"]
    assert record["text"] == "a [b](b.md) c <https://a.example/d> e"


@pytest.mark.parametrize(
    "text", ["Returns Promise<data:Foo> value and <data:Bar>", "[note]: data:loss", "Set <data:text/plain>."]
)
def test_text_that_only_begins_like_data_stays(text: str) -> None:
    (record,) = chunks_of(text)
    assert record["text"] == text
    assert "links" not in record["metadata"]


@pytest.mark.parametrize("data", ["data:,Hi", "data:text/plain;charset=utf-8;base64,AAAA", "DATA:;base64,AAAA"])
def test_data_address_of_any_form_is_removed(data: str) -> None:
    assert texts_of(f"One <{data}> two.") == ["One two."]


def test_long_address_in_the_text_stays_and_is_no_link() -> None:
    records = chunks_of(f"<{LONG}> and {LONG} and ![a [b] c][i]\n\n[i]: {DATA}")
    assert "".join(own_parts(records)).count("x" * 5000) == 2
    assert not any("links" in record["metadata"] for record in records)


def test_embedded_data_in_code_stays() -> None:
    text = f"```html\n<img src='{DATA[:300]}'>\n```"
    assert texts_of(text) == [text]
    span = f"One `![two]({DATA[:300]})` three."
    assert texts_of(span) == [span]
    assert texts_of(f"    ![a]({DATA[:300]})") == [f"![a]({DATA[:300]})"]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        (f"# ![]({DATA})", ["#"]),
        (f"```\nx\n```\n\n![]({DATA})", ["```\nx\n```"]),
        (f"# Head\n\n![]({DATA})\n\n```\ncode\n```", ["# Head", "# Head\n\n\n\n```\ncode\n```"]),
    ],
)
def test_blocks_left_without_words_do_not_change_their_neighbours(text: str, texts: list[str]) -> None:
    assert texts_of(text) == texts


def test_export_with_many_large_images_is_small() -> None:
    """Google Docs writes each image as a definition at the end."""
    image = "[image{}]: <data:image/png;base64," + "A" * 2_500_000 + ">\n"
    used = "![][image1]![][image2]![][image3]![][image4] words"
    text = f"# Doc\n\n{used}\n\n" + "\n".join(image.format(number) for number in range(1, 5))
    assert texts_of(text) == ["# Doc\n\n words"]
