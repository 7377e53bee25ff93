"""Two results compared by hand, and files of results."""

from pathlib import Path

import pytest

from chunksink.search.evaluation.comparison import Result, compare, read_result, save, unshared_queries
from chunksink.search.evaluation.evaluate import JudgedQueries
from chunksink.search.evaluation.reading import InvalidEvaluation

JUDGED = JudgedQueries({"a": "cat", "b": "boat"}, {"a": {"x": 1}, "b": {"y": 2, "z": 0}}, not_judged=1, without_text=0)


def test_comparison_matches_a_manual_calculation() -> None:
    before = {f"q{number}": number / 10 for number in range(10)}
    after = before | {"q9": 0.1, "q8": 0.7, "q0": 0.3}
    found = compare({"hybrid": {"nDCG@10": before | {"old": 1.0}}}, {"hybrid": {"nDCG@10": after | {"new": 0.0}}}, 0.05)
    hybrid = found["modes"]["hybrid"]
    assert (hybrid["before"], hybrid["after"]) == (pytest.approx(0.45), pytest.approx(0.39))
    difference = hybrid["difference"]
    assert difference["mean"] == pytest.approx(-0.06)
    assert difference["low"] < -0.06 < 0 < difference["high"] < 0.1
    assert [one["query"] for one in hybrid["lost"]] == ["q9", "q8"]
    assert hybrid["won"] == [{"query": "q0", "before": 0.0, "after": 0.3}]
    assert found["dropped"] == ["hybrid"]
    assert compare({"hybrid": {"nDCG@10": before}}, {"hybrid": {"nDCG@10": after}})["dropped"] == []


@pytest.mark.parametrize(("max_drop", "dropped"), [(0.1, []), (0.0999, ["keyword"])])
def test_drop_equal_to_the_limit_is_allowed(max_drop: float, dropped: list[str]) -> None:
    """Although 0.3 - 0.2 is a little less than 0.1 in binary."""
    before, after = {"nDCG@10": {"a": 0.3, "b": 0.3}}, {"nDCG@10": {"a": 0.2, "b": 0.2}}
    assert compare({"keyword": before}, {"keyword": after}, max_drop)["dropped"] == dropped


def test_at_most_five_queries_are_named() -> None:
    before, after = (dict.fromkeys("abcdefgh", value) for value in (0.5, 0.25))
    found = compare({"keyword": {"nDCG@10": before}}, {"keyword": {"nDCG@10": after}})["modes"]["keyword"]
    assert (len(found["lost"]), found["won"]) == (5, [])


def test_saved_result_is_read_unchanged_and_replaces_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text("old")
    result = Result(
        id="filename", index={"chunks": 3}, judged=JUDGED, modes={"hybrid": {"nDCG@10": {"a": 1, "b": 0.5}}}
    )
    save(result, file)
    assert read_result(file) == result
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "chunksink.evaluation.v2"}', "\xff"])
def test_file_that_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidEvaluation):
        read_result(tmp_path / "file")


def test_queries_of_both_must_have_the_same_text_and_judgements() -> None:
    other = JudgedQueries({"a": "cat", "c": "tax"}, {"a": {"x": 1}, "c": {"y": 1}}, 0, 0)
    assert unshared_queries(JUDGED, other) == ["b", "c"]
    for text, gain in (("cats", 1), ("cat", 2)):
        with pytest.raises(InvalidEvaluation):
            unshared_queries(JUDGED, JudgedQueries({"a": text}, {"a": {"x": gain}}, 0, 0))
