"""The chunking specification, section by section, on small documents."""

from itertools import cycle, pairwise

import pytest

from chunksink.producers.errors import CHUNKING_FAILED, SourceFailed
from chunksink.producers.markdown import Policy, WordTokenizer, find_problems, normalise, parse
from chunksink.producers.markdown.document import Kind
from chunksink.producers.markdown.sentences import sentence_spans
from tests.producers.support import CREATED_AT, chunks_of, own_parts, texts_of

TOKENS = WordTokenizer()
NO_OVERLAP = Policy(overlap_percent=0)


def sentence(words: int, end: str = ".") -> str:
    return "Word " + "word " * (words - 2) + "word" + end


def paragraph(sentences: int, tokens_each: int = 20) -> str:
    return " ".join(sentence(tokens_each - 1) for _ in range(sentences))


# Section 2: normalisation


def test_bytes_that_are_not_utf8_fail_with_their_place() -> None:
    with pytest.raises(SourceFailed, match=r"0xff at offset 6, line 2") as failure:
        chunks_of(b"# Top\n\xff\n")
    assert failure.value.code == CHUNKING_FAILED


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
def test_what_says_that_it_is_utf16_is_refused_with_the_remedy(codec: str) -> None:
    remedy = f"it is {codec.upper()}, and only UTF-8 is read; convert it: iconv -f {codec.upper()} -t UTF-8"
    for order in ("le", "be"):
        with pytest.raises(SourceFailed, match=remedy) as failure:
            chunks_of("\ufeff# A".encode(f"{codec}-{order}"))
        assert failure.value.code == CHUNKING_FAILED


@pytest.mark.parametrize(
    "data",
    [
        *("Привет мир".encode(codec) for codec in ("utf-16-le", "utf-16-be")),
        *(text.encode("utf-16-le") for text in ("ok", "Plain words", "Words. " * 10_000)),
        b"\x7fELF" + bytes(range(32)) + b"words " * 100,
        b"\0" * 2 + b"x" * 197,
        b"\x89PNG\r\n\x1a\n\x01\x02\x03\xff\xfe",
    ],
)
def test_what_looks_like_utf16_or_like_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(SourceFailed, match=r"looks like UTF-16 or like no text.*iconv.*--exclude") as failure:
        chunks_of(data)
    assert failure.value.code == CHUNKING_FAILED


def test_a_text_of_windows_is_told_how_to_convert_it() -> None:
    with pytest.raises(SourceFailed, match=r"byte 0xfc at offset 1, line 1.*iconv -f WINDOWS-1252"):
        chunks_of("Müller".encode("windows-1252"))


@pytest.mark.parametrize("data", [b"a\0b", b"\0\0" + b"x" * 198, b"\x01\x02\x1b[1mbold"])
def test_traces_of_control_characters_are_no_harm(data: bytes) -> None:
    assert len(chunks_of(data)) == 1


def test_line_ends_become_line_feeds_and_what_nobody_sees_goes() -> None:
    assert normalise("a\r\nb\rc\x00d\x0b") == "a\nb\ncd"
    assert normalise("data\u00adbase word\u2060joined \ufeffend\n") == "database wordjoined end\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two  words\tand   tabs", "two words and tabs"),
        ("-   item  text", "-   item text"),
        (">  quoted   text", ">  quoted text"),
        ("#   Head   line", "#   Head line"),
        ("code `a   b`  stays", "code `a   b` stays"),
        ("```\na   b\n```", "```\na   b\n```"),
        ("    indented   code", "    indented   code"),
        ("| a   b |\n|---|\n| c   d |", "| a   b |\n|---|\n| c   d |"),
        ("hard  \nbreak", "hard  \nbreak"),
    ],
)
def test_runs_of_spaces_collapse_in_prose_only(text: str, expected: str) -> None:
    assert normalise(text) == expected


# Section 3 and 8: structure and metadata


