"""Pages keep their words, headings, tables and code; navigation and programs are left out."""

import re
from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunksink.ingest.codes import CHUNKING_FAILED
from chunksink.ingest.errors import SourceFailed
from chunksink.ingest.formats.html import HtmlFormat, html_to_markdown
from tests.conftest import examples
from tests.ingest.converters.support import page, read

PAGE = """<!DOCTYPE html><html lang="de"><head><title>Große  Häuser</title><meta name="author" content="Ada; Bob">
<meta property="article:published_time" content="2024-05-01"><script>var nothing = 1</script></head><body>
<header>Site banner</header><nav>Menu entry</nav><main><h1>Häuser<a class="headerlink" href="#h">¶</a></h1>
<p>Erster <b>Satz</b> in snake_case.</p><h2>Maße</h2><table><tr><th>Raum<th colspan=2>Fläche
<tr><td rowspan=2>Küche<td>12<td>m²<tr><td>13<td>ft</table><ul><li>eins<ul><li>zwei</ul></ul>
<pre><code class="language-python">if a &lt; b:
    go()</code></pre><p>&lt;div&gt; is a tag</p><img src="x.png"><img src="y.png" alt="Ein Plan"></main>
<footer>Imprint</footer></body></html>"""
MENU = "<ul><li><a href=home.html>Home</a><li><a href=shop.html>Shop</a></ul>"
ARTICLE = "<h1>Bees</h1><p>They dance.</p>"


def test_page_has_structure_of_its_main_part_and_metadata_of_its_head() -> None:
    found = page(PAGE)
    assert found.headings[-1] == ["Häuser", "Maße"]
    assert "Erster **Satz** in snake_case." in found.text
    assert "| Raum | Fläche | |\n| --- | --- | --- |\n| Küche | 12 | m² |" in found.text
    assert "- eins\n  - zwei" in found.text
    assert "```python\nif a < b:\n    go()\n```" in found.text
    assert not re.search("banner|Menu|Imprint|nothing|¶", found.text)
    assert (found.metadata["title"], found.metadata["language"]) == ("Große Häuser", "de")
    assert (found.metadata["authors"], found.metadata["date"]) == (["Ada", "Bob"], "2024-05-01")
    assert (found.records[0]["source"]["source_type"], found.metadata["mime_type"]) == ("html", "text/html")
    assert found.codes == ["SITE_LEFT_OUT", "PARTS_LEFT_OUT"]


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "“quoted” – it’s €5…"),
        ("Shift_JIS", "cp932", "日本語 ①㈱"),
        ("gb2312", "gb18030", "中文镕 €"),
        ("", "cp1252", "café"),
    ],
)
def test_page_is_decoded_as_utf_8_or_as_its_head_names(charset: str, codec: str, text: str) -> None:
    html = f'<html><head><meta http-equiv="Content-Type" content="text/html; charset={charset}"></head><p>{text}'
    assert read(HtmlFormat(), html.encode(codec)).text == text
    assert read(HtmlFormat(), html.encode()).text == text, "most pages that name another encoding were saved as UTF-8"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "it is a PNG image"),
        (b"<p>" + bytes(range(32)) * 4, "control characters"),
        (b"<p>" + bytes(range(256)), "control characters"),
        ("<p>Words".encode("utf-16-le"), "UTF-16"),
    ],
)
def test_binary_data_is_no_page(data: bytes, reason: str) -> None:
    with pytest.raises(SourceFailed, match=reason) as failed:
        read(HtmlFormat(), data)
    assert failed.value.code == CHUNKING_FAILED


@pytest.mark.parametrize(
    "part",
    [
        f"<nav>{MENU}</nav>",
        f"<div role=navigation>{MENU}</div>",
        "<div role=dialog><p>We use cookies.</p><button>Accept</button></div>",
    ],
)
@pytest.mark.parametrize("order", ["{part} {article}", "{article} {part}", "<main>{article}</main>{part}"])
def test_navigation_and_the_like_is_left_out(part: str, order: str) -> None:
    found = page(order.format(part=part, article=ARTICLE))
    assert (found.text, found.links, found.codes) == ("# Bees\n\nThey dance.", [], ["SITE_LEFT_OUT"])


