"""What the text of a row is taken for: a page, Markdown, or what a file of its name would hold."""

import pytest

from chunksink.producers.rows.markup import document_of, is_page
from chunksink.producers.rows.row import read_row

PAGES = [
    "<p>Hello <b>there</b></p>\n<h2>Part</h2>\n<pre># code()\n- no list</pre>",
    " <!DOCTYPE html>\n<html><body><my-site>Words</my-site></body></html>",
    '<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"><body>Words</body></html>',
    'See this picture:<p>x</p><img src="a.png">',
    "<p>One</p>\nSent from my phone",
    "Hello,<br/>I&#39;ve a <b>question</b>",
    "First<p>Second without an end",
    "<!-- wp:paragraph -->\n<p>Words</p>\n<!-- /wp:paragraph -->\n\n<!-- wp:paragraph -->\n<p>More</p>",
    "<p>Use <code>```</code> for code, and <code># x</code></p>",
    "<ul><li>a</li></ul><hr>",
]
OTHERS = [
    "a < b and c > d",
    "<note><to>Tove</to><from>Jani</from></note>",
    '<server port="8080"><host name="quay"/></server>',
    "<T extends Foo> means a generic; see Map<String,List<X>> and close </T>",
    "<p align=center>logo</p>\n\n# Lighthouse\n\n- one\n- two\n\n<p>bye</p>",
    "<details>\n<summary>Notes</summary>\n\n- Fixes the lamp\n</details>\n<br>",
    "<s><w>went</w> <w>home</w></s>",
    "One line<br>\n\nand another paragraph",
    "| a | b |\n|---|---|\n| x<br>y | z |",
    "Words with <b>bold</b> alone.",
    "Explain <br> vs <p>.\n\nFirst\n\nSecond",
    "<div align=center><img></div>\n\nSetext\n======\n\nText with words.",
    "<p>bye</p>\n\n1) one\n2) two",
    "<p>bye</p>\n\nOne paragraph.\n\nAnother paragraph.",
]


@pytest.mark.parametrize("text", PAGES)
def test_what_is_a_page(text: str) -> None:
    assert is_page(text)
    shown = document_of(read_row({"text": text})).text
    assert "</" not in shown.replace("</code>", "") and "&#39;" not in shown


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_none(text: str) -> None:
    assert not is_page(text)
    assert document_of(read_row({"text": text})).text.split() == text.split()


def test_what_shows_nothing_as_a_page_is_no_page() -> None:
    component = "<template><p>{{ m }}</p></template>\n<script>lighthouse()</script>"
    assert "lighthouse()" in document_of(read_row({"text": component})).text
    assert not document_of(read_row({"text": "<p> </p><br>"})).text.strip()


def test_the_name_says_what_it_is() -> None:
    page = PAGES[0]
    assert "<b>there</b>" in document_of(read_row({"markdown": page})).text
    assert "<b>there</b>" in document_of(read_row({"path": "README.md", "content": page})).text
    assert "**only**" in document_of(read_row({"html": "Words <b>only</b>."})).text
    assert "**there**" in document_of(read_row({"path": "a.html", "content": page})).text
    code = "# Copyright\nclass X:\n    def g(self): pass\n"
    assert document_of(read_row({"path": "run.py", "content": code})).text.split("\n")[2] == "    def g(self): pass"
    assert not document_of(read_row({"path": "run.py", "content": code})).sections[1:]
    script = 'function greet(n) {\n  return "<p>Hello <b>" + n + "</b></p>";\n}'
    assert document_of(read_row({"path": "src/a.js", "content": script})).text == script
    manual = "Title\n=====\n\nUse ``<br>`` and ``<p>x</p>`` here."
    assert document_of(read_row({"path": "a.rst", "content": manual})).sections[1:] == (("Title",),)
    assert document_of(read_row({"path": "notes.mdown", "content": "# Title\n\nWords"})).sections[1:]
    assert document_of(read_row({"url": "https://a.example/run.py", "text": "# Title\n\nWords"})).sections[1:]
