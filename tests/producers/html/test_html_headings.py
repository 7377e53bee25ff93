"""Headings are headings wherever they stand, and say their words only."""

from html import escape

import pytest

from tests.producers.html.support import chunks, paths, text


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


@pytest.mark.parametrize(
    "page",
    [
        '<h2><span>History</span><span class="mw-editsection">[<a href="/w?action=edit">edit</a>]</span></h2>',
        '<div><h2>History</h2><span class="mw-editsection"><span>[</span><a href="/w">ändern</a>]</span></div>',
    ],
)
def test_what_a_wiki_offers_its_writers_is_none_of_its_words(page: str) -> None:
    (record,) = chunks(page)
    assert record["text"].rstrip() == "## History"
    assert record["metadata"]["headings_path"] == ["History"]


def test_links_to_places_beside_a_heading_go_as_well() -> None:
    page = '<div><h2>Install</h2><a class="anchor" href="#a" aria-label="Permalink"></a></div><dl><dt>f()<a'
    page += ' class="headerlink" href="#f">¶</a></dt><dd>See <a href="#5">§</a> 5.</dd></dl>'
    assert text(page).split() == ["##", "Install", "f()", "See", "§", "5."]


@pytest.mark.parametrize(
    "heading",
    [
        "__init__",
        "impl<T> Vec<T>",
        "*const T",
        "[x](y)",
        "a `b`",
        "&amp;",
        "# x",
        "1. x",
        "a_b_c",
        "<!-- x",
        "Loop {#each}",
    ],
)
def test_signs_in_a_heading_are_text(heading: str) -> None:
    assert paths(f"<h2>{escape(heading)}</h2>") == [[heading]]


def test_a_button_in_a_heading_is_no_word_of_it() -> None:
    page = "<h1>Struct Vec <button>Copy item path</button></h1><p>x</p>"
    assert paths(page)[-1] == ["Struct Vec"]
    assert "Copy item path" in text(page)


@pytest.mark.parametrize(
    ("page", "anchor"),
    [
        ('<h2 id="Run-Steps">Run steps</h2>', "Run-Steps"),
        ('<section id="run"><h2>Run steps<a class="headerlink" href="#run">¶</a></h2></section>', "run"),
        ('<section id="run"><div><a id="x"></a><h2>Run steps</h2></div></section>', "x"),
        ('<p>before</p><a name="run"></a><h2>Run steps</h2>', "run"),
        ('<p>before</p><p><a name="run"></a></p><h2>Run steps</h2>', "run"),
        ('<h2><span class="mw-headline" id="run">Run <b>steps</b></span></h2>', "run"),
        ('<h2>Run steps<a class="headerlink" href="#r%C3%BCn">¶</a></h2>', "rün"),
        ('<div id="main"><p>before</p><h2>Run steps</h2></div>', None),
        ('<div id="main">before<h2>Run steps</h2></div>', None),
        ('<h2>Run <a href="#other">steps</a></h2>', None),
        ('<ul><li><h2 id="listed">Run steps</h2></ul><h2 id="run">Run steps</h2>', "run"),
    ],
)
def test_a_link_to_a_heading_leads_to_its_own_id(page: str, anchor: str | None) -> None:
    record = next(record for record in chunks(f"{page}<p>x") if record["metadata"]["headings_path"])
    assert record["metadata"].get("anchor") == anchor


def test_every_heading_has_its_own_id_or_none() -> None:
    page = "<h2 id=a>Setup</h2>x<h3>Notes</h3>y<h2 id=b>Setup</h2>z"
    page += "<h3 id=c>Notes: 10<sup>2</sup> &amp; <code>x_y</code></h3>"
    found = [(record["metadata"]["headings_path"][-1], record["metadata"].get("anchor")) for record in chunks(page)]
    assert found == [("Setup", "a"), ("Notes", None), ("Setup", "b"), ("Notes: 10^2 & x_y", "c")]