def test_main_content_of_confluence_is_the_main_part() -> None:
    crumbs, content = "<ol><li><a href=i.html>Space</a></li></ol>", "<div id={}><h2>Cause</h2><p>Rain.</p></div>"
    exported = (
        f"<title>Space : Leaks</title><div id=main>{crumbs}<h1>Space : Leaks</h1>By Ann{content}Attachments</div>"
    )
    found = page(exported.format("main-content"))
    assert (found.text, found.headings[-1]) == ("# Space : Leaks\n\n## Cause\n\nRain.", ["Space : Leaks", "Cause"])
    assert (found.metadata["title"], found.codes) == ("Space : Leaks", ["SITE_LEFT_OUT"])
    assert "By Ann" in page(exported.format("other")).text
    assert page(f"<a id=main-content></a><article>{ARTICLE}</article>x").text == "# Bees\n\nThey dance."


def test_title_before_main_part_and_notes_in_it_are_kept() -> None:
    assert "by Karl" in page("<section><header>by Karl</header><p>They dance.</p></section>").text
    found = page("<header><h1>Bees</h1>Shop</header><main><p>They dance.</p><aside>Note</aside></main><nav>x</nav>")
    assert found.text == "# Bees\n\nThey dance.\n\nNote"
    assert page("<header><h1>Bees</h1><p>A talk.</p></header><p>They dance.").headings == [["Bees"]]


def test_embedded_parts_and_drawings_are_counted() -> None:
    found = page("<p>Text.</p><iframe src=u></iframe><svg><text>Drawn</text></svg><svg><path/></svg><img src=x>")
    assert found.text == "Text."
    assert found.codes == ["PARTS_LEFT_OUT"]
    assert page("<script>x</script><img src=a>").codes == ["SOURCE_EMPTY", "PARTS_LEFT_OUT"]
    assert found.notices[0].reason == "left out: drawings and embedded parts (2), pictures without text (1)"


def test_readings_of_ruby_are_left_out() -> None:
    words = "<ruby>避<rp>（</rp><rt>ひ</rt><rp>）</rp></ruby><ruby><rb>難<rt>なん</ruby>場所"
    found = page(f"<h1>{words}</h1><p>{words}へ")
    assert (found.text, found.metadata["title"]) == ("# 避難場所\n\n避難場所へ", "避難場所")


@pytest.mark.parametrize(
    "copy", ["<span aria-hidden=true><span>x</span>2</span>", '<img aria-hidden=true alt="{x^{2}}" src=x>']
)
def test_formula_is_read_once(copy: str) -> None:
    others = "<annotation-xml><ci>x</ci></annotation-xml><annotation>x^{2}</annotation>"
    formula = f"<math><semantics><msup><mi>x</mi><mn>2</mn></msup>{others}</semantics></math>"
    found = page(f"<p>Is <span><span>{formula}</span>{copy}</span>, so <i>y</i> <b aria-hidden=true>too</b>.")
    assert found.text == "Is x^2, so *y* **too**."


def test_hidden_part_after_a_text_with_a_formula_is_read() -> None:
    formula = "<math><mi>x</mi></math>"
    found = page(f"<div><p>With {formula}.</p></div><div aria-hidden=true><p>Second tab.</p></div>")
    assert found.text == "With x.\n\nSecond tab."


def test_line_numbers_of_code_are_left_out() -> None:
    numbers, code = "<pre><span>1</span>\n<span>2</span></pre>", "<pre><code>run()\n7</code></pre>"
    table = f"<table><tr><td class=linenos><div>{numbers}</div></td><td>{code}</td></tr></table>"
    for html in (table, '<pre><span class="linenos">1</span>run()\n<span class="linenos">2</span>7</pre>'):
        assert page(html).text == "```\nrun()\n7\n```"
    assert page("<table><tr><td><pre>5</pre><td><pre>120</pre></table>").text == "```\n5\n```\n\n```\n120\n```"


