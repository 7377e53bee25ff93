"""Why there is nothing: a filter, a field that nothing bears, a tenant that sees nothing, a word that was misspelt."""

from dataclasses import replace
from pathlib import Path

import pytest

from chunksink.search.access import Access
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.sinks.reader import Filter
from tests.search.support import MODES, family, legs_over

MD = Filter("source_type", any_of=("md",))
TXT = Filter("source_type", any_of=("txt",))
RECENT = Filter("year", at_least=2020)

FAMILIES = [
    family("pets.md", "the cat sleeps", source_type="md", tenant_id="acme"),
    family("sea.txt", "a boat", source_type="txt", tenant_id="acme"),
    family("law.md", "a cat in law", source_type="md", year=2021, tenant_id="other"),
]


def told(legs: Legs, access: Access, text: str, *filters: Filter, mode: Mode = "keyword") -> str | None:
    answer = search(legs, Question(text, mode=mode, filters=filters), access)
    assert not answer.hits
    return answer.notice


NO_YEAR = "nothing that answers passes the filter of source_type and year; without it something is found"


@pytest.mark.parametrize("mode", MODES)
def test_a_filter_that_keeps_all_out_is_named(legs: Legs, mode: Mode) -> None:
    """Also a field that only another tenant's documents have is one that no document has."""
    acme = Access("acme", required=True)
    assert told(legs, acme, "cat", MD, RECENT, mode=mode) == f"{NO_YEAR}; no document has a year"
    told_other = told(legs, Access("other"), "cat", TXT, mode=mode)
    assert told_other == "nothing that answers passes the filter of source_type; without it something is found"
    tags = Filter("tags", any_of=("x",))
    assert (told(legs, acme, "cat", tags, RECENT, mode=mode) or "").endswith("no document has tags or a year")


def test_where_filters_are_not_why_nothing_is_said(legs: Legs) -> None:
    acme = Access("acme")
    assert told(legs, acme, "zebra", MD, RECENT) is None
    assert told(legs, acme, "zebra") is None
    assert told(legs, acme, "law", MD) is None, "only another tenant has it"
    first = Question("cat", mode="keyword", filters=(MD,))
    assert search(legs, first).notice is None
    assert search(legs, replace(first, offset=10)).notice is None, "there are hits, on an earlier page"


@pytest.mark.parametrize("mode", MODES)
def test_where_nothing_can_be_seen_only_that_is_told(legs: Legs, mode: Mode, tmp_path: Path) -> None:
    for filters in ((), (MD, RECENT)):
        assert told(legs, Access("nobody"), "cat", *filters, mode=mode) == "nothing is visible to the tenant 'nobody'"
    with legs_over(tmp_path, []) as empty:
        notice = told(empty, Access(None), "cat", MD, mode=mode)
    assert notice == "this index holds no sources; `chunksink sync` brings in what the chunks hold now"


def test_by_meaning_alone_filters_are_named_too(legs: Legs) -> None:
    alone = replace(legs, keyword=None)
    notice = told(alone, Access("acme"), "cat", RECENT, mode="semantic")
    assert notice == "nothing that answers passes the filter of year; without it something is found"


@pytest.mark.parametrize("mode", MODES)
def test_a_misspelt_word_is_told(legs: Legs, mode: Mode) -> None:
    """Also where another word, or the meaning, has found something; what another tenant writes is not said."""
    answer = search(legs, Question("Sleepps cat", mode=mode), Access("acme"))
    by_words = mode != "semantic"
    assert answer.notice == ("nothing holds 'Sleepps'; is 'sleeps' meant?" if by_words else None)
    assert answer.as_json()["meant"] == answer.meant == ({"Sleepps": "sleeps"} if by_words else {})
    assert search(legs, Question("sleepps cat", mode=mode), Access("other")).notice is None
    assert search(legs, Question("sleeps cat", mode=mode), Access("acme")).as_json()["meant"] == {}


RESEMBLES = "holds these words; what is shown only resembles them in meaning"


def test_where_only_meaning_finds_something_it_is_said(legs: Legs) -> None:
    def notice(text: str, *filters: Filter, tenant: str = "acme", mode: Mode = "hybrid") -> str | None:
        answer = search(legs, Question(text, mode=mode, filters=filters), Access(tenant))
        assert answer.hits
        return answer.notice

    assert notice("zebra kitten") == f"no text {RESEMBLES}"
    assert notice("boat", MD) == f"no text of what the filters let through {RESEMBLES}"
    assert notice("law") == f"no text {RESEMBLES}", "only another tenant has it"
    assert notice("cat zebra") is None
    assert notice("law", tenant="other") is None
    assert notice("zebra kitten", mode="semantic") is None
    assert notice("?!") is None
    assert notice("sleepps") == "nothing holds 'sleepps'; is 'sleeps' meant?", "it is not told twice"
    assert notice("sleepps zebra") == f"nothing holds 'sleepps'; is 'sleeps' meant?; no text {RESEMBLES}"
