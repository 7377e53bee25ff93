"""Every step at which a run makes a lasting change, and the runs that execute it.

`test_every_step` kills before and after each of them in `make soak`, and at every fifth one otherwise. It fails if the
code has a step that is missing here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """A method that writes, and the scenario of `dying` that calls it."""

    module: str
    owner: str
    method: str
    scenario: str
    call: int = 1
    """Which call of the scenario dies: the first may change nothing yet."""

    def __str__(self) -> str:
        number = f"#{self.call}" if self.call > 1 else ""
        return f"{self.scenario}-{self.owner}.{self.method}{number}"


OURS = (
    Step("chunksink.rebuild.intake", "Intake", "_read", "sync"),
    Step("chunksink.rebuild.intake", "Intake", "_accept_changes", "sync"),
    Step("chunksink.rebuild.intake", "Intake", "_note_missing", "held"),
    Step("chunksink.rebuild.intake", "Intake", "_note_misnamed", "held"),
    Step("chunksink.rebuild.catalog_rows", "", "_move", "sync"),
    Step("chunksink.rebuild.intake", "Intake", "_reject", "held"),
    Step("chunksink.rebuild.intake", "", "decide", "sync"),
    Step("chunksink.rebuild.catalog", "Catalog", "note_hashes", "sync"),
    Step("chunksink.rebuild.intake", "Intake", "_forget_other_projection", "projection"),
    Step("chunksink.rebuild.catalog", "Catalog", "mark_outdated", "moved"),
    Step("chunksink.rebuild.catalog", "Catalog", "retire", "retire"),
    Step("chunksink.rebuild.plan", "Plan", "_compare", "sync"),
    Step("chunksink.rebuild.receipts", "Receipts", "intend", "sync"),
    Step("chunksink.rebuild.receipts", "Receipts", "intend", "sync", 3),
    Step("chunksink.rebuild.receipts", "Receipts", "confirm", "sync"),
    Step("chunksink.rebuild.receipts", "Receipts", "confirm", "sync", 2),
    Step("chunksink.rebuild.receipts", "Receipts", "confirm_removed", "sync"),
    Step("chunksink.rebuild.receipts", "Receipts", "forget_all", "lost"),
    Step("chunksink.rebuild.receipts", "Receipts", "forget_all", "recovered"),
    Step("chunksink.rebuild.receipts", "Receipts", "retry_dead_letters", "retry"),
    Step("chunksink.rebuild.scan", "Scan", "make_receipts", "repair"),
    Step("chunksink.rebuild.scan", "Scan", "make_receipts", "recovered"),
    Step("chunksink.rebuild.receipts", "Receipts", "expect_stamps", "sync"),
    Step("chunksink.rebuild.receipts", "Receipts", "expect_stamps", "sync", 2),
    Step("chunksink.rebuild.receipts", "Receipts", "expect_stamps", "repair"),
    Step("chunksink.sinks.fts.sink", "FtsBuild", "sign", "sync"),
    Step("chunksink.rebuild.state", "State", "add_generation", "rebuild"),
    Step("chunksink.rebuild.state", "State", "begin_flip", "rebuild"),
    Step("chunksink.rebuild.state", "State", "flip", "rebuild"),
    Step("chunksink.rebuild.state", "State", "flip", "rollback"),
    Step("chunksink.rebuild.state", "State", "cancel_flip", "refused"),
    Step("chunksink.rebuild.state", "State", "forget_build", "rebuild"),
    Step("chunksink.rebuild.state", "State", "note_pace", "sync"),
    Step("chunksink.rebuild.state", "State", "note_projection", "rebuild"),
    Step("chunksink.rebuild.forget", "", "_erase_records", "forget"),
    Step("chunksink.rebuild.forget", "", "blank", "forget"),
    Step("chunksink.embeddings.cache", "VectorCache", "put", "sync"),
)

SINK_METHODS = {
    "create": "rebuild",
    "sign": "unsigned",
    "replace": "sync",
    "delete": "sync",
    "flush": "sync",
    "flip": "rebuild",
    "drop": "rebuild",
}
"""What the interfaces of sinks offer to change a build, and the scenario that comes by it."""

_SINKS = {
    "fts": ("chunksink.sinks.fts.sink", "FtsSink", "FtsBuild"),
    "jsonl": ("chunksink.sinks.jsonl", "JsonlSink", "JsonlBuild"),
}


def sink_steps(engine: str) -> list[Step]:
    module, sink, build = _SINKS[engine]
    of_sink = {"create", "flip", "drop"}
    return [
        Step(module, sink if method in of_sink else build, method, scenario)
        for method, scenario in SINK_METHODS.items()
    ]


STEPS = (*OURS, *sink_steps("fts"), *sink_steps("jsonl"))

# Functions of rebuild/ that write only temporary data, or are parts of a step above.
NO_STEPS = {
    "family_versions.py:decide": "as the step intake.decide",
    "scan.py:_insert": "temporary tables",
    "scan.py:run": "temporary tables",
    "scan.py:_read": "temporary tables",
    "scan.py:_compare": "temporary tables",
    "intake.py:_accept": "within _read and _accept_changes",
    "intake.py:_set_state": "within _read",
    "intake.py:_validate": "within _read",
    "intake.py:_insert_findings": "within _read and _note_misnamed",
    "intake.py:drop_partition": "within _read and retire",
    "intake.py:mark_withdrawn_undecided": "within _read and retire",
    "catalog_rows.py:update_chunks": "within _read and retire",
    "catalog_rows.py:drop_chunks": "within retire",
    "catalog_rows.py:mark_undecided": "within _read and retire",
    "catalog_rows.py:_compare": "temporary tables",
    "catalog_rows.py:_new_lines": "temporary tables",
    "catalog_rows.py:drop_former_texts": "what is left of it is a note of vectors that are gone",
    "state.py:add_totals": "figures for metrics; a killed run adds nothing",
    "receipts.py:_close": "within confirm",
    "receipts.py:_drop": "within confirm",
    "receipts.py:next_without_vector": "whose turn it is: what is lost is asked for again",
    "spot_check.py:_save": "how far rounds have come: what is lost is compared again",
}
