"""HTML of any make keeps its text, and what the text is: headings, code, tables and links."""

import re
from collections import Counter
from html import escape
from html.parser import HTMLParser
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunkbus.chunk import Record
from producers.html import HtmlChunker, html_version
from producers.markdown import SourceVersion
from tests.conftest import examples
from tests.producers.support import CREATED_AT, PRODUCER, own_parts, without_space
from tests.producers.test_converters import PAGE

FAQ = """<h1>FAQ</h1><table border="0"><tr><td colspan="2">Contents</td></tr><tr><td>2.1</td><td>It fails like this:
<pre>% make\nboom</pre></td></tr></table><h2>After</h2><p>Tail text with <a href="x.html">link</a>.</p><h2>Third</h2>
<p>More.</p>"""


def chunks(page: str) -> list[Record]:
    data = page.encode()
    return HtmlChunker().chunks(data, SourceVersion.of("a", data), created_at=CREATED_AT, producer=PRODUCER)


def text(page: str) -> str:
    return "\n\n".join(own_parts(chunks(page)))


def paths(page: str) -> list[list[str]]:
    """The headings over each chunk, without those of chunks before the first one."""
    return [path for record in chunks(page) if (path := record["metadata"]["headings_path"])]


def links(page: str) -> list[str]:
    return [link["url"] for record in chunks(page) for link in record["metadata"].get("links", [])]


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
    page = "<head><noscript>in the head</noscript><title>Title</title><nav>menu</nav><p>body"
    assert text(page).split() == ["in", "the", "head", "menu", "body"]
    assert chunks(page)[0]["metadata"]["title"] == "Title"


@pytest.mark.parametrize(
    "page", ["<html><body>one</body></html>two<p>three", "<html/><p>one<body/>two three", "one</html>two</body>three"]
)
def test_a_page_goes_on_after_its_end(page: str) -> None:
    assert re.findall(r"one|two|three", text(page)) == ["one", "two", "three"]


def test_a_table_that_only_places_blocks_is_taken_apart() -> None:
    assert paths(FAQ)[-1] == ["FAQ", "Third"]
    assert ["FAQ", "After"] in paths(FAQ)
    assert links(FAQ) == ["x.html"]
    assert "2.1\n\nIt fails like this:\n\n```\n% make\nboom\n```\n\n## After" in text(FAQ)


@pytest.mark.parametrize(
    "table",
    [
        "<table><tr><td><h2>Head</h2>a</td></tr></table>",
        "<table><tr><th>Site</th></tr><tr><td>x<h2>Head</h2>a</td></tr></table>",
        "<table><tr><td>nav</td><td><table><tr><td><h2>Head</h2>a</td></tr></table></td></tr></table>",
        "<table><form><tr><td>x<td><h2>Head</h2>a</form></table>",
        "<table><caption><h2>Head</h2></caption><tr><th>a</th></tr></table>",
        "<tr><td>x</td><td><h2>Head</h2>a</td></tr>",
    ],
)
def test_a_heading_in_a_table_is_a_heading(table: str) -> None:
    assert paths(f"{table}<p>after</p>")[-1] == ["Head"]


def test_code_in_a_table_keeps_its_lines() -> None:
    rows = "<tr><th>Option</th><th>Example</th></tr><tr><td>-v</td><td><pre>one\n  two</pre></td></tr>"
    assert text(f"<table>{rows}</table>").split("\n\n") == ["Option", "Example", "-v", "```\none\n  two\n```"]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("<tr><th>A<th>B<tr><td>1<td>2", "| 1 | 2 |"),
        ("<tr><td>A<td>B<tr><td>1<td>2", "| 1 | 2 |"),
        ("<tr><td><p>A<td><p>B<tr><td><p>1<p>one<td><p>2", "| 1 one | 2 |"),
        ("<tr><th>A<th>B<tr><td>1<td><ul><li>x<li>y</ul>", "| 1 | x y |"),
        ("<tr><td>A<td>B<tr><td><pre>x</pre><td>2", "| `x` | 2 |"),
    ],
)
def test_a_table_of_data_stays_one(table: str, row: str) -> None:
    (record,) = chunks(f"<table>{table}</table>")
    assert record["metadata"]["kind"] == "table"
    assert re.sub(" +", " ", record["text"]).endswith(row)


