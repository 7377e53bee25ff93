"""What a page says in XML, and what ends a line for others, is read as text; pages of Confluence too."""

import time

import pytest

from chunksink.producers.html.page import cleaned
from tests.producers.html.support import chunks, links, paths, text

XHTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>'


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (
            f"{XHTML}<h1>Guard</h1><pre><![CDATA[\nif (a < b && b > c) {{ run(); }}\n]]></pre>",
            "# Guard\n\n```\nif (a < b && b > c) { run(); }\n```",
        ),
        ("<p>See <![CDATA[a > b && c <d>]]> here.</p>", "See a > b && c <d> here."),
        ("<p>a <![CDATA[open > end</p>", "a open > end"),
        ("<script>//<![CDATA[\nx\n//</script><p>a <![CDATA[b > c]]> d", "a b > c d"),
        ("<script src='x'/><pre><![CDATA[a > b]]></pre>", "```\na > b\n```"),
        ("<!-- <![CDATA[ --><p>a <![CDATA[b > c]]> d", "a b > c d"),
    ],
)
def test_a_section_of_xml_is_text(page: str, shown: str) -> None:
    assert text(page) == shown


@pytest.mark.parametrize(
    ("entities", "shown"),
    [
        ('<!ENTITY co "ACME &#38; <b>x</b>"> <!-- don\'t -->', "We are ACME & **x**."),
        ('<!ENTITY co SYSTEM "file:///etc/hostname">', "We are &co;."),
        ('<!ENTITY co "&other;"> <!ENTITY other "x">', "We are &other;."),
        (f'<!ENTITY co "{"x" * (1 << 20)}x">', "We are &co;."),
    ],
)
def test_names_that_a_page_gives_to_texts(entities: str, shown: str) -> None:
    page = f'<?xml version="1.0"?><!DOCTYPE html [{entities}]><html xmlns="x"><body><p>We are &co;.</p></body></html>'
    assert text(page) == shown


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "&#8232;", "&#x2029;", "&#12;"])
def test_what_ends_a_line_for_others_is_a_space(sign: str) -> None:
    assert text(f"<p>Steps:{sign}# none</p>") == "Steps: # none"
    assert paths(f"<h2>One{sign}two</h2>x") == [["One two"]]
    assert "| x y |" in text(f"<table><tr><th>abc</th></tr><tr><td>x{sign}y</td></tr></table>").replace("  ", " ")
    assert text(f"<pre>a{sign}b</pre>") == "```\na\nb\n```"
    assert text("<p>&#110; &#xb5; &#123;</p>") == "n µ {"


CODE = '<ac:plain-text-body><![CDATA[print("hello <world>")\nx = 1]]></ac:plain-text-body>'


def test_code_of_confluence_is_code() -> None:
    named = '<ac:parameter ac:name="language">python</ac:parameter><ac:parameter ac:name="collapse">true</ac:parameter>'
    titled = '<ac:parameter ac:name="title">One</ac:parameter>'
    (record,) = chunks(f'<ac:structured-macro ac:name="code">{named}{CODE}</ac:structured-macro>')
    assert record["text"] == '```python\nprint("hello <world>")\nx = 1\n```'
    assert record["metadata"]["code_language"] == "python"
    assert text(f"<ac:structured-macro>{titled}{CODE}</ac:structured-macro>").startswith("One\n\n```\nprint")


def test_links_and_pictures_of_confluence_are_such() -> None:
    body = "<ac:plain-text-link-body><![CDATA[link body]]></ac:plain-text-link-body>"
    page = f'See <ac:link><ri:page ri:content-title="Other page"/>{body}</ac:link>, '
    page += '<ac:link ac:anchor="top"><ri:page ri:content-title="Third" ri:space-key="DS"/></ac:link>, '
    page += '<ac:link><ri:attachment ri:filename="a.pdf"/></ac:link>'
    page += '<ac:image ac:alt="A barn"><ri:attachment ri:filename="barn.png"/></ac:image>'
    (record,) = chunks(f"<p>{page}</p>")
    other, third = "/pages/viewpage.action?title=Other+page", "/pages/viewpage.action?spaceKey=DS&title=Third#top"
    assert record["text"] == "See link body, Third, a.pdf A barn"
    assert [(link["url"], link["link_type"]) for link in record["metadata"]["links"]] == [
        (other, "confluence"),
        (third, "confluence"),
        ("barn.png", "image"),
    ]
    assert links("<p><ac:link><ri:user/></ac:link></p>") == []


@pytest.mark.parametrize(
    "page",
    [
        "<![CDATA[" * 100_000 + "]]>",
        "<![CDATA[" * 100_000,
        "<!--" * 100_000 + "<![CDATA[]]>",
        "<script>" * 100_000 + "<![CDATA[]]>",
        "<!DOCTYPE html [" + "<!-- " * 100_000,
        "<!DOCTYPE html [" + "'<!-- '" * 50_000 + "]>",
        "<!DOCTYPE html [" + "<!ENTITY a " * 50_000 + "]>",
    ],
    ids=lambda page: page[:24],
)
def test_hostile_pages_take_time_in_proportion(page: str) -> None:
    start = time.process_time()
    cleaned(page)
    assert time.process_time() - start < 2
