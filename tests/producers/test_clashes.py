"""Two families cannot hold one chunk id in a partition: one goes on, the other is told of, and so is all the rest."""

from chunksink.chunkbus.twins import Twin
from chunksink.producers.clashes import clashes
from chunksink.producers.families import Family
from tests.producers.bench import LATER, Bench
from tests.producers.lines import kinds, line

CODE = "INTEGRITY_VIOLATION:duplicate_ids"


def told(bench: Bench, key: str = "markdown") -> dict[str, str]:
    return {record["provenance"]["source_uri"]: record["text"] for record in bench.records(key)}


def test_of_two_that_arrive_the_earlier_goes_on(bench: Bench) -> None:
    bench.write("1.jsonl", line("b", "B", id="same") + line("c", "C"))
    bench.write("2.jsonl", line("a", "A", id="same") + line("d", "D"))
    report = bench.ingest(kind="lines", kinds=kinds())
    bench.assert_valid()
    assert told(bench) == {"a": "A", "c": "C", "d": "D"}
    assert [(failure.source_uri, failure.code, failure.reason) for failure in report.failures] == [
        ("1.jsonl", CODE, "its chunk 'same' is one of a already")
    ]
    assert (report.failed, report.left_out, report.documents) == (1, {CODE: 1}, 3)
    assert (bench.manifest().errors, bench.manifest().counts.failures) == ({CODE: 1}, 1)
    assert {attempt["source_uri"]: attempt["status"] for attempt in bench.attempts()} == {
        "1.jsonl": "failed",
        "2.jsonl": "processed",
    }


def test_a_second_run_changes_nothing_and_tells_it_again(bench: Bench) -> None:
    bench.write("1.jsonl", line("a", "A", id="same"))
    bench.write("2.jsonl", line("b", "B", id="same"))
    bench.ingest(kind="lines", kinds=kinds())
    before = bench.bytes_on_bus()
    again = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (again.written, again.failed, again.left_out) == (False, 1, {CODE: 1})
    assert bench.bytes_on_bus() == before


def test_what_stands_goes_on_and_a_mended_source_arrives(bench: Bench) -> None:
    bench.write("1.jsonl", line("z", "Z", id="same"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("2.jsonl", line("a", "A", id="same"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (told(bench), report.failed) == ({"z": "Z"}, 1)
    bench.write("2.jsonl", line("a", "A", id="own"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (told(bench), report.failed) == ({"a": "A", "z": "Z"}, 0)
    assert bench.manifest().errors == {}


def test_a_family_keeps_its_last_good_version(bench: Bench) -> None:
    bench.write("1.jsonl", line("a", "A", id="same"))
    bench.write("2.jsonl", line("b", "B", id="other"))
    bench.ingest(kind="lines", kinds=kinds())
    bench.write("2.jsonl", line("b", "B2", id="same"))
    report = bench.ingest(kind="lines", kinds=kinds(), now=LATER)
    assert (told(bench), report.failed, report.written) == ({"a": "A", "b": "B"}, 1, True)
    bench.assert_valid()


def test_one_that_was_to_move_stays_where_it_is(bench: Bench) -> None:
    bench.write("1.jsonl", line("a", "A", id="same", type="x"))
    bench.write("2.jsonl", line("b", "B", id="same", type="y"))
    bench.ingest(kind="lines", kinds=kinds(), to="by-type")
    bench.write("2.jsonl", line("b", "B2", id="same", type="x"))
    report = bench.ingest(kind="lines", kinds=kinds(), to="by-type", now=LATER)
    assert (told(bench, "x"), told(bench, "y"), report.failed) == ({"a": "A"}, {"b": "B"}, 1)


def test_a_chain_costs_only_what_must_go() -> None:
    """Left out once, a family is in nobody's way any more."""
    families = [Family(key, key, "d", None, (), None, None, 2) for key in "abc"]
    twins = [Twin("one", 3, 2), Twin("two", 5, 4)]

    def left_out(arriving: str) -> list[str]:
        found = clashes(twins, lambda line: families[(line - 1) // 2], lambda key: key in arriving)
        return [clash.family for clash in found]

    assert left_out("abc") == ["b"]
    assert left_out("ac") == ["a", "c"]