def test_a_cell_with_the_whole_page_in_it_is_no_datum() -> None:
    page = f"<table><tr><th>Site</th></tr><tr><td><p>{'word ' * 150}</p><p>{'word ' * 150}</p></td></tr></table>"
    assert {record["metadata"]["kind"] for record in chunks(page)} == {"prose"}


@pytest.mark.parametrize(
    "page",
    [
        "<details><summary><h2>Setup</h2></summary><p>x</p></details>",
        "<details><summary><section><h2>Setup</h2></section></summary><p>x</p></details>",
        "<b><h2>Setup</h2></b>x",
        "<em>x<h2>Setup</h2></em>",
        "<strong><div><h2>Setup</h2></div></strong>x",
        "<code>x<h2>Setup</h2></code>",
        "<a href=y><h2>Setup</h2><p>x</p></a>",
        "text <span><h2>Setup</h2></span>x",
        "<my-card><h2>Setup</h2>x</my-card>",
        "<figure><figcaption><h2>Setup</h2></figcaption>x</figure>",
        "<fieldset><legend><h2>Setup</h2></legend>x</fieldset>",
        "<h2><b>Setup</b></h2>x",
        "<h2><p>Setup</p></h2>x",
        "<h2>Setup<ul><li>x</ul></h2>",
        "<h2><button>Setup</button></h2>x",
        "<pre>x<h2>Setup</h2>x</pre>",
        "<hgroup><h2>Setup</h2><p>x</p></hgroup>",
    ],
)
def test_a_heading_is_one_wherever_it_stands(page: str) -> None:
    assert paths(page)[-1] == ["Setup"]
    assert "x" in text(page)


def test_a_heading_that_is_not_closed_ends_where_the_next_begins() -> None:
    assert paths("<h1>One<h2>Two<h2>Three<p>x")[-1] == ["One", "Three"]


@pytest.mark.parametrize(
    "heading",
    [
        'Install<a class="headerlink" href="#a" title="Link to this heading">¶</a>',
        'Install<span><a class="mark" href="#a" id="a">#</a></span>',
        '<a class="doc-anchor" href="#a">§</a>Install',
        '<a class="anchor" href="#a"><svg><path/></svg></a>Install',
        'Install<a class="hash-link" href="#a" aria-label="Direct link to Install">\u200b</a>',
        'Install <a href="#a">Link to this heading</a>',
        'Install<a href="page.html#a"><span hidden>Permalink to “Install”</span></a>',
        'Install<a class="headerlink" href="#a">\uf0c1</a>',
        'Install<a href="#a">🔗\ufe0e</a>',
    ],
)
def test_a_headings_link_to_itself_is_none_of_its_words(heading: str) -> None:
    (record,) = chunks(f"<h2>{heading}</h2>")
    assert record["text"].rstrip() == "## Install"
    assert record["metadata"]["headings_path"] == ["Install"]
    assert "links" not in record["metadata"]


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("C#", "C#"),
        ("§ 5", "§ 5"),
        ('<a href="#sharp">C#</a>', "C#"),
        ('The <a href="#hash">#</a> sign', "The # sign"),
        ('About <a href="z.html">Real</a>', "About Real"),
        ('About <a href="#link">links</a>', "About links"),
        ('<a href="#">#</a>', "#"),
        ('Note <a href="sharp.html">#</a>', "Note #"),
        ('<a href="#a"><img src="a.png" alt="Picture"></a>', "Picture"),
    ],
)
def test_a_headings_words_and_its_own_signs_stay(heading: str, shown: str) -> None:
    assert paths(f"<h2>{heading}</h2>") == [[shown]]


def test_links_to_places_beside_a_heading_go_as_well() -> None:
    page = '<div><h2>Install</h2><a class="anchor" href="#a" aria-label="Permalink"></a></div><dl><dt>f()<a'
    page += ' class="headerlink" href="#f">¶</a></dt><dd>See <a href="#5">§</a> 5.</dd></dl>'
    assert text(page).split() == ["##", "Install", "f()", "See", "[§](#5)", "5."]


