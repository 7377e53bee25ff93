"""Notices: filters that exclude everything, unused fields, tenants without documents, misspelt words."""

from dataclasses import replace
from pathlib import Path

import pytest

from chunksink.search.access import Access
from chunksink.search.legs import Legs
from chunksink.search.query import search
from chunksink.search.question import Mode, Question
from chunksink.settings.fields import FieldOptions
from chunksink.sinks.custom_fields import FieldSet
from chunksink.sinks.errors import InvalidFilter
from chunksink.sinks.fts.keyword_methods import KeywordMethods
from chunksink.sinks.reader import FacetValue, Filter, Sort
from tests.search.support import MODES, family, legs_over

MD = Filter("source_type", any_of=("md",))
TXT = Filter("source_type", any_of=("txt",))
RECENT = Filter("year", at_least=2020)

FAMILIES = [
    family("pets.md", "the cat sleeps", source_type="md", tenant_id="acme"),
    family("sea.txt", "a boat", source_type="txt", tenant_id="acme"),
    family("law.md", "a cat in law", source_type="md", year=2021, tenant_id="other"),
]


def notice_of(legs: Legs, access: Access, text: str, *filters: Filter, mode: Mode = "keyword") -> str | None:
    answer = search(legs, Question(text, mode=mode, filters=filters), access)
    assert not answer.hits
    return answer.notice


NO_YEAR = "No results with the given source_type and year>=2020: no document has a year."


@pytest.mark.parametrize("mode", MODES)
def test_notice_names_filters_that_exclude_everything(legs: Legs, mode: Mode) -> None:
    """A field that only other tenants' documents have counts as unused."""
    acme = Access("acme", required=True)
    assert notice_of(legs, acme, "cat", MD, RECENT, mode=mode) == f"{NO_YEAR} Without the filters there are results."
    notice = notice_of(legs, Access("other"), "cat", TXT, mode=mode)
    assert notice == "No results with the given source_type. Without the filter there are results."
    tags = Filter("tags", any_of=("x",))
    assert ": no document has tags or a year." in (notice_of(legs, acme, "cat", tags, RECENT, mode=mode) or "")


def test_notice_names_custom_fields_and_patterns_as_people_write_them(legs: Legs) -> None:
    acme = Access("acme")
    fields = replace(legs, fields=FieldSet.of({"due": FieldOptions(type="datetime")}))
    filters = Filter("fields.due", at_least=0), Filter("fields.labels", any_of=("x",), is_list=True)
    notice = notice_of(fields, acme, "cat", *filters)
    assert notice == (
        "No results with due>=1970-01-01T00:00:00Z and the given labels: no document has a due or labels. "
        "Without the filters there are results."
    )
    notice = notice_of(legs, acme, "cat", Filter("path", like=("sea*",)))
    assert notice == "No results with the given path. Without the filter there are results."
    notice = notice_of(legs, acme, "cat", Filter("path", any_of=("docs",)))
    assert notice.endswith("such as path=docs/*.")


