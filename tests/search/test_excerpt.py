"""Excerpts: cut between words if possible, without markup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chunksink.search.excerpt import beginning, ending, excerpt, pattern_of, plain_text, snippet
from chunksink.search.page.passage_text import as_html
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Piece
from tests.search.support import document

MARKDOWN = document(mime_type="text/markdown", headings=("The Book", "Use `it` now"))
PLAIN = document(mime_type="text/plain")
CHINESE = "Rust 里的所有权是一组规则它管理程序如何使用内存"


def pieces(text: str) -> list[Piece]:
    """The text between ‹ and › is a match."""
    return [Piece(part, match=number % 2 == 1) for number, part in enumerate(re.split("[‹›]", text)) if part]


def displayed(text: str, document: Document = MARKDOWN) -> list[Piece]:
    """As a view shows a text in which an engine has found the marked words."""
    found = pieces(text)
    document = replace(document, text="".join(piece.text for piece in found))
    return list(excerpt(snippet(found, document, pattern_of([found])) if "‹" in text else (), document))


def test_part_of_a_word_in_one_text_is_not_marked_in_the_words_of_others() -> None:
    found = pieces("start of the ‹art› gallery")
    words = pattern_of([pieces("p‹art›y"), found])
    assert snippet(found, document(text="start of the art gallery"), words) == tuple(found)
    assert snippet(pieces("p‹art›y"), document(text="party"), pattern_of([pieces("p‹art›y")])) == tuple(
        pieces("p‹art›y")
    )


def test_excerpt_of_code_begins_one_line_above_the_word() -> None:
    code = replace(PLAIN, anchor="L41")
    before = "\n".join(f"    value_{number} = {number}" for number in range(40))
    shown = displayed(f"{before}\nif done:\n    return ‹boat›\n", code)
    assert shown == pieces("if done:\n    return ‹boat›\n")
    assert displayed("a ‹boat›\n  sails", code) == pieces("a ‹boat›\n  sails")


def test_vowel_signs_are_parts_of_words() -> None:
    assert displayed("‹दान› दाना दून", PLAIN) == pieces("‹दान› दाना दून")


def test_word_ends_where_a_script_without_spaces_begins() -> None:
    words = pattern_of([pieces("ERR-‹1150› means"), pieces("ERR-‹1150›表示"), pieces("‹thế› ‹配置›")])
    assert snippet((Piece("…"),), document(text="1150表示, 11507, thến配置"), words) == tuple(
        pieces("‹1150›表示, 11507, thến‹配置›")
    )
    assert displayed("電話０１０－１２３４、約‹１０›秒", PLAIN) == pieces("電話０１０－１２３４、約‹１０›秒")


def test_texts_are_cut_between_characters() -> None:
    assert beginning("ที่ที่ที่", 4) == "ที่ที่…"
    assert ending("ที่ที่ที่", 4) == "…ที่"
    assert ending("ที่ที่ที่", 6) == "…ที่ที่"
    assert displayed("อะแดปเ‹ตอ›, รีเตอร์, ตอ", PLAIN) == pieces("อะแดปเ‹ตอ›, รีเ‹ตอ›ร์, ‹ตอ›")
    assert displayed("‹ตอ› ตอี่", PLAIN) == pieces("‹ตอ› ‹ตอี่›")


def test_texts_are_cut_between_words() -> None:
    assert beginning("one two", 7) == ending("one two", 7) == "one two"
    assert beginning("one two three", 9) == "one two …"
    assert ending("one two three", 11) == "… two three"


def test_very_long_words_are_cut() -> None:
    assert beginning("a " + "x" * 10, 7) == "a xxxxx…"
    assert ending("x" * 10 + " a", 7) == "…xxxxx a"
    assert beginning(CHINESE, 12) == "Rust 里的所有权是一…"
    assert ending(f"{CHINESE} 和 b", 12) == "…程序如何使用内存 和 b"


def test_markdown_is_known_by_its_media_type_or_file_type() -> None:
    table = "| part | price |\n|---|---|\n| ‹cat› | 3 |"
    for known in (document(file_type="md"), document(file_type="MARKDOWN"), MARKDOWN):
        assert displayed(table, known) == pieces("part price\n‹cat› 3")
    assert displayed(table, document(file_type="txt")) == pieces(table)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('see [the book](https://example.org/a_(b).html) and ![a ‹cat›](c.png "Cats")', "see the book and a ‹cat›"),
        ("请使用[本‹专用›流](https://example.org/x)。", "请使用本‹专用›流。"),
        ("[‹cat›](‹cat›.html)", "‹cat›"),
        ("see [a ‹cat›][b]\n\n[b]: cat.html 'Cats'", "see a ‹cat›"),
        ("a **big** _‹cat›_ ~~sits~~ on snake_case", "a big ‹cat› sits on snake_case"),
        ("## Then { #then }\n\na\n===\n\nbig ‹cat›", "Then\na\nbig ‹cat›"),
        ("a\n```sh\n# a **‹cat›**\n  $x\n```\n`` a`*b* ``", "a\n# a **‹cat›**\n  $x\na`*b*"),
        ("| a | ‹cat› |\n|---|:---:|\n| | sits\\|lies |", "a ‹cat›\nsits|lies"),
        ("1. a\n2. ‹cat›\n\n* sits", "1. a\n2. ‹cat›\n- sits"),
        (":::warning\na ‹cat›\n:::", "a ‹cat›"),
        ("<p><img src='x.png'></p>\n\na <b>big</b> ‹cat›<br>&amp; `<b>`", "a big ‹cat› & <b>"),
    ],
)
def test_snippet_of_markdown_has_its_words(text: str, shown: str) -> None:
    assert displayed(text) == pieces(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "See [[Calibration protocol|how we ‹calibrated›]] and ![[photo.png]]. The result was "
            "==surprisingly linear==. ^block1 %% hidden comment zanzibar %%",
            "See how we ‹calibrated› and . The result was surprisingly linear.",
        ),
        ("> [!warning] Corrosion\n> of [[a#b|a **‹cat›**]], [[a]]", "Corrosion\nof a ‹cat›, a"),
        ("> [!note]-\n> ‹cat› ^id\n\n%% x\ny %%", "‹cat›"),
        ("| [[a\\|‹cat›]] | ==b *c*== |\n|---|---|", "‹cat› b c"),
        ("[a [[b]] c](d) [[1]](e) ‹cat› 这是==重点==内容", "a b c [1] ‹cat› 这是重点内容"),
        ("`[[1, 2]]` and ‹cat› `a ==b== %% c %%`", "[[1, 2]] and ‹cat› a ==b== %% c %%"),
        ("```\n[[a]] ‹cat› ==b== ^c\n```", "[[a]] ‹cat› ==b== ^c"),
    ],
)
def test_snippet_of_a_note_has_its_words(text: str, shown: str) -> None:
    assert displayed(text) == pieces(shown)


@pytest.mark.parametrize(
    "text",
    ["‹cat› if a == b and c == d, or a==b and c==d", "‹cat› [[1, 2], [3, 4]] [[ -f x ]]", "‹cat› 10%% of 20%% x ^2 y"],
)
def test_signs_in_a_sentence_are_not_markup_of_notes(text: str) -> None:
    assert displayed(text) == pieces(text)


def test_markup_of_notes_is_kept_in_converted_documents() -> None:
    assert displayed("[[a]] ==‹cat›==", document(mime_type="text/html")) == pieces("[[a]] ==‹cat›==")


def test_markup_of_rows_is_left_out_but_addresses_in_chats_are_not() -> None:
    """The media type of rows is not known."""
    rows = document(source_type="rows")
    table = "**a**\n\n| Plan | Limit |\n| --- | --- |\n| ‹cat› | 3 |\n\n```bash\nrun `x`\n```"
    assert displayed(table, rows) == pieces("a\nPlan Limit\n‹cat› 3\nrun `x`")
    chat = "<@U123> the `‹cat›` in <#C1|pets>: 1 &gt; 0, a < b\nsee <https://a.example/x|this>"
    assert displayed(chat, rows) == pieces(
        "<@U123> the ‹cat› in <#C1|pets>: 1 > 0, a < b\nsee https://a.example/x|this"
    )


@pytest.mark.parametrize(
    "text", ["# a ‹cat›\n=====", "| ‹cat› |\n|---|", "a <b>‹cat›</b>", "`a` _‹cat›_", "[‹cat›](a/b)"]
)
def test_snippet_of_other_formats_keeps_signs(text: str) -> None:
    assert displayed(text, PLAIN) == displayed(text, document()) == pieces(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (".. contents:: Here\n   :local:\n\n.. warning::\n\n   The ‹cat› bites.", "   The ‹cat› bites."),
        (".. warning:: Do not pet\n   the ‹cat›.\n", "Do not pet\n   the ‹cat›.\n"),
        ("Use\n\n.. code-block:: python\n   :linenos:\n\n   ‹cat› = 1\n", "Use\n\n\n   ‹cat› = 1\n"),
        (".. list-table:: Limits\n   :header-rows: 1\n\n   * - ‹cat›", "Limits\n   * - ‹cat›"),
        (".. py:function:: ‹cat›(a)\n\n   :param a: b", "‹cat›(a)\n   :param a: b"),
        (".. |name| replace:: the ‹cat›", "the ‹cat›"),
        (".. toctree::\n   :‹cat›: 1", ".. toctree::\n   :‹cat›: 1"),
        ("the ‹cat› ..\n.. and std::vector, .. a::", "the ‹cat› ..\n.. and std::vector, .. a::"),
    ],
)
def test_directives_of_restructuredtext_become_their_words(text: str, shown: str) -> None:
    """Unless the found words are only in them."""
    assert displayed(text, PLAIN) == pieces(shown)


def test_roles_of_restructuredtext_become_their_words() -> None:
    text = "See :rst:dir:`‹members›`, :ref:`the book\n<a-target>`, a::`x`, 10:30:`x`."
    assert displayed(text, PLAIN) == pieces("See ‹members›, the book, a::`x`, 10:30:`x`.")


@pytest.mark.parametrize(
    "text",
    ["a [book](https://example.org/‹cat›.html)", 'a <dfn title="‹cat›">big', "a\n```‹cat›\n", ":ref:`a <‹cat›>`"],
)
def test_markup_is_shown_if_the_found_words_are_only_in_it(text: str) -> None:
    assert displayed(text, PLAIN if text[0] == ":" else MARKDOWN) == pieces(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("`‹Vec›`s and Vec", "‹Vec›s and ‹Vec›"),
        ("**内存**。管理‹内存›管理内存", "‹内存›。管理‹内存›管理‹内存›"),
        ("**‹内存›**管理", "‹内存›管理"),
        ("a **‹cat›** in concat, a Cat, cats `cat`s", "a ‹cat› in concat, a ‹Cat›, cats cats"),
        ("‹cat›alog, cat, concat", "‹cat›alog, ‹cat›, concat"),
        ("use ‹C++›, not C or C#", "use ‹C++›, not C or C#"),
        ("a ‹snake\\_case›_id", "a ‹snake_case›_id"),
        ("a ‹big** cat› **sits", "a ‹big** cat› **sits"),
    ],
)
def test_found_words_are_marked_as_the_engine_found_them(text: str, shown: str) -> None:
    """As whole words, unless the engine found a part of a word."""
    assert displayed(text) == pieces(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The Book\n\n## Use `it` now\n\nfirst", "first"),
        ("# Use ‹it› now\n\na ‹cat› sits", "a ‹cat› sits"),
        ("# [[The Book]]\n\nfirst", "first"),
        ("# Use ‹it› now\n\na cat sits", "a cat sits"),
        ("# Use ‹it› now", "Use ‹it› now"),
        ("first ‹it›\n\nUse it now\n\nsecond", "first ‹it›\nUse ‹it› now\nsecond"),
    ],
)
def test_headings_that_are_shown_above_the_text_are_not_repeated(text: str, shown: str) -> None:
    assert displayed(text) == pieces(shown)


@pytest.mark.parametrize("mark", ["a ", "# ", "[", "**", "内"])
def test_snippet_of_a_long_text_is_the_part_with_the_most_different_found_words(mark: str) -> None:
    found = pieces(f"‹cat› {'x ' * 150}big ‹cat› ‹sits›")
    text = f"{mark * 2_000}\n\n{''.join(piece.text for piece in found)} {mark * 5_000}"
    shown = snippet(found, document(mime_type="text/markdown", text=text), pattern_of([found]))
    assert [piece.text for piece in shown if piece.match] == ["cat", "sits"]
    assert shown[0].text.startswith("… x ")
    assert shown[0].text.endswith(" big ")
    assert shown[-1].text.endswith("…")
    assert len("".join(piece.text for piece in shown)) < 310


def test_of_several_parts_the_one_with_the_rarer_word_is_shown() -> None:
    found = pieces(f"‹group› one, ‹group› two. {'x ' * 200}‹Zebrafish› reads, and a ‹group› three.")
    text = "".join(piece.text for piece in found) + "x " * 200
    shown = snippet(found, document(text=text.replace(", and a group three", "")), pattern_of([found]))
    assert [piece.text for piece in shown if piece.match] == ["Zebrafish"]


@pytest.mark.parametrize("before", [0, 5_000])
def test_part_with_a_name_is_shown_although_others_have_more_words(before: int) -> None:
    rows = [f"ERR-{number} the printer does not answer" for number in range(1141, 1158)]
    text = "\n".join(["x " * before, "the code and its remedy", *rows])
    found = pieces(re.sub(r"code|remedy|ERR-1150|ERR", r"‹\g<0>›", text))
    shown = snippet(found, document(text=text), pattern_of([found]))
    assert "ERR-1150 the printer does not answer" in "".join(piece.text for piece in shown)
    assert "ERR-1150" in [piece.text for piece in shown if piece.match]


def test_a_year_counts_as_one_word() -> None:
    text = f"Copyright 2024. {'filler ' * 100}The budget report lists all costs."
    found = pieces(re.sub(r"2024|budget|report", r"‹\g<0>›", text))
    shown = snippet(found, document(text=text), pattern_of([found]))
    assert [piece.text for piece in shown if piece.match] == ["budget", "report"]


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (
            f"https://example.org/{'a1b2c3d4e5/' * 24}index.html?session=8842",
            "https://example.org/a1b2c3d4e5/a1b2c3d4e…",
        ),
        ("A" * 500, "A" * 40 + "…"),
        ("A" * 40, "A" * 40),
    ],
)
@pytest.mark.parametrize("known", [MARKDOWN, PLAIN])
def test_long_tokens_before_the_found_word_are_shortened(token: str, shown: str, known: Document) -> None:
    text = f"See {token} for\nthe ‹walrus› census of Svalbard."
    assert displayed(text, known) == pieces(text.replace(token, shown))


WORDS = st.integers(1, 999).map("w{}".format)


def inline(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    marks = ("**{}**", "*{}*", "_{}_", "~~{}~~", "`{}`", "[{}](https://u/{{}}.html)", "![{}](u.png)", "<b>{}</b>", "{}")
    return st.builds(str.format, st.sampled_from(marks), inner)


SENTENCES = st.lists(inline(st.lists(WORDS, min_size=1, max_size=3).map(" ".join)), min_size=1, max_size=4).map(
    " ".join
)
BLOCKS = st.one_of(
    SENTENCES,
    SENTENCES.map("## {}".format),
    SENTENCES.map("- {}".format),
    SENTENCES.map("```py\n# {}\n```".format),
    st.lists(SENTENCES, min_size=2, max_size=2).map("| {0[0]} | {0[1]} |\n|---|---|\n| {0[1]} | {0[0]} |".format),
)


@given(st.lists(BLOCKS, min_size=1, max_size=5).map("\n\n".join), st.sets(st.integers(0, 60)))
def test_plain_text_has_the_words_of_the_rendered_text_and_snippets_mark_the_found_ones(
    text: str, numbers: set[int]
) -> None:
    html = as_html(text, (), markdown=True)
    visible = re.findall(r"w\d+", re.sub(r"</?(?:\w+)[^>]*>", "", html))
    plain = plain_text(text, MARKDOWN)
    assert re.findall(r"w\d+", plain) == visible
    if "`" not in text:
        assert not re.search(r"\]\(|[*_~#|<]", plain)
    found = {visible[number] for number in numbers if number < len(visible)}
    shown = displayed(re.sub(r"w\d+", lambda word: f"‹{word[0]}›" if word[0] in found else word[0], text))
    words = [(word, piece.match) for piece in shown for word in re.findall(r"w\d+", piece.text)]
    assert words == [(word, word in found) for word, _ in words]
    assert any(piece.match for piece in shown) == bool(found)
    assert " ".join(word for word, _ in words) in " ".join(visible)