@pytest.mark.parametrize(
    "heading", ["__init__", "impl<T> Vec<T>", "*const T", "[x](y)", "a `b`", "&amp;", "# x", "1. x", "a_b_c", "<!-- x"]
)
def test_signs_in_a_heading_are_text(heading: str) -> None:
    assert paths(f"<h2>{escape(heading)}</h2>") == [[heading]]


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
    assert text("<a href=u><img src=i.png><h3>Card</h3><p>words</p></a>").startswith("![](i.png)\n\n### [Card](u)")
    assert text("<a href=u><ul><li>one<li>two</ul></a>") == "- [one](u)\n- two"
    assert links("<a href=u>\n<pre>one\ntwo</pre></a>") == ["u"]


def test_code_is_code_and_nothing_else() -> None:
    assert text("<pre><code>x = 1</code><button>Copy</button></pre>").split("\n\n") == ["```\nx = 1\n```", "Copy"]
    assert text("<pre>  a\n<h2>Name</h2>  b\n   c</pre>") == "```\n  a\n```\n\n## Name\n\n```\n  b\n   c\n```"
    assert "````\n# a\n```\nb\n````" in text("<textarea># a\n```\nb</textarea><p>c</p>")
    assert text("<b>x<pre>a\nb</pre></b>") == "x\n\n```\na\nb\n```"


def test_links_in_code_are_told_beside_it() -> None:
    lines = 'int <a href="t.html">T</a> f(<a href="u.html#x">U</a>);\n\n <a href="#2" id="2">2</a> <a name="n">n</a>'
    page = (
        f"<p><a href=a.html>a</a><ul><li>x<pre>{lines}</pre></ul><blockquote><pre>y\n<a href=v.html>V</a>&nbsp;z</pre>"
    )
    records = chunks(f"{page}</blockquote><h2>After</h2><pre>W\n<a href=w.html>W</a></pre><p><a href=b.html>b</a>")
    found = [[link["url"] for link in record["metadata"].get("links", [])] for record in records]
    assert found == [["a.html"], ["t.html", "u.html#x"], ["v.html"], [], ["w.html"], ["b.html"]]
    assert records[1]["text"].split("\n") == ["```", "  int T f(U);", "", "   2 n", "  ```"]


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


def test_a_button_in_a_heading_is_no_word_of_it() -> None:
    page = "<h1>Struct Vec <button>Copy item path</button></h1><p>x</p>"
    assert paths(page)[-1] == ["Struct Vec"]
    assert "Copy item path" in text(page)


@pytest.mark.parametrize("part", ["<p><font>x", "<li><b>x", "<a name=q>x<p>", "<h2>x", "<dd>x"])
def test_tags_that_are_never_closed_do_no_harm(part: str) -> None:
    """The tree that is tidied is a deep one then, and the page is converted as it stands."""
    assert text(part * 3000).count("x") == 3000


def test_names_and_characters_that_no_page_should_have() -> None:
    page = '<p {% if x %} a"b=1 href>one</p><x<y>two</x<y><p>th\x01re&#1;e\ufdd0&#x1f;<p>\ufffe&#11;four</p>\r<p/>five'
    assert re.findall("one|two|three|four|five", text(page)) == ["one", "two", "three", "four", "five"]


def test_a_change_of_any_part_makes_the_chunks_anew() -> None:
    assert re.fullmatch(r"[\d.]+\+tree-\d+\+lxml-[\d.]+\+libxml2-[\d.]+\+markdown-it-py-[\d.]+", html_version())


class _Visible(HTMLParser):
    """The words of a page that somebody can read, by another parser than the one that is tested."""

    def __init__(self) -> None:
        super().__init__()
        self.words: Counter[str] = Counter()
        self._unread = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unread += tag in ("script", "style", "svg", "template", "title")

    def handle_endtag(self, tag: str) -> None:
        self._unread -= tag in ("script", "style", "svg", "template", "title")

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self.words.update(re.findall(r"\w+", data))


def visible(page: str) -> Counter[str]:
    parser = _Visible()
    parser.feed(page)
    parser.close()
    return parser.words


def words(page: str) -> Counter[str]:
    """Without the addresses of links, and the language of code."""
    return Counter(re.findall(r"\w+", re.sub(r"\]\([^)]*\)|^```\w+", "", text(page), flags=re.MULTILINE)))


@pytest.mark.parametrize("page", [PAGE, FAQ])
def test_the_words_of_the_examples_are_those_of_their_chunks(page: str) -> None:
    assert words(page) == visible(page)