def test_refused_pattern_names_the_sink_that_cannot_list_its_sources(
    legs: Legs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(KeywordMethods, "sources")
    pets = (Filter("path", like=("pets*",)),)
    for mode in ("hybrid", "semantic"):
        with pytest.raises(InvalidFilter, match=r"^the pattern .* fts cannot list"):
            search(legs, Question("cat", mode=mode, filters=pets))
        with pytest.raises(InvalidFilter, match="needs a sink with keyword search"):
            search(replace(legs, keyword=None), Question("cat", mode=mode, filters=pets))
    assert search(legs, Question("cat", mode="keyword", filters=pets)).hits, "the remedy works"


def test_facets_of_fields_that_the_index_lacks_are_left_out(legs: Legs) -> None:
    """Filters and orders by them are refused, because the hits depend on these."""
    question = Question("cat", facets=("source_type", "fields.priority"))
    answer = search(replace(legs, lacking=["priority"]), question, Access("acme"))
    assert (len(answer.hits), list(answer.facets)) == (2, ["source_type"])
    assert "priority" in (answer.notice or "")
    for refused in (
        replace(question, filters=(Filter("fields.priority", at_least=1),)),
        replace(question, sort=Sort("fields.priority")),
    ):
        with pytest.raises(InvalidFilter, match="priority"):
            search(replace(legs, lacking=["priority"]), refused, Access("acme"))


def test_no_notice_if_filters_are_not_the_reason(legs: Legs) -> None:
    acme = Access("acme")
    assert notice_of(legs, acme, "zebra", MD, RECENT) is None
    assert notice_of(legs, acme, "zebra") is None
    assert notice_of(legs, acme, "law", MD) is None, "only another tenant has it"
    first = Question("cat", mode="keyword", filters=(MD,))
    assert search(legs, first).notice is None
    assert search(legs, replace(first, offset=10)).notice is None, "there are hits, on an earlier page"


@pytest.mark.parametrize("mode", MODES)
def test_notice_if_nothing_is_visible(legs: Legs, mode: Mode, tmp_path: Path) -> None:
    for filters in ((), (MD, RECENT)):
        assert (
            notice_of(legs, Access("nobody"), "cat", *filters, mode=mode)
            == "The tenant 'nobody' has no documents in this index."
        )
    with legs_over(tmp_path, []) as empty:
        notice = notice_of(empty, Access(None), "cat", MD, mode=mode)
    assert notice == "This index has no sources. `chunksink sync` adds them."


def test_notice_names_filters_in_semantic_mode(legs: Legs) -> None:
    alone = replace(legs, keyword=None)
    notice = notice_of(alone, Access("acme"), "cat", RECENT, mode="semantic")
    assert notice == "No results with year>=2020. Without the filter there are results."


@pytest.mark.parametrize("mode", MODES)
def test_notice_suggests_words_for_misspelt_ones(legs: Legs, mode: Mode) -> None:
    """Also if other words or the meaning find hits. Words of other tenants are not suggested."""
    answer = search(legs, Question("Sleepps cat", mode=mode), Access("acme"))
    by_words = mode != "semantic"
    assert answer.notice == ("No text contains 'Sleepps'. Searched for 'sleeps' instead." if by_words else None)
    assert answer.as_json()["suggestions"] == answer.suggestions == ({"Sleepps": "sleeps"} if by_words else {})
    assert search(legs, Question("sleepps cat", mode=mode), Access("other")).notice is None
    assert search(legs, Question("sleeps cat", mode=mode), Access("acme")).as_json()["suggestions"] == {}


def test_notice_if_no_hit_has_the_field_of_the_order(legs: Legs) -> None:
    by_year = Question("cat", mode="keyword", sort=Sort("year", descending=True))
    assert "no year" in (search(legs, by_year, Access("acme")).notice or "")
    assert search(legs, by_year, Access("other")).notice is None


RESEMBLES = "contains these words. The hits are only similar in meaning."


def test_notice_if_only_meaning_matches(legs: Legs) -> None:
    def notice(text: str, *filters: Filter, tenant: str = "acme", mode: Mode = "hybrid") -> str | None:
        answer = search(legs, Question(text, mode=mode, filters=filters), Access(tenant))
        assert answer.hits
        return answer.notice

    assert notice("zebra kitten") == f"No text {RESEMBLES}"
    assert notice("boat", MD) == f"No text that passes the filters {RESEMBLES}"
    assert notice("law") == f"No text {RESEMBLES}", "only another tenant has it"
    assert notice("cat zebra") is None
    assert notice("law", tenant="other") is None
    assert notice("zebra kitten", mode="semantic") is None
    assert notice("?!") is None
    assert notice("sleepps") == notice("sleepps zebra") == "No text contains 'sleepps'. Searched for 'sleeps' instead."


def test_notice_names_identifiers_that_no_text_contains(tmp_path: Path) -> None:
    """Although other texts have a part of them."""
    named = [("a.md", "ERR-1150 cat", "acme"), ("b.txt", "ERR-1299 boat", "acme"), ("c.md", "ERR-4711 cat", "other")]
    families = [family(name, text, source_type=name[2:], tenant_id=tenant) for name, text, tenant in named]

    def notice(text: str, *filters: Filter, mode: Mode = "hybrid") -> tuple[str | None, set[bool]]:
        answer = search(legs, Question(text, mode=mode, filters=filters), Access("acme"))
        assert answer.hits
        return answer.notice, {hit.weak for hit in answer}

    with legs_over(tmp_path, families) as legs:
        for mode in ("hybrid", "keyword"):
            assert notice("ERR-1150", mode=mode) == notice("cat ERR-1299", mode=mode) == (None, {False})
            missing = notice("cat ERR-4711 of err 4712", mode=mode)
            assert missing == ("No text contains 'ERR-4711' or '4712'.", {False})
            missing, weak = notice("ERR-1299?", MD, mode=mode)
            assert (missing or "").startswith("No text that passes the filters contains 'ERR-1299'. All of these hits")
            assert weak == {True}
        assert notice("ERR-4711", mode="semantic")[0] is None
        empty = search(legs, Question("ERR-4711", mode="keyword", filters=(TXT, RECENT)), Access("acme"))
        assert "ERR" not in (empty.notice or ""), "the filters are the reason"


@pytest.mark.parametrize("mode", ("hybrid", "keyword"))
def test_misspelt_words_are_searched_as_suggested(legs: Legs, mode: Mode) -> None:
    """Facets and snippets follow. A phrase is searched as typed."""
    answer = search(legs, Question("sleepps", mode=mode, facets=("source_type",)), Access("acme"))
    assert answer[0].ranks["keyword"] == 1
    assert answer[0].highlights == ["sleeps"]
    assert FacetValue("md", 1) in answer.facets["source_type"]
    phrase = search(legs, Question('"sleepps"', mode=mode), Access("acme"))
    assert not phrase.hits
    assert phrase.notice is not None
    assert phrase.notice.endswith("Did you mean 'sleeps'?")
