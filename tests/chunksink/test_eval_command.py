"""`chunksink eval` over a real index."""

import json

import pytest

from chunksink.command_line.exits import Exit
from tests.chunksink.shell import Shell, write
from tests.journey.support import Ended
from tests.support.bus import source

TEXTS = {"pets": "the cat sleeps", "sea": "a boat at sea", "law": "a levy on boats", "more": "cat and boat"}
QUERIES = '{"_id": "1", "text": "cat"}\n{"_id": "2", "text": "levy"}\n{"_id": "3", "text": "never judged"}\n'


@pytest.fixture
def built(shell: Shell) -> Shell:
    return shell.begin("judged", "sync", p1=[source(f"docs/{name}.md", text) for name, text in TEXTS.items()])


def measured(shell: Shell, judged: str, *arguments: str) -> Ended:
    write(shell, "queries.jsonl", QUERIES)
    write(shell, "qrels.tsv", judged)
    return shell("eval", "--queries", "queries.jsonl", "--qrels", "qrels.tsv", *arguments)


def qrels(name: str) -> str:
    """Judgements whose documents are named by this template."""
    pets, law, sea = (name.format(source) for source in ("pets", "law", "sea"))
    return f"query-id\tcorpus-id\tscore\n1\t{pets}\t1\n2\t{law}\t2\n2\t{sea}\t1\n"


@pytest.mark.parametrize(
    ("field", "name"), [("document_id", "docs/{}.md@1"), ("source_uri", "docs/{}.md"), ("filename", "{}")]
)
def test_keyword_figures_by_hand(built: Shell, field: str, name: str) -> None:
    """`cat` finds the longer text first or second. `levy` finds law and never the sea."""
    ended = measured(built, qrels(name), "--mode", "keyword", "--json")
    report = ended.json
    assert (ended.code, report["queries"], report["queries_not_judged"]) == (Exit.OK, 2, 1)
    assert (report["id"], report["judged_but_missing"]) == (field, [])
    figures = {metric: one["mean"] for metric, one in report["modes"]["keyword"].items()}
    levy = 2 / (2 + 1 / 1.584962500721156)
    assert figures["recall@100"] == pytest.approx((1 + 0.5) / 2)
    assert figures["nDCG@10"] in (pytest.approx((1 + levy) / 2), pytest.approx((0.6309297535714575 + levy) / 2))
    assert figures["MRR@10"] in (1, 0.75)


def test_judgements_of_chunk_ids_are_recognised(built: Shell) -> None:
    chunk = json.loads(built.root.chunks_file("p1").read_text().splitlines()[0])
    report = measured(built, f"1 0 {chunk['chunk_id']} 1\n", "--mode", "keyword", "--json").json
    assert (report["id"], report["modes"]["keyword"]["recall@100"]["mean"]) == ("chunk_id", 1)


def test_eval_without_a_mode_measures_three(built: Shell) -> None:
    ended = measured(built, qrels("docs/{}.md") + "2\tdocs/never.md\t1\n9\tdocs/law.md\t1\n")
    assert ended.code == Exit.OK
    assert [line.split()[0] for line in ended.out.splitlines()[-3:]] == ["keyword", "semantic", "hybrid"]
    assert "2 judged queries, documents named by source_uri" in ended.out
    assert "without a relevant document: 1" in ended.out
    assert "missing from the queries file: 1" in ended.out
    assert "docs/never.md" in ended.err


def test_eval_without_the_configured_reranker_measures_nothing(built: Shell) -> None:
    write(built, "chunksink.toml", '[rerank]\nurl = "http://127.0.0.1:9/rerank"\n')
    ended = measured(built, qrels("{}"), "--mode", "keyword")
    assert (ended.code, ended.out) == (Exit.ENGINE, "")


def test_eval_with_a_field_that_matches_nothing_is_a_usage_error(built: Shell) -> None:
    ended = measured(built, qrels("{}"), "--id", "document_id")
    assert ended.code == Exit.USAGE
    assert "none of the 3 judged names matches the document_id of a document" in ended.err


def test_eval_by_file_names_with_their_extensions_explains_how_names_look(built: Shell) -> None:
    ended = measured(built, qrels("{}.md"), "--id", "filename")
    assert (ended.code, "without extension" in ended.err) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ("1\tpets\n", "line 1: "),
        ("7\tpets\t1\n", "judged relevant"),
        ("1\tpets\t0\n", "judged relevant"),
    ],
)
def test_eval_of_unusable_judgements_is_a_usage_error(built: Shell, judged: str, expected: str) -> None:
    ended = measured(built, judged)
    assert (ended.code, ended.out, expected in ended.err) == (Exit.USAGE, "", True)


def test_copies_of_a_hit_count_as_found(quick_shell: Shell) -> None:
    """A search shows both copies as one hit."""
    quick_shell.synced(p1=[source("docs/pets.md", "a cat"), source("docs/twin.md", "a cat")])
    report = measured(quick_shell, "1\tpets\t1\n1\ttwin\t1\n", "--mode", "keyword", "--id", "filename", "--json").json
    assert report["modes"]["keyword"]["recall@100"]["mean"] == 1.0