def test_site_name_is_not_the_title_of_a_page() -> None:
    title, heading = "<title>{}</title>", "<h1>The Bee\nBook</h1><main><h2>Dances</h2>Round.</main>"
    assert page(title.format("Dances - The Bee Book") + heading).headings == [["Dances"]]
    for named in ("The Bee Book", "Bees - The Bee Book"):  # `The Bee Book` may be the title of this page
        assert page(title.format(named) + heading).headings == [["The Bee Book"], ["The Bee Book", "Dances"]]


def test_buttons_are_left_out_unless_they_are_headings_of_parts() -> None:
    button = "<button id=copy>Copy</button>"
    found = page(f"<h2>Struct {button}</h2><pre><code>done();</code>{button}</pre><p>a {button}b")
    assert found.text == "## Struct\n\n```\ndone();\n```\n\na b"
    assert (found.headings[0], found.metadata.get("anchor")) == (["Struct"], None)
    opened = "<h2><button aria-expanded=false>{}</button></h2>x"
    for heading in (opened, "<h2><button>{}</button></h2>x"):
        assert page(heading.format("Costs") + heading.format("Time")).headings == [["Costs"], ["Time"]]


@pytest.mark.parametrize(
    "html",
    [
        "<a href=y><h2>Setup</h2><p>x</p></a>",
        "<ul><li><h2>Setup</h2>x</ul>",
        "<table><tr><td>x</td><td><table><tr><td><h2>Setup</h2>a</td></tr></table></td></tr></table>",
        '<h2>Setup<a href="#a" title="Link to this heading">¶</a></h2>x',
        '<h2><span>Setup</span><span class="mw-editsection">[<a href="/w">edit</a>]</span></h2>x',
    ],
)
def test_heading_in_any_element_is_a_heading(html: str) -> None:
    found = page(html)
    assert found.headings[-1] == ["Setup"]
    assert "x" in found.text


def test_markdown_of_fragment_has_words_of_links_and_tables() -> None:
    assert page("<hr><p>title: of nobody</p><hr><p>Text.").metadata["title"] == "file", "it is no front matter"
    assert html_to_markdown("<p>See <a href=x>the <b>guide</b></a></p>") == "See the **guide**"
    assert html_to_markdown("<table><tr><td>a<td>b<tr><td>1<td>2</table>") == "| a | b |\n| --- | --- |\n| 1 | 2 |"


_TAGS = """p div section b strong em i q mark span font small a h1 h2 h3 pre blockquote ul ol li dl dt dd
table tr td th tbody caption details summary figure figcaption center form br hr img var sub sup ruby my-el"""
_ATTRIBUTES = ["", "", " hidden", ' style="display:none"', ' href="u.html"', ' href="#x"', " colspan=2", " id=i"]
_LINES = (
    *("%",) * 9,
    *("# %", "``` %", "~~~ %", "```\n%\n", "- %", "1. %", "<script> %", "<!-- %", "<?%", "<pre>%", "%\n---\n"),
    *("%\n===\n%", "|%|%|", "[%]: http://x", "[%](", "](%", "***%", "%*", "__%", "`%", "\\%", "> %", "    %", "~~%"),
)
_Tree = str | tuple[str, list["_Tree"], str]
_trees: st.SearchStrategy[_Tree] = st.recursive(
    st.sampled_from(_LINES),
    lambda inner: st.tuples(
        st.sampled_from(_TAGS.split()), st.lists(inner, min_size=1, max_size=4), st.sampled_from(_ATTRIBUTES)
    ),
    max_leaves=16,
)


def _html(tree: _Tree, number: Iterator[int]) -> str:
    if isinstance(tree, str):
        return f" {escape(re.sub('%', lambda _: f' w{next(number)} ', tree))}\n "
    tag, inner, attributes = tree
    if tag in ("br", "hr", "img"):
        return f"<{tag}>"
    return f"<{tag}{attributes}>{''.join(_html(part, number) for part in inner)}</{tag}>"


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_trees, min_size=1, max_size=5))
def test_every_word_of_any_tree_arrives_once(trees: list[_Tree]) -> None:
    number = count()
    tree = "".join(_html(tree, number) for tree in trees)
    found = page(f'<p>Begin{tree}</p><h1>Last</h1><p>The <a href="end.html">end</a></p>')
    words = Counter(re.findall(r"\bw\d+\b", found.text))
    assert words == Counter(f"w{each}" for each in range(next(number)))
    assert not re.search("[\ue000-\ue002]", str(found.records))
    assert found.records[-1]["metadata"]["headings_path"] == ["Last"]
    assert found.links[-1] == "end.html"


