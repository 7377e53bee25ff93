"""What a page says is of its site is no part of the document; and only that."""

import pytest

from tests.producers.html.support import links, paths, text

MENU = "<ul><li><a href=home.html>Home</a><li><a href=shop.html>Shop</a></ul>"
ARTICLE = "<h1>Bees</h1><p>They dance.</p>"


@pytest.mark.parametrize(
    "part",
    [
        f"<nav>{MENU}</nav>",
        f"<div role=navigation>{MENU}</div>",
        f"<div role='Menubar toolbar'>{MENU}</div>",
        f"<search>{MENU}</search>",
        f"<header>{MENU}</header>",
        f"<div role=banner>{MENU}</div>",
        f"<footer>{MENU}</footer>",
        "<div role=dialog aria-label=Cookies><p>We use cookies.</p><button>Accept</button></div>",
        "<div role=alertdialog>Your session ends soon.</div>",
        "<div id=mdbook-help-container><div id=mdbook-help-popup><h2>Keyboard shortcuts</h2><p>Press S</p></div></div>",
        f"<div><footer><nav>{MENU}</nav></footer></div>",
    ],
)
@pytest.mark.parametrize("order", ["{part} {article}", "{article} {part}", "<main>{article}</main>{part}"])
def test_what_is_of_the_site_is_left_out(part: str, order: str) -> None:
    page = order.format(part=part, article=ARTICLE)
    assert (text(page), links(page)) == ("# Bees\n\nThey dance.", [])


@pytest.mark.parametrize("tag", ["header", "footer"])
@pytest.mark.parametrize("around", ["article", "main", "section", "blockquote", "aside"])
def test_a_part_of_an_article_or_quote_has_its_own(tag: str, around: str) -> None:
    assert "by Karl" in text(f"<{around}><{tag}>by Karl</{tag}><p>They dance.</p></{around}>")


def test_the_title_of_a_document_may_stand_in_the_head_of_the_page() -> None:
    assert paths("<header><h1>Bees</h1><p>A talk.</p></header><p>They dance.</p>") == [["Bees"]]


def test_a_document_may_stand_in_a_dialog() -> None:
    assert text(f"<div role=dialog><article>{ARTICLE}</article></div><p>Loading") == "# Bees\n\nThey dance.\n\nLoading"


@pytest.mark.parametrize("role", ["note", "presentation", "main", "doc-footnote"])
def test_another_role_makes_it_another_part(role: str) -> None:
    assert "They dance." in text(f"<nav role={role}><p>They dance.</p></nav><p>After.</p>")


def test_what_stands_after_it_stays() -> None:
    assert text(f"<p>Before<nav>{MENU}</nav>after, <b>all</b>.") == "Before after, **all**."


@pytest.mark.parametrize("rest", ["", "<h2>Contents</h2>", "<p> </p>"])
def test_a_page_that_has_nothing_else_keeps_it(rest: str) -> None:
    assert links(f"{rest}<nav>{MENU}</nav>{rest}") == ["home.html", "shop.html"]
