"""The chunking specification, section by section, on small documents."""

from itertools import pairwise

import pytest

from chunksink.ingest.formats.markdown import tokens
from chunksink.ingest.formats.markdown.document import Kind
from chunksink.ingest.formats.markdown.pieces import sentence_spans
from chunksink.ingest.formats.markdown.policy import Policy
from tests.ingest.markdown.support import CREATED_AT, NO_OVERLAP, chunks_of, texts_of


def sentence(words: int, end: str = ".") -> str:
    return "Word " + "word " * (words - 2) + "word" + end


def paragraph(sentences: int, tokens_each: int = 20) -> str:
    return " ".join(sentence(tokens_each - 1) for _ in range(sentences))


# Section 3 and 8: structure and metadata


def test_chunks_have_the_required_metadata() -> None:
    first, second = chunks_of("# Guide\n\nText.\n\n## Set/up *now*\n\n1. one\n2. two\n", tenant="acme")
    assert first["tenant_id"] == second["tenant_id"] == "acme"
    assert first["document_id"] == second["document_id"]
    assert first["text"] == "# Guide\n\nText."
    assert first["metadata"]["headings_path"] == ["Guide"]
    assert second["metadata"]["headings_path"] == ["Guide", "Set/up now"]
    assert second["metadata"]["chunk_path"] == "/Guide/Set~1up now/ol[1]"
    assert [chunk["metadata"]["ordinal"] for chunk in (first, second)] == [0, 1]
    assert first["metadata"]["token_count"] == tokens.count(first["text"]) == 4
    assert first["metadata"]["title"] == second["metadata"]["title"] == "Guide"
    assert first["created_at"] == CREATED_AT


def test_heading_stack_drops_what_a_heading_ends() -> None:
    text = "before\n\n# A\n\n### C\n\n## B\n\n> # Quote\n\nSetext\n======\n\n- # Item"
    paths = [chunk["metadata"]["headings_path"] for chunk in chunks_of(text)]
    assert paths == [[], ["A"], ["A", "C"], ["A", "B"], ["Setext"]]


def test_parts_of_code_and_tables_carry_language_and_header() -> None:
    rows = "".join(f"| {number} | {'cell ' * 40}|\n" for number in range(30))
    code, *parts = chunks_of(f"```rust\nfn a() {{}}\n```\n\n| id | text |\n|---|---|\n{rows}")
    assert code["metadata"]["code_language"] == "rust"
    assert "table_header" not in parts[0]["metadata"]
    assert len(parts) > 2
    assert {part["metadata"]["table_header"] for part in parts[1:]} == {"| id | text |"}


# Section 4: boundaries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\n# B\n", ["# A", "# B"]),
        ("one\n\ntwo", ["one\n\ntwo"]),
        ("a\n\n```\nx\n```\n\nb", ["a", "```\nx\n```", "b"]),
        ("a\n\n| h |\n|---|\n| c |\n\nb", ["a", "| h |\n|---|\n| c |", "b"]),
        ("intro:\n\n- a\n- b\n\nafter", ["intro:\n\n- a\n- b", "after"]),
        ("- a\n\n1. b\n", ["- a", "1. b"]),
        ("- a\n  1. b\n- c", ["- a\n  1. b\n- c"]),
        ("- a\n\n  ```\n  x\n  ```\n- b", ["- a", "```\nx\n```", "- b"]),
        ("```\nunclosed\n\n# no heading", ["```\nunclosed\n\n# no heading"]),
    ],
)
def test_boundaries(text: str, expected: list[str]) -> None:
    assert texts_of(text, NO_OVERLAP) == expected


TABLE = "| a |\n|---|\n| b |"
CODE = "```\nx\n```"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{TABLE}\n\n---\n\n{TABLE}", [f"{TABLE}\n\n---", TABLE]),
        (f"# A\n\n<div class='x'>\n\n{CODE}\n\n</div>", ["# A\n\n<div class='x'>", f"{CODE}\n\n</div>"]),
        (f"# A\n\n- a\n\n* * *\n\n{CODE}\n\n___\n\n# B", ["# A\n\n- a\n\n* * *", f"{CODE}\n\n___", "# B"]),
        (f"{CODE}\n\n<img src='a.png'>\n\n{CODE}", [CODE, "<img src='a.png'>", CODE]),
        (f"{CODE}\n\n# ***\n\n{CODE}", [CODE, "# ***", CODE]),
        (f"{CODE}\n\n茶\n\n{CODE}", [CODE, "茶", CODE]),
    ],
)
def test_marks_without_a_word_join_the_chunk_above(text: str, expected: list[str]) -> None:
    assert texts_of(text, NO_OVERLAP) == expected