# -- addresses of links and pictures are metadata of their chunk, not text; headings have ids


FILLED = "word " * 400


def test_text_has_words_of_links_and_metadata_their_addresses() -> None:
    (record,) = page(
        '<p>See <a href="https://ex.com/a?b=c" title="tip">the <b>guide</b></a>, <a href="/x">x</a>.'
    ).records
    assert record["text"] == "See the **guide**, x."
    assert [(link["url"], link["link_type"]) for link in record["metadata"]["links"]] == [
        ("https://ex.com/a?b=c", "external"),
        ("/x", "document"),
    ]


def test_each_chunk_has_links_that_are_in_it() -> None:
    found = page(
        f"<p><a href=a>a</a> {FILLED}<p><a href=b>b</a> {FILLED}<h2><a href=c>c</a></h2>x"
        "<pre>W\n<a href=d>W</a></pre><table><tr><th><a href=e>H</a><th>I<tr><td>1<td>2</table>"
    )
    links = [[link["url"] for link in record["metadata"].get("links", [])] for record in found.records]
    assert [each for each in links if each] == [["a"], ["b"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<a href=u>One</a><a href=v>Two</a>", "One Two"),
        ("<a href=u>bus</a>es, un<a href=u>likely</a>", "buses, unlikely"),
        ("<a href=u>1. One</a> and", "1\\. One and"),
    ],
)
def test_link_within_word_does_not_split_it_and_links_side_by_side_are_separate(html: str, shown: str) -> None:
    assert page(f"<p>{html}</p>").text == shown


def test_link_around_blocks_leads_on_from_their_words() -> None:
    found = page("<p>Before.</p><h2>Above</h2><a href=u><h3>Card</h3><p>words</p></a>")
    assert found.records[-1]["metadata"]["headings_path"] == ["Above", "Card"]
    assert [link["url"] for link in found.records[-1]["metadata"]["links"]] == ["u"]


def test_only_written_addresses_are_links_besides() -> None:
    shown = 'Write [text](url), ![a](b.png), [[note]], <a href="y.html"> or http://ex.com/'
    found = page(f"<p>{escape(shown)} as in <a href='https://ex.com/'>https://ex.com/</a></p>")
    assert sorted(found.links) == ["http://ex.com/", "https://ex.com/"]
    assert found.text.replace("\\", "") == f"{shown} as in https://ex.com/"


@pytest.mark.parametrize(
    ("base", "written", "address"),
    [
        ("", " über uns.html\n", "über uns.html"),
        ("http://ex.com/other/", "index.html", "http://ex.com/other/index.html"),
        ("http://ex.com/other/", "#place", "http://ex.com/other/#place"),
    ],
)
def test_address_is_as_written_from_base_of_page(base: str, written: str, address: str) -> None:
    html = f'<head><base target="_top"><base href="{base}"></head><p><a href="{escape(written)}">x</a></p>'
    assert page(html).links == [address]


@pytest.mark.parametrize(
    ("html", "anchor"),
    [
        ('<h2 id="Run-Steps">Run steps</h2>', "Run-Steps"),
        ('<section id="run"><h2>Run steps<a href="#run">¶</a></h2></section>', "run"),
        ('<p>before</p><a name="run"></a><h2>Run steps</h2>', "run"),
        ('<section id="run"><span>1.9.0</span><h2>Run steps</h2></section>', "run"),
        ('<section id="run"><h1>Run</h1><p>before</p><h2>Run steps</h2></section>', None),
        ('<div id="main"><p>before</p><h2>Run steps</h2></div>', None),
    ],
)
def test_heading_has_id_that_links_lead_to(html: str, anchor: str | None) -> None:
    records = page(f"{html}<p>x").records
    record = next(record for record in records if "Run steps" in record["metadata"]["headings_path"])
    assert record["metadata"].get("anchor") == anchor
