"""HTML of any make keeps its text in its order, what is hidden at first too."""

import re
from html import escape

import pytest

from chunksink.producers.html import html_version
from tests.producers.html.support import chunks, links, paths, text
from tests.producers.support import without_space


@pytest.mark.parametrize(
    "hidden",
    [
        "<div role=tabpanel hidden>said</div>",
        '<p style="display:none">said</p>',
        "<noscript><p>said</p></noscript>",
        "<noscript>said</noscript>",
        "<div aria-hidden=true>said</div>",
        "<details><summary>more</summary>said</details>",
        "<iframe><p>said</p></iframe>",
        "<noframes><body><p>said</p></body></noframes>",
        "<img src='data:image/png;base64,AAAA' alt=said>",
        "<textarea>said</textarea>",
    ],
)
def test_what_a_page_does_not_show_at_first_is_text(hidden: str) -> None:
    assert re.findall(r"\bsaid\b|<", text(f"<p>before</p>{hidden}<p>after</p>")) == ["said"]


def test_what_nobody_reads_is_left_out() -> None:
    page = "<script>x</script><style>x</style><svg><text>x</text></svg><template>x</template><p>read</p><!-- x -->"
    assert text(page) == "read"


def test_the_head_holds_text_only_where_it_is_shown() -> None:
    page = "<head><noscript>in the head</noscript><title>Title</title><section>menu</section><p>body"
    assert text(page).split() == ["in", "the", "head", "menu", "body"]
    assert chunks(page)[0]["metadata"]["title"] == "Title"


def test_a_page_without_a_title_has_its_first_heading_for_one() -> None:
    for page in ("<p>Words.<h2>One</h2><p>x<h2>Two</h2>", "<h2>Two</h2><h1>One</h1>", "<h3></h3><h3>One</h3>"):
        assert chunks(page)[0]["metadata"]["title"] == "One"


@pytest.mark.parametrize(
    "page", ["<html><body>one</body></html>two<p>three", "<html/><p>one<body/>two three", "one</html>two</body>three"]
)
def test_a_page_goes_on_after_its_end(page: str) -> None:
    assert re.findall(r"one|two|three", text(page)) == ["one", "two", "three"]


@pytest.mark.parametrize(
    "tag", ["p", "div", "dialog", "li", "dd", "section><span", "p><a name=x></a><b", "td", "label"]
)
@pytest.mark.parametrize(
    "sign", ["<script>", "<!--", "<?php", "<div>", "```", "~~~", "# x", "    x", "a\n---\n", "a\n===\n", "a\n```\n"]
)
def test_text_that_looks_like_markdown_or_html_is_text(tag: str, sign: str) -> None:
    page = f"<p>before<{tag}>{escape(sign)} see <a href=x.html>there</a></{tag.split('>')[0]}><h2>After</h2><p>end"
    assert links(page) == ["x.html"]
    assert paths(page) == [["After"]]
    assert chunks(page)[-1]["metadata"]["kind"] == "prose"


def test_a_link_around_blocks_leads_on_from_the_first_of_them() -> None:
    page = "<p>Before.</p><h2>Above</h2><a href=u><img src=i.png><h3>Card</h3><p>words</p></a>"
    assert [link["url"] for link in chunks(page)[-1]["metadata"]["links"]] == ["u"]
    assert text("<a href=u><ul><li>one<li>two</ul></a>") == "- one\n- two"
    assert links("<a href=u><ul><li>one<li>two</ul></a>") == ["u"]
    assert links("<a href=u>\n<pre>one\ntwo</pre></a>") == ["u"]


@pytest.mark.parametrize(
    ("page", "order"),
    [
        ("<pre>one<button>two</button></pre>three", "one two three"),
        ("<pre>one<h2>two</h2>three</pre>four", "one two three four"),
        ("<h2>one<ul><li>two</ul></h2>three", "one two three"),
        ("<h2>one <button>two</button><button>three</button></h2>four", "one two three four"),
        ("<iframe><p>one</iframe>two", "one two"),
        ("<head><noscript>one</noscript></head>two", "one two"),
        ("<a href=u>one<h2>two</h2>three</a>four", "one two three four"),
        ("<table><tr><td>one<td><h2>two</h2>three<tr><td colspan=2>four</table>five", "one two three four five"),
    ],
)
def test_what_is_moved_stays_in_order(page: str, order: str) -> None:
    assert re.findall("one|two|three|four|five", text(page)) == order.split()


def test_what_a_page_brings_in_is_a_link_to_it() -> None:
    page = "<iframe src=u.html>one</iframe><video src=v.mp4><p>two</video><audio><source src=s.mp3>three</audio>four"
    assert links(page) == ["u.html", "v.mp4", "s.mp3"]
    assert re.findall("one|two|three|four", text(page)) == ["one", "two", "three", "four"]


def test_a_word_is_one_word_wherever_it_may_be_broken() -> None:
    assert without_space(text("<p>" + "<wbr>ab" * 3000)) == "ab" * 3000


@pytest.mark.parametrize("part", ["<p><font>x", "<li><b>x", "<a name=q>x<p>", "<h2>x", "<dd>x"])
def test_tags_that_are_never_closed_do_no_harm(part: str) -> None:
    """The tree that is tidied is a deep one then, and the page is converted as it stands."""
    assert text(part * 3000).count("x") == 3000