def test_marks_below_a_long_table_join_its_last_part() -> None:
    rows = "".join(f"| {number} | {'cell ' * 40}|\n" for number in range(30))
    parts = texts_of(f"| id | text |\n|---|---|\n{rows}\n---\n\n# B", NO_OVERLAP)
    assert len(parts) > 3
    assert parts[-2].startswith("| ") and parts[-2].endswith("|\n\n---")


# Section 5: sizes


def test_paragraphs_gather_up_to_the_target() -> None:
    records = chunks_of("\n\n".join(paragraph(5) for _ in range(12)), policy=NO_OVERLAP)
    assert [record["metadata"]["token_count"] for record in records] == [400, 400, 400]


def test_short_rest_joins_its_neighbour_up_to_the_soft_maximum() -> None:
    records = chunks_of("\n\n".join([paragraph(18), paragraph(4)]), policy=NO_OVERLAP)
    assert [record["metadata"]["token_count"] for record in records] == [440]


def test_unit_up_to_the_hard_maximum_stays_whole() -> None:
    whole = paragraph(26)
    assert tokens.count(whole) == Policy().hard_max
    assert texts_of(f"{paragraph(3)}\n\n{whole}\n\n{paragraph(3)}", NO_OVERLAP)[1] == whole


def test_unit_over_the_hard_maximum_is_cut_between_sentences() -> None:
    parts = texts_of(paragraph(60), NO_OVERLAP)
    assert len(parts) > 2
    assert all(part.startswith("Word ") and part.endswith("word.") for part in parts)
    assert all(350 <= tokens.count(part) <= 450 for part in parts[:-1])


def test_sentence_over_the_hard_maximum_is_cut_in_overlapping_windows() -> None:
    words = " ".join(f"word{number:03}x" for number in range(700))  # three tokens each
    records = chunks_of(words)
    sizes = [record["metadata"]["token_count"] for record in records]
    assert len(sizes) > 5
    assert all(0.9 * Policy().target <= size <= Policy().target for size in sizes[1:-1])
    assert sizes[-1] <= Policy().soft_max
    for before, after in pairwise(records):
        overlap = after["text"][: after["metadata"]["overlap_chars"]]
        assert before["text"].endswith(overlap.strip())
        share = tokens.count(overlap) / before["metadata"]["token_count"]
        assert 0.13 <= share <= 0.15
        assert overlap.startswith("word"), "a window begins with a whole word"


def test_log_is_cut_between_its_lines() -> None:
    lines = [f"2024-05-17T08:{number:02}:00Z INFO request {number} took 13 ms and went well" for number in range(60)]
    records = chunks_of("\n".join(lines))
    assert len(records) > 2
    for before, after in pairwise(records):
        shown = after["text"].split("\n")
        assert set(shown) <= set(lines)
        assert shown[0] in before["text"].split("\n"), "the last lines are repeated"


# Section 6: overlap


def test_neighbours_share_whole_sentences_of_about_15_percent() -> None:
    numbered = " ".join(f"Sentence {number} says a little about itself and then it ends." for number in range(200))
    records = chunks_of(numbered)
    assert len(records) > 4
    for before, after in pairwise(records):
        overlap = after["text"][: after["metadata"]["overlap_chars"]]
        assert overlap.startswith("Sentence ")
        assert before["text"].endswith(overlap.rstrip())
        assert 0.10 <= tokens.count(overlap) / before["metadata"]["token_count"] <= 0.15


@pytest.mark.parametrize(
    ("joint", "first_words"),
    [("\n", "- Raise the limit of rack {} to 12."), ("\n\n", "Rack {} is let to some other firm by Acme Inc.")],
)
def test_overlap_begins_with_a_whole_item_or_paragraph_after_an_abbreviation(joint: str, first_words: str) -> None:
    records = chunks_of(joint.join(first_words.format(number) for number in range(200)))
    assert len(records) > 4
    for record in records[1:]:
        assert record["metadata"]["overlap_chars"] > 0
        assert record["text"].startswith(first_words.split("{", 1)[0])