_TAGS = """
    p div section article b strong em i code kbd q mark del s span font u small a h1 h2 h3 pre blockquote ul ol li dl dt
    dd table tr td th tbody thead caption details summary figure figcaption button label fieldset legend center noscript
    nav address body html form br hr img var sub sup abbr rt menu my-el canvas object dialog textarea iframe
    video audio source wbr embed
"""
_ATTRIBUTES = [
    "",
    "",
    "",
    " hidden",
    ' style="display:none"',
    ' href="u.html"',
    ' href="#x" class=anchor',
    " colspan=2",
]
# Around the words, each of which stands once.
_LINES = (
    *("%",) * 9,
    *("# %", "``` %", "% ```", "~~~ %", "```\n%\n", "- %", "1. %", "<script> %", "<!-- %", "<?%", "<%", "<pre>%"),
    *("%\n---\n", "%\n===\n%", "%\n|---|\n", "|%|%|", "[%]: http://x", "[%](", "](%", "***%", "%*", "**%", "__%", "`%"),
    *("``%", "\\%", "> %", "&lt;%", "    %", "\t%", "~~%", "</p>%", "%\\\n", "+ %", "* * *", "\xa0# %", "\xa0``` %"),
)
_Tree = str | tuple[str, list["_Tree"], str]
_trees: st.SearchStrategy[_Tree] = st.recursive(
    st.sampled_from(_LINES),
    lambda inner: st.tuples(st.sampled_from(_TAGS.split()), st.lists(inner, max_size=4), st.sampled_from(_ATTRIBUTES)),
    max_leaves=16,
)


def _html(tree: _Tree, number: "count[int]") -> str:
    if isinstance(tree, str):
        return f" {escape(re.sub('%', lambda _: f' w{next(number)} ', tree))}\n "
    tag, inner, attributes = tree
    if tag in ("br", "hr", "img", "source", "wbr", "embed"):
        return f"<{tag}>"
    return f"<{tag}{attributes}>{''.join(_html(part, number) for part in inner)}</{tag}>"


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_trees, min_size=1, max_size=5))
def test_whatever_lies_in_whatever_every_word_stays_and_what_follows_is_what_it_is(trees: list[_Tree]) -> None:
    number = count()
    page = "".join(_html(tree, number) for tree in trees)
    records = chunks(f'{page}<h1>Last</h1><p>The <a href="end.html">end</a></p>')
    found = Counter(re.findall(r"\bw\d+\b", "\n".join(own_parts(records))))
    assert found == Counter(f"w{each}" for each in range(next(number)))
    assert records[-1]["metadata"]["headings_path"] == ["Last"]
    assert records[-1]["metadata"]["kind"] == "prose"
    assert [link["url"] for link in records[-1]["metadata"]["links"]] == ["end.html"]


_tokens = st.one_of(
    st.just("%"),
    st.builds(
        "<{}{}>".format, st.sampled_from(_TAGS.split()), st.sampled_from([*_ATTRIBUTES, "/", " {% if %}", " x y=1"])
    ),
    st.builds("</{}>".format, st.sampled_from(_TAGS.split())),
    st.sampled_from(
        ["<!-- c -->", "&amp;", "&lt;", "<", "<!x>", "&#1;", "\x01", "<?php ?>", "\r\n", "&nbsp;", "<p/>", "<a/>"]
    ),
).filter(lambda token: "textarea" not in token and "iframe" not in token)  # what is not closed there is text to its end


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_tokens, max_size=40))
def test_however_tags_are_mixed_up_every_word_stays(tokens: list[str]) -> None:
    number = count()
    page = "".join(f" w{next(number)} " if token == "%" else token for token in tokens)
    found = Counter(re.findall(r"\bw\d+\b", "\n".join(own_parts(chunks(page)))))
    assert found == Counter(f"w{each}" for each in range(next(number)))


def test_a_page_that_begins_with_a_rule_has_no_front_matter() -> None:
    (record,) = chunks("<hr><p>Title: of nobody</p><hr><p>Text.</p>")
    assert record["metadata"]["kind"] == "prose"
    assert "title" not in record["metadata"]
    assert "Title: of nobody" in record["text"]
    assert "Text." in record["text"]
