"""Code is written as it is shown, and its links are told beside it."""

import pytest

from tests.producers.html.support import chunks, text


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
    assert records[1]["text"].split("\n") == ["```", "int T f(U);", "", " 2 n", "```"]


CODE = "<pre>import frob\n\tx = 1</pre>"


@pytest.mark.parametrize(
    "page",
    [
        '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span class="normal">1'
        f'</span>\n<span class="normal">2</span></pre></div></td><td class="code"><div>{CODE}</div></td></tr></table>',
        '<figure class="highlight"><table><tr><td class="gutter"><pre><span class="line">1</span><br><span class="line"'
        f'>2</span><br></pre></td><td class="code">{CODE}</td></tr></table></figure>',
        '<table class="rouge-table"><tbody><tr><td class="rouge-gutter gl"><pre class="lineno">1\n2\n</pre></td>'
        f'<td class="rouge-code">{CODE}</td></tr></tbody></table>',
        '<table class="lntable"><tr><td class="lntd"><pre><code><span class="lnt">1\n</span><span class="lnt">2\n'
        f'</span></code></pre></td><td class="lntd">{CODE}</td></tr></table>',
        '<pre><span class="linenos">1</span>import frob\n<span class="linenos">2</span>\tx = 1</pre>',
        '<pre><a class="lineno" href="#1"> 1</a>import frob\n<a class="lineno" href="#2"> 2</a>\tx = 1</pre>',
    ],
)
def test_numbers_beside_lines_of_code_are_none_of_it(page: str) -> None:
    assert text(f"<p>Before.</p>{page}<p>After.</p>") == "Before.\n\n```\nimport frob\n\tx = 1\n```\n\nAfter."


@pytest.mark.parametrize(
    "page",
    [
        '<pre class="line-numbers"><code>42</code></pre>',
        '<div class="gutter">42 words<pre>x</pre></div>',
        '<table><tr><th>No<th>Item<tr><td class="line-no">42<td>Apples</table>',
        'In <span class="line-number">42</span> of the file',
        '<div class="gutter"><pre>1</pre><img alt="42" src="x.png"></div>',
        '<span class="online">42</span>',
        '<span class="linen">42</span>',
    ],
)
def test_other_numbers_stay(page: str) -> None:
    assert "42" in text(f"<p>Before.</p>{page}")