def test_every_chunk_has_the_required_metadata() -> None:
    first, second = chunks_of("# Guide\n\nText.\n\n## Set/up *now*\n\n1. one\n2. two\n", tenant="acme")
    assert first["tenant_id"] == second["tenant_id"] == "acme"
    assert first["document_id"] == second["document_id"]
    assert first["text"] == "# Guide\n\nText."
    assert first["metadata"]["headings_path"] == ["Guide"]
    assert second["metadata"]["headings_path"] == ["Guide", "Set/up now"]
    assert second["metadata"]["chunk_path"] == "/Guide/Set~1up now/ol[1]"
    assert [chunk["metadata"]["ordinal"] for chunk in (first, second)] == [0, 1]
    assert first["metadata"]["token_count"] == TOKENS.count(first["text"]) == 4
    assert first["metadata"]["title"] == second["metadata"]["title"] == "Guide"
    assert first["created_at"] == CREATED_AT


def test_the_heading_stack_drops_what_a_heading_ends() -> None:
    text = "before\n\n# A\n\n### C\n\n## B\n\nSetext\n======\n\nend"
    paths = [chunk["metadata"]["headings_path"] for chunk in chunks_of(text)]
    assert paths == [[], ["A"], ["A", "C"], ["A", "B"], ["Setext"]]


def test_a_heading_inside_a_quote_or_list_is_not_the_documents() -> None:
    text = "# Own\n\n> # Theirs\n\n- # Item\n"
    assert {tuple(chunk["metadata"]["headings_path"]) for chunk in chunks_of(text)} == {("Own",)}


def test_code_and_tables_carry_what_a_part_of_them_would_lose() -> None:
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
        ("## A\n\ntext\n\n## B\n\ntext", ["## A\n\ntext", "## B\n\ntext"]),
        ("one\n\ntwo", ["one\n\ntwo"]),
        ("a\n\n```\nx\n```\n\nb", ["a", "```\nx\n```", "b"]),
        ("a\n\n| h |\n|---|\n| c |\n\nb", ["a", "| h |\n|---|\n| c |", "b"]),
        ("intro:\n\n- a\n- b\n\nafter", ["intro:\n\n- a\n- b", "after"]),
        ("- a\n\n1. b\n", ["- a", "1. b"]),
        ("- a\n  1. b\n- c", ["- a\n  1. b\n- c"]),
        ("- a\n\n  ```\n  x\n  ```\n- b", ["- a", "```\nx\n```", "- b"]),
        ("> quote\n\ntext", ["> quote\n\ntext"]),
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
        (f"{CODE}\n\n---\n\nwords", [CODE, "---\n\nwords"]),
        (f"{CODE}\n\n<img src='a.png'>\n\n{CODE}", [CODE, "<img src='a.png'>", CODE]),
        (f"{CODE}\n\n<https://a.example/>\n\n{CODE}", [CODE, "<https://a.example/>", CODE]),
        (f"{CODE}\n\n# ***\n\n{CODE}", [CODE, "# ***", CODE]),
        (f"{CODE}\n\n茶\n\n{CODE}", [CODE, "茶", CODE]),
    ],
)
def test_marks_without_a_word_are_no_chunk(text: str, expected: list[str]) -> None:
    assert texts_of(text, NO_OVERLAP) == expected


def test_marks_below_what_is_too_large_for_a_chunk_stay_with_its_end() -> None:
    rows = "".join(f"| {number} | {'cell ' * 40}|\n" for number in range(30))
    parts = texts_of(f"| id | text |\n|---|---|\n{rows}\n---\n\n# B", NO_OVERLAP)
    assert len(parts) > 3
    assert parts[-2].startswith("| ") and parts[-2].endswith("|\n\n---")


# Section 5: sizes


def test_paragraphs_gather_up_to_the_target() -> None:
    records = chunks_of("\n\n".join(paragraph(5) for _ in range(12)), policy=NO_OVERLAP)
    assert [record["metadata"]["token_count"] for record in records] == [400, 400, 400]


def test_a_short_rest_joins_its_neighbour_up_to_the_soft_maximum() -> None:
    records = chunks_of("\n\n".join([paragraph(18), paragraph(4)]), policy=NO_OVERLAP)
    assert [record["metadata"]["token_count"] for record in records] == [440]


def test_a_unit_up_to_the_hard_maximum_stays_whole() -> None:
    whole = paragraph(26)
    assert TOKENS.count(whole) == Policy().hard_max
    assert texts_of(f"{paragraph(3)}\n\n{whole}\n\n{paragraph(3)}", NO_OVERLAP)[1] == whole


