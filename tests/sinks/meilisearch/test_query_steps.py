"""Which words of a query are required under a filter, by the number of matching documents."""

import pytest

from chunksink.sinks.meilisearch.query_steps import Step, beginning_with_each, steps


def required(query: str, **counts: int) -> list[tuple[str, int, int, str]]:
    """The steps if each word has this many documents. Several words together have as many as the rarest one."""

    def count(queries: object) -> list[int]:
        assert isinstance(queries, list)
        return [min(counts.get(word, 0) for word in one.replace('"', "").split()) for one in queries]

    return [(step.query.strip(), step.words, step.typed, step.strategy) for step in steps(query, count)]


@pytest.mark.parametrize(
    ("query", "counts", "expected"),
    [
        ("cat", {"cat": 3}, [("cat", 1, 1, "last")]),
        ("cat", {}, [("cat", 1, 1, "last")]),
        ("the cat", {"the": 9, "cat": 3}, [("the cat", 2, 2, "all"), ("cat", 1, 2, "last")]),
        ("cat dog", {"cat": 3, "dog": 3}, [("cat dog", 2, 2, "all"), ("cat", 1, 2, "last")]),
        ("zebra the cat", {"the": 9, "cat": 3}, [("the cat", 2, 3, "all"), ("cat", 1, 3, "last")]),
        ("zebra lion", {}, []),
        ('"the cat" zebra', {"the": 9, "cat": 3}, [('"the cat"', 1, 2, "last")]),
        (
            '"the cat" dog',
            {"the": 9, "cat": 3, "dog": 2},
            [('"the cat" dog', 2, 2, "all"), ('"the cat"', 1, 2, "last")],
        ),
    ],
)
def test_most_frequent_words_are_dropped_first(
    query: str, counts: dict[str, int], expected: list[tuple[str, int, int, str]]
) -> None:
    assert required(query, **counts) == expected


def test_words_joined_in_the_texts_count_together() -> None:
    counts = {"old ": 0, "light ": 0, "house ": 0, "keeper": 4, "old light ": 0, "light house ": 2, "house keeper": 0}
    found = steps(
        "old light house keeper",
        lambda queries: [counts[" ".join(one.split()) + " " * one.endswith(" ")] for one in queries],
    )
    assert [" ".join(step.query.split()) for step in found] == ["light house keeper", "light house"]
    assert [step.words for step in found] == [3, 2]


def test_only_the_last_word_may_be_a_prefix() -> None:
    found = steps("cat boa", lambda queries: [2, 5] + [1] * (len(queries) - 2))
    assert [step.query for step in found] == ["cat boa", "cat  "]
    assert beginning_with_each("cat boa") == ["cat  boa", "boa"]
    assert beginning_with_each("cat boat ") == ["cat  boat ", "boat cat  "]


def test_query_is_limited_to_what_meilisearch_reads() -> None:
    typed = " ".join(f"w{number}" for number in range(30))
    found = steps(typed, lambda queries: [1] * len(queries))
    assert len(found[0].query.split()) == found[0].typed == 10


def test_fewer_words_score_less_regardless_of_their_own_score() -> None:
    scores = [Step("", words, 4).score(own) for words in (1, 2, 3, 4) for own in (0.01, 1.0)]
    assert scores == sorted(scores)
    assert scores[-1] == 1.0