def test_names_and_characters_that_no_page_should_have() -> None:
    three = "th\x01re&#1;e\ufdd0&#xFDD0;&#64981;\ufdd4&#x1f;"
    page = f'<p {{% if x %}} a"b=1 href>one</p><x<y>two</x<y><p>{three}<p>\ufffe&#11;four</p>\r<p/>five'
    assert re.findall("one|two|three|four|five", text(page)) == ["one", "two", "three", "four", "five"]
    assert text("<p>one&#xFDD0;two&#64977;three") == "onetwothree", "our own marks, written as numbers"


def test_a_change_of_any_part_makes_the_chunks_anew() -> None:
    assert re.fullmatch(r"[\d.]+\+tree-\d+\+lxml-[\d.]+\+libxml2-[\d.]+\+markdown-it-py-[\d.]+", html_version())


def test_a_page_that_begins_with_a_rule_has_no_front_matter() -> None:
    (record,) = chunks("<hr><p>Title: of nobody</p><hr><p>Text.</p>")
    assert record["metadata"]["kind"] == "prose"
    assert record["metadata"]["title"] == "a", "as its file"
    assert "Title: of nobody" in record["text"]
    assert "Text." in record["text"]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("<dl><dt>one<dt>two<dd>three</dl>", "one two three"),
        ("<dl><dt>one<dd>two<dd>three<dt>four</dl>", "one two three four"),
        ("<dl><div><dt>one<dt>two<dd>three</div><div><dt>four</div></dl>", "one two three four"),
        ("<dl><dt>one</dt>two<dt>three</dl>", "one two three"),
        ("<p>one<p>two<ul><li>three<li>four</ul>", "one two - three - four"),
        ("<select><option>one<option>two<optgroup label=x><option>three</select>", "one two three"),
        (
            "<table><thead><tr><th>one<th>two<tbody><tr><td>three<td>four</table>",
            "| one | two | | --- | --- | | three | four |",
        ),
        ("<table><caption>one<colgroup><col><tr><th>two<tr><td>three</table>", "*one* | two | | --- | | three |"),
        ("<ruby>東<rp>(<rt>とう<rp>)</ruby>", "東(とう)"),
        ("<ruby>東<rp>(</rp><rt>とう<rp>)</rp></ruby>", "東(とう)"),
    ],
)
def test_tags_whose_end_may_be_left_out_part_words(page: str, shown: str) -> None:
    assert re.sub(r"-{3,}", "---", " ".join(text(page).split())) == shown


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("5.97×10<sup>24</sup> kg, 10<sup>-9</sup> s", "5.97×10^24 kg, 10^-9 s"),
        ("2<sup>10</sup> bytes; 10 m<sup>2</sup>; word<sup>12</sup>", "2^10 bytes; 10 m^2; word^12"),
        ("10<sup>n+1</sup>, x<sup>(n)</sup>, 2<sup>n</sup>m, 10<sup>3</sup>5", "10^(n+1), x^(n), 2^(n)m, 10^(3)5"),
        ("1010<sub>2</sub>, x<sub>1</sub><sup>2</sup>, a<sub>n+1</sub>", "1010_2, x1^2, a_(n+1)"),
        ("H<sub>2</sub>O, SO<sub>4</sub><sup>2−</sup>, Na<sup>+</sup>, <sup>14</sup>C", "H2O, SO4^2−, Na+, 14C"),
        ("1<sup>st</sup>, ACME<sup>TM</sup>, word<sup>†</sup>", "1st, ACMETM, word†"),
        ("<code>10<sup>2</sup></code>", "`10^2`"),
        ("word<sup><a href='#n'>1</a></sup>, word<a href='#n'><sup>1</sup></a>", "word[1], word[1]"),
        ("word<sup><a href='#n'>[1]</a></sup>", "word[1]"),
        ("<sup>1</sup>The note", "1 The note"),
        ("<a href='u'>10<sup>2</sup></a>", "10^2"),
    ],
)
def test_what_is_raised_is_read_as_part_of_nothing_else(page: str, shown: str) -> None:
    assert text(f"<p>{page}</p>") == shown


def test_a_note_in_a_heading_is_no_digit_of_its_words() -> None:
    assert paths("<h2>Windows<sup><a href='#n'>1</a></sup></h2>x") == [["Windows[1]"]]


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        ("a <my-icon></my-icon>- b <o:p>+ c</o:p>", "a - b + c"),
        ("<my-icon># a</my-icon>", "\\# a"),
        (
            "a <math><semantics><mrow><mi>x</mi></mrow><annotation encoding='application/x-tex'>\\x</annotation>"
            "<annotation-xml>X</annotation-xml></semantics></math> b",
            "a x b",
        ),
        ("<math><semantics><annotation>y</annotation></semantics></math>", "y"),
        ("<math><mi>x</mi> <mo>+</mo> <mi>y</mi></math>", "x + y"),
    ],
)
def test_elements_of_others_begin_no_line(page: str, shown: str) -> None:
    assert text(f"<p>{page}</p>") == shown
