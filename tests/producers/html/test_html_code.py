"""Code is written as it is shown, and its links are told beside it."""

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