def test_saved_result_compares_equal_with_itself(built: Shell) -> None:
    assert measured(built, qrels("docs/{}.md"), "--mode", "keyword", "--save", "before.json").code == Exit.OK
    saved = json.loads((built.folder / "before.json").read_text())
    assert (saved["id"], saved["index"]["chunks"], list(saved["modes"])) == ("source_uri", 4, ["keyword"])
    ended = measured(built, qrels("docs/{}.md"), "--baseline", "before.json", "--fail-if-drop", "0", "--json")
    assert (ended.code, list(ended.json["modes"])) == (Exit.OK, ["keyword"])
    comparison = ended.json["comparison"]
    assert (comparison["dropped"], comparison["left_out"], comparison["baseline"]) == ([], [], saved["index"])
    keyword = comparison["modes"]["keyword"]
    assert (keyword["difference"], keyword["won"], keyword["lost"]) == ({"mean": 0, "low": 0, "high": 0}, [], [])
    assert keyword["before"] == keyword["after"] == ended.json["modes"]["keyword"]["nDCG@10"]["mean"]


def test_drop_beyond_the_limit_has_its_own_exit_code_and_names_the_query(quick_shell: Shell) -> None:
    quick_shell.synced(p1=[source(f"docs/{name}.md", text) for name, text in TEXTS.items()])
    judged = qrels("docs/{}.md")
    assert measured(quick_shell, judged, "--mode", "keyword", "--save", "before.json").code == Exit.OK
    quick_shell.commit("p1", *(source(f"docs/{name}.md", text) for name, text in TEXTS.items() if name != "law"))
    assert quick_shell("sync", "--allow-deletions", "9").code == Exit.OK
    shown = measured(quick_shell, judged, "--baseline", "before.json")
    assert (shown.code, "lost: 2 " in shown.out) == (Exit.OK, True)
    ended = measured(quick_shell, judged, "--baseline", "before.json", "--fail-if-drop", "0.01", "--json")
    assert (ended.code, ended.json["comparison"]["dropped"]) == (Exit.WORSE, ["keyword"])
    keyword = ended.json["comparison"]["modes"]["keyword"]
    assert [one["query"] for one in keyword["lost"]] == ["2"]
    assert keyword["difference"]["mean"] == pytest.approx(keyword["after"] - keyword["before"])
    assert measured(quick_shell, judged, "--baseline", "before.json", "--fail-if-drop", "0.9").code == Exit.OK


def test_queries_of_only_one_result_are_named_and_left_out(built: Shell) -> None:
    keyword = ("--mode", "keyword")
    assert measured(built, qrels("docs/{}.md"), *keyword, "--limit-queries", "1", "--save", "one.json").code == Exit.OK
    ended = measured(built, qrels("docs/{}.md"), "--baseline", "one.json", "--json")
    assert (ended.code, ended.json["comparison"]["left_out"]) == (Exit.OK, ["2"])


@pytest.mark.parametrize(
    ("judged", "options"),
    [
        ("1 0 docs/pets.md 2\n", ["--baseline", "saved.json"]),
        ("2 0 docs/law.md 1\n", ["--baseline", "saved.json"]),
        ("1 0 docs/pets.md 1\n", ["--baseline", "saved.json", "--mode", "semantic"]),
        ("1 0 docs/pets.md 1\n", ["--baseline", "qrels.tsv"]),
        ("1 0 docs/pets.md 1\n", ["--fail-if-drop", "0.1"]),
        ("1 0 docs/pets.md 1\n", ["--baseline", "saved.json", "--fail-if-drop", "nan"]),
    ],
    ids=["other judgements", "no common query", "other mode", "no result", "no baseline", "no limit"],
)
def test_unusable_baseline_is_a_usage_error(built: Shell, judged: str, options: list[str]) -> None:
    assert measured(built, "1 0 docs/pets.md 1\n", "--mode", "keyword", "--save", "saved.json").code == Exit.OK
    ended = measured(built, judged, *options)
    assert (ended.code, ended.out) == (Exit.USAGE, "")


def test_tuning_proposes_a_weight_or_none(built: Shell) -> None:
    report = measured(built, qrels("docs/{}.md"), "--mode", "hybrid", "--tune", "--json").json
    tuning = report["tuning"]
    by_query, *fixed = tuning["weights"]
    assert by_query["weight"] is None
    assert by_query["nDCG@10"] == pytest.approx(report["modes"]["hybrid"]["nDCG@10"]["mean"])
    assert [one["weight"] for one in fixed] == pytest.approx([number / 10 for number in range(11)])
    assert fixed[-1]["nDCG@10"] == 1, "both words are in one source only"
    assert fixed[0]["nDCG@10"] < 1, "the vectors are random"
    ended = measured(built, qrels("docs/{}.md"), "--mode", "hybrid", "--tune")
    assert ("`fusion_weight = " in ended.out) == tuning["is_better"]
    (built.folder / "chunksink.toml").write_text("fusion_weight = 1.0\n")
    report = measured(built, qrels("docs/{}.md"), "--mode", "hybrid", "--json").json
    assert report["modes"]["hybrid"]["nDCG@10"]["mean"] == fixed[-1]["nDCG@10"]


def test_baseline_of_another_tenant_is_refused(built: Shell) -> None:
    assert measured(built, qrels("docs/{}.md"), "--mode", "keyword", "--save", "saved.json").code == Exit.OK
    saved = json.loads((built.folder / "saved.json").read_text())
    write(built, "other.json", json.dumps(saved | {"tenant": "acme"}))
    for name, code in (("saved.json", Exit.OK), ("other.json", Exit.USAGE)):
        assert measured(built, qrels("docs/{}.md"), "--mode", "keyword", "--baseline", name).code == code