def test_overlap_never_crosses_a_heading() -> None:
    text = "\n\n".join(f"## Part {number}\n\n{paragraph(30)}" for number in range(3))
    for record in chunks_of(text):
        if record["text"].startswith("## "):
            assert record["metadata"]["overlap_chars"] == 0
        else:
            assert record["metadata"]["overlap_chars"] > 0


def test_code_repeats_its_introduction_and_is_not_repeated() -> None:
    introduction = f"{paragraph(15)} Run this to begin:"
    records = chunks_of(f"{introduction}\n\n```\nmake all\n```\n\nThen wait.")
    assert records[1]["text"].endswith("Run this to begin:\n\n```\nmake all\n```")
    assert records[1]["metadata"]["overlap_chars"] > 0
    assert records[2]["text"] == "Then wait."


@pytest.mark.parametrize("words", ["Run this:", "**Run this:**", "- Run this:", "运行这个："])
def test_code_repeats_a_last_sentence_with_a_colon(words: str) -> None:
    _, code = chunks_of(f"# A\n\nFirst of all.\n\n{words}\n\n{CODE}")
    assert code["text"] == f"{words}\n\n{CODE}"
    assert code["metadata"]["overlap_chars"] == len(f"{words}\n\n")


def test_long_introduction_or_other_sentence_is_not_repeated() -> None:
    assert texts_of(f"{sentence(52, ':')}\n\n{CODE}")[1] == CODE
    assert texts_of(f"{sentence(51, ':')}\n\n{CODE}")[1] == f"{sentence(51, ':')}\n\n{CODE}"
    assert texts_of(f"Run this.\n\n{CODE}")[1] == CODE
    assert texts_of(f"Run this:\n\n{CODE}", NO_OVERLAP)[1] == CODE
    assert texts_of("Run this:\n\n# B")[1] == "# B"
    assert texts_of(f"- Run this:\n\n{paragraph(26)}")[1] == paragraph(26)


def test_heading_directly_above_a_table_is_repeated() -> None:
    table = "| a |\n|---|\n| b |"
    assert texts_of(f"## Prices\n\n{table}\n\nText.") == ["## Prices", f"## Prices\n\n{table}", "Text."]
    long_heading = "# " + "word " * 60
    assert texts_of(f"{long_heading}\n\n{table}")[1] == table


def test_overlap_is_left_out_if_it_would_break_the_hard_maximum() -> None:
    records = chunks_of(f"{paragraph(20)}\n\n{paragraph(26)}")
    assert [record["metadata"]["token_count"] for record in records] == [400, 520]


# Sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("See e.g. Smith or Dr. Jones. Then go.", ["See e.g. Smith or Dr. Jones. ", "Then go."]),
        ("Am 3. Mai kam J. Weber, z.B. Tee. Gut.", ["Am 3. Mai kam J. Weber, z.B. Tee. ", "Gut."]),
        ("你好。再见！“走吧。”他说。", ["你好。", "再见！", "“走吧。”", "他说。"]),
        ("वह गया। फिर आया॥ ঠিক।ভাল।", ["वह गया। ", "फिर आया॥ ", "ঠিক।", "ভাল।"]),
        ("يعمل؟ نعم. پی۔ایچ۔ڈی ہے۔ پھر", ["يعمل؟ ", "نعم. ", "پی۔ایچ۔ڈی ہے۔ ", "پھر"]),
        ("ሰላም። ነው። បាទ។ ទេ ဟုတ်။မဟုတ်။ Այո։ Ոչ", ["ሰላም። ", "ነው። ", "បាទ។ ", "ទេ ဟုတ်။", "မဟုတ်။ ", "Այո։ ", "Ոչ"]),
        ('He said "Stop." She did.', ['He said "Stop." ', "She did."]),
        ("version 1.5 is out. it works", ["version 1.5 is out. it works"]),
        ("- a\n- b\n  c", ["- a\n", "- b\n  c"]),
        ("Raise it to 12.\n\nOne more.", ["Raise it to 12.\n\n", "One more."]),
        (
            "- Raise A to 12.\n- By Acme Inc.\n  - B to 7.\n",
            ["- Raise A to 12.\n", "- By Acme Inc.\n", "  - B to 7.\n"],
        ),
        ("> by Acme Co.  \n>\n> Next", ["> by Acme Co.  \n>\n> ", "Next"]),
        ("by Acme Inc.\nIn town.", ["by Acme Inc.\nIn town."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentence_spans(text, 0, len(text), Kind.PROSE)] == expected