def test_a_unit_over_the_hard_maximum_is_cut_between_sentences() -> None:
    parts = texts_of(paragraph(60), NO_OVERLAP)
    assert len(parts) > 2
    assert all(part.startswith("Word ") and part.endswith("word.") for part in parts)
    assert all(350 <= TOKENS.count(part) <= 450 for part in parts[:-1])


def test_a_sentence_over_the_hard_maximum_is_cut_in_windows_that_overlap_by_15_percent() -> None:
    words = " ".join(f"word{number:03}x" for number in range(700))  # three tokens each
    records = chunks_of(words)
    sizes = [record["metadata"]["token_count"] for record in records]
    assert len(sizes) > 5
    assert all(0.9 * Policy().target <= size <= Policy().target for size in sizes[1:-1])
    assert sizes[-1] <= Policy().soft_max
    for before, after in pairwise(records):
        overlap = after["text"][: after["metadata"]["overlap_chars"]]
        assert before["text"].endswith(overlap.strip())
        share = TOKENS.count(overlap) / before["metadata"]["token_count"]
        assert 0.13 <= share <= 0.15
        assert overlap.startswith("word"), "a window begins with a whole word"


def test_a_log_is_cut_between_its_lines() -> None:
    """Nothing ends a sentence in it."""
    lines = [f"2024-05-17T08:{number:02}:00Z INFO request {number} took 13 ms and went well" for number in range(60)]
    records = chunks_of("\n".join(lines))
    assert len(records) > 2
    for before, after in pairwise(records):
        shown = after["text"].split("\n")
        assert set(shown) <= set(lines)
        assert shown[0] in before["text"].split("\n"), "the last lines are repeated"


def test_a_word_without_end_is_cut_too() -> None:
    records = chunks_of("x" * 20_000)
    assert "".join(own_parts(records)) == "x" * 20_000
    assert max(record["metadata"]["token_count"] for record in records) <= Policy().target


# Section 6: overlap


def test_neighbours_share_whole_sentences_of_about_15_percent() -> None:
    numbered = " ".join(f"Sentence {number} says a little about itself and then it ends." for number in range(200))
    records = chunks_of(numbered)
    assert len(records) > 4
    for before, after in pairwise(records):
        overlap = after["text"][: after["metadata"]["overlap_chars"]]
        assert overlap.startswith("Sentence ")
        assert before["text"].endswith(overlap.rstrip())
        assert 0.10 <= TOKENS.count(overlap) / before["metadata"]["token_count"] <= 0.15


@pytest.mark.parametrize(
    ("joint", "first_words"),
    [("\n", "- Raise the limit of rack {} to 12."), ("\n\n", "Rack {} is let to some other firm by Acme Inc.")],
)
def test_overlap_begins_with_a_whole_item_or_paragraph_though_it_ends_like_an_abbreviation(
    joint: str, first_words: str
) -> None:
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


def test_code_gets_the_sentence_that_introduces_it_but_gives_none_of_its_own() -> None:
    introduction = f"{paragraph(15)} Run this to begin:"
    records = chunks_of(f"{introduction}\n\n```\nmake all\n```\n\nThen wait.")
    assert records[1]["text"].endswith("Run this to begin:\n\n```\nmake all\n```")
    assert records[1]["metadata"]["overlap_chars"] > 0
    assert records[2]["text"] == "Then wait."


def test_what_introduces_is_repeated_before_what_it_introduces() -> None:
    create, extract = "- Create an archive:\n\n`tar cf a.tar b`", "- Extract an archive:\n\n`tar xf a.tar`"
    assert texts_of(f"# tar\n\n> Archiving utility.\n\n{create}\n\n{extract}\n") == [
        "# tar\n\n> Archiving utility.\n\n- Create an archive:",
        f"{create}\n\n- Extract an archive:",
        extract,
    ]


@pytest.mark.parametrize("words", ["Run this:", "**Run this:**", "- Run this:", "运行这个："])
def test_code_begins_with_the_words_that_introduce_it(words: str) -> None:
    _, code = chunks_of(f"# A\n\nFirst of all.\n\n{words}\n\n{CODE}")
    assert code["text"] == f"{words}\n\n{CODE}"
    assert code["metadata"]["overlap_chars"] == len(f"{words}\n\n")


