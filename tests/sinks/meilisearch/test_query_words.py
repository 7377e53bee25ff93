"""How a query is split into searches for its words, and how much each word counts."""

import pytest

from chunksink.sinks.meilisearch.query_words import beginning_with_each, each_word, may_be_japanese, rarest, rarity


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", []),
        ("cat", []),
        ("cat cat Cat", []),
        ('"the cat"', []),
        ("the cat ", ["the", "cat"]),
        ("the cat, the dog ", ["the", "cat", "dog"]),
        ("dry-run: e-mail ", ["dry", "run", "e", "mail"]),
        ("हिन्दी भाषा ", ["हिन्दी", "भाषा"]),
        ("สวัสดี re\u0301sume\u0301, 🎉 (५५) ", ["สวัสดี", "re\u0301sume\u0301", "🎉", "५५"]),
        ("2026年8月15日 ", ["2026", "年", "8", "月", "15", "日"]),
        ("生成AI ", ["生成", "AI"]),
        ('"the cat" dog ', ['"the cat" dog', '"the cat"']),
        ('dog "the cat" boa ', ['dog "the cat"', '"the cat" boa', '"the cat"']),
    ],
)
def test_each_word_is_searched_with_all_phrases(query: str, expected: list[str]) -> None:
    assert [one.strip() for one in each_word(query)] == expected


@pytest.mark.parametrize(
    ("query", "expected"), [("設定", True), ("設定の変更", False), ("ｻｰﾊﾞｰ設定", False), ("API", False)]
)
def test_query_with_kana_is_known_to_be_japanese(query: str, expected: bool) -> None:
    assert may_be_japanese(query) is expected


def test_only_the_last_word_may_be_a_prefix() -> None:
    assert [one.endswith(" ") for one in each_word("cat boa")] == [True, False]
    assert beginning_with_each("cat boa") == ["cat boa", "boa"]
    assert beginning_with_each("cat boat ") == ["cat boat ", "boat cat "]


def test_number_of_searches_is_limited() -> None:
    assert len(each_word(" ".join(f"w{number}" for number in range(300)))) == 25


def test_hits_have_one_of_the_rarer_words() -> None:
    assert rarest([]) == rarest([0, 0]) == []
    assert rarest([5, 0, 2, 3]) == [2, 3, 0]
    assert rarest([1500, 400, 200]) == [2, 1], "1500 more would be too many"
    assert rarest([0, 9000, 5000]) == [2], "one is always needed"


def test_rarer_words_weigh_more() -> None:
    weights = [rarity(documents, 1000) for documents in (0, 1, 10, 500, 1000)]
    assert weights == sorted(weights, reverse=True)
    assert 0 < weights[-1] < 0.001
    assert rarity(10_000, 9_000) > 0, "counts are estimates"