def test_a_long_introduction_and_what_introduces_nothing_are_not_repeated() -> None:
    assert texts_of(f"{sentence(52, ':')}\n\n{CODE}")[1] == CODE
    assert texts_of(f"{sentence(51, ':')}\n\n{CODE}")[1] == f"{sentence(51, ':')}\n\n{CODE}"
    assert texts_of(f"Run this.\n\n{CODE}")[1] == CODE
    assert texts_of(f"Run this:\n\n{CODE}", NO_OVERLAP)[1] == CODE
    assert texts_of("Run this:\n\n# B")[1] == "# B"
    assert texts_of(f"- Run this:\n\n{paragraph(26)}")[1] == paragraph(26)


def test_a_heading_is_repeated_before_the_table_or_code_that_follows_it_at_once() -> None:
    table = "| a |\n|---|\n| b |"
    assert texts_of(f"## Prices\n\n{table}\n\nText.") == ["## Prices", f"## Prices\n\n{table}", "Text."]
    long_heading = "# " + "word " * 60
    assert texts_of(f"{long_heading}\n\n{table}")[1] == table


def test_overlap_yields_where_it_would_break_the_hard_maximum() -> None:
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
        ('He said "Stop." She did.', ['He said "Stop." ', "She did."]),
        ("version 1.5 is out. it works", ["version 1.5 is out. it works"]),
        ("- a\n- b\n  c", ["- a\n", "- b\n  c"]),
        ("a\n\nb", ["a\n\n", "b"]),
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


def test_lines_are_the_sentences_of_code() -> None:
    text = "a. B\n\nc\n"
    assert [text[start:end] for start, end in sentence_spans(text, 0, len(text), Kind.CODE)] == ["a. B\n\n", "c\n"]


# Section 11: the checklist sees what it is there for


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r[1].update(text=""), "its text is empty"),
        (lambda r: r[1]["metadata"].update(ordinal=5), "its ordinal is 5"),
        (lambda r: r[1]["metadata"].update(headings_path=[], chunk_path="/"), "has no headings_path"),
        (lambda r: r[1]["metadata"].update(chunk_path="/Other"), "does not begin with its headings"),
        (lambda r: r[1].update(chunk_id="0" * 64), "not the stable-id formula's"),
        (lambda r: r[1]["metadata"].update(token_count=1), "token_count is 1"),
        (lambda r: r[1].update(text="word " * 521), "over the hard maximum of 520"),
        (lambda r: r[1].update(document_id="other"), "different documents"),
        (lambda r: r.pop(0), "its ordinal is 1"),
    ],
)
def test_the_checklist_finds(change, problem: str) -> None:  # type: ignore[no-untyped-def]
    records = chunks_of("# A\n\nsome text\n\n## B\n\nmore text")
    assert find_problems(records, Policy(), TOKENS) == []
    change(records)
    assert any(problem in found for found in find_problems(records, Policy(), TOKENS))


def test_the_checklist_counts_each_chunk_of_a_long_document() -> None:
    """Also those that begin with a mark or end within a word, whatever stands before and after them."""
    records = chunks_of("".join(f"# A{number}\n\nword\n\n" for number in range(200)))
    for record, text in zip(records, cycle(["a", "\u0301b", "1 2", "x" * 8, "中"]), strict=False):
        record["text"] = text
        record["metadata"]["token_count"] = TOKENS.count(text)
    records[130]["metadata"]["token_count"] += 1
    found = [problem for problem in find_problems(records, Policy(), TOKENS) if "token_count" in problem]
    assert found == ["chunk 130: token_count is 2, the text has 1"]


def test_a_policy_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="target <= soft_max <= hard_max"):
        Policy(target=500, soft_max=450)
    with pytest.raises(ValueError, match="0 to 50 percent"):
        Policy(overlap_percent=60)


def test_nesting_beyond_the_parsers_limit_is_kept_as_text() -> None:
    records = chunks_of(">" * 10_000 + " deep inside")
    assert "".join("".join(own_parts(records)).split()) == ">" * 10_000 + "deepinside"
    assert parse("> " * 200 + "x").blocks
