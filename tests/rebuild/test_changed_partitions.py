"""A rewritten partition is validated by its changed lines, with the result of a full validation."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunksink.chunkbus import findings
from chunksink.chunkbus.chunk import Record
from chunksink.chunkbus.folder_partitions import FolderRoot
from chunksink.chunkbus.reader import read_lines
from chunksink.chunkbus.record_checks import CONTRACT, Rules
from chunksink.rebuild import catalog_rows, intake
from chunksink.rebuild.intake import Intake
from chunksink.sinks.custom_fields import NO_FIELDS
from tests.chunkbus.cases import CASES, KEY, Case
from tests.chunkbus.samples import chunk, line_of, lines_of, manifest, places, provenance, put, validate
from tests.conftest import examples
from tests.support.bus import commit, source
from tests.support.home import CatalogProbe

Lines = list[Record]
Edit = Callable[[Lines], Lines]
SOURCES = 4
# Which of two partitions has a family is decided by the catalog.
IN_A_PARTITION = {name: case for name, case in CASES.items() if case.partition == KEY}


def lines() -> Lines:
    """Three chunks of each of four sources; two sources have a `chunk_count`."""
    return [
        chunk(
            number,
            f"docs/{number // 3}.md",
            document_id=f"document-{number // 3}",
            **({"chunk_count": 3} if number < 6 else {}),
        )
        for number in range(3 * SOURCES)
    ]


def write(root: FolderRoot, records: Sequence[Record], **changes: Any) -> None:
    data = lines_of(records)
    counts = {"documents": SOURCES, "chunks_emitted": len(records), "failures": 0}
    put(root, KEY, data, manifest(KEY, data, **{"counts": counts} | changes))


def refreshed(probe: CatalogProbe, root: FolderRoot, rules: Rules = CONTRACT) -> list[Any]:
    """The findings of a refresh. Those in the catalog equal those of a validation of each partition."""
    found: list[Any] = []
    read: list[int] = []
    intake = Intake(
        root, probe.state, rules.require_source_checksum, rules.fields or NO_FIELDS, on_finding=found.append
    )
    intake.refresh(read.append)
    assert 0 <= sum(read) <= sum(map(root.size_of, root.partition_keys()))
    expected = [finding for key in root.partition_keys() for finding in validate(root, [key], rules=rules)]
    assert sorted(map(str, probe.catalog.findings())) == sorted(map(str, expected))
    return found


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The partitions that are validated as a whole."""
    keys: list[str] = []

    class Watched(intake.Validation):
        def run(self, names: Any = None) -> Any:
            keys.extend(names)
            return super().run(names)

    monkeypatch.setattr(intake, "Validation", Watched)
    return keys


def edited(record: Record, text: str) -> Record:
    return chunk(text=text) | {name: record[name] for name in record if name not in ("text", "hashes")}


def version(record: Record, letter: str) -> Record:
    return record | {"provenance": record["provenance"] | {"source_checksum": "sha256:" + letter * 64}}


def test_changed_lines_suffice_when_there_are_no_findings(
    root: FolderRoot, probe: CatalogProbe, whole: list[str]
) -> None:
    made = lines()
    write(root, made)
    assert (refreshed(probe, root), whole) == ([], [KEY])
    other = [version(edited(each, f"other {each['chunk_id']}"), "b") for each in made[3:6]]
    for records in ([*made[:3], *other, *made[6:]], [*other, *made[6:], *made[:3]], made[:6], []):
        write(root, records)
        assert (refreshed(probe, root), whole) == ([], [KEY])
        select = "select chunk_id from chunk join chunk_line using (id) order by offset"
        assert [id for (id,) in probe.state.db.execute(select)] == [each["chunk_id"] for each in records]


@pytest.mark.promise(6)
@pytest.mark.parametrize("case", IN_A_PARTITION.values(), ids=IN_A_PARTITION)
def test_violation_in_a_formerly_valid_partition_is_found(case: Case, root: FolderRoot, probe: CatalogProbe) -> None:
    good = [chunk(0), chunk(1)]
    put(root, KEY, lines_of(good))
    rules = Rules(case.require_source_checksum, case.fields)
    assert refreshed(probe, root, rules) == []
    for file in (root.chunks_file(KEY), root.manifest_file(KEY)):
        file.unlink()
    before = probe.catalog.counts()
    case.build(root)
    found = refreshed(probe, root, rules)
    assert sorted(places(found), key=repr) == sorted(case.places(), key=repr)
    if any(finding.is_error and finding.partition == KEY for finding in found):
        assert probe.catalog.counts() == before


def _second_of(records: Lines, number: int, **changes: Any) -> Lines:
    return [each | changes if at == number else each for at, each in enumerate(records)]


AT_ODDS: dict[str, tuple[str, Edit]] = {
    "an id of an unchanged line": (findings.DUPLICATE_IDS, lambda made: [*made, chunk(99, chunk_id="chunk-4")]),
    "an unchanged line twice": (findings.DUPLICATE_IDS, lambda made: [*made[:2], made[9], *made[2:]]),
    "a new line twice": (findings.DUPLICATE_IDS, lambda made: [*made, *[chunk(99, "docs/3.md")] * 2]),
    "a line that moved twice": (findings.DUPLICATE_IDS, lambda made: [made[9], made[9], *made[:9], *made[10:]]),
    "a chunk less than the others count": (findings.FAMILY_SPLIT, lambda made: [*made[:4], *made[5:]]),
    "one chunk counts more": (findings.FAMILY_SPLIT, lambda made: _second_of(made, 7, chunk_count=4)),
    "one chunk of another version": (
        findings.SEVERAL_VERSIONS,
        lambda made: [*made[:7], version(made[7], "b"), *made[8:]],
    ),
    "one chunk of another parser": (
        findings.FAMILY_SPLIT,
        lambda made: _second_of(
            made, 4, provenance=made[4]["provenance"] | {"parser": {"parser_name": "x", "parser_version": "1"}}
        ),
    ),
    "more sources than the manifest counts": (
        findings.MANIFEST_MISMATCH,
        lambda made: [*made, chunk(99, "docs/new.md", document_id="new")],
    ),
}


@pytest.mark.promise(6)
@pytest.mark.parametrize("waiting", [0, catalog_rows._WAITING])
@pytest.mark.parametrize(("code", "edit"), AT_ODDS.values(), ids=AT_ODDS)
def test_changed_line_that_contradicts_unchanged_ones_is_found(
    code: str,
    edit: Edit,
    waiting: int,
    root: FolderRoot,
    probe: CatalogProbe,
    whole: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the manifest has the count that a catalog would have if it missed a line."""
    monkeypatch.setattr(catalog_rows, "_WAITING", waiting)
    write(root, lines())
    refreshed(probe, root)
    made = edit(lines())
    write(root, made)
    assert {finding.code for finding in refreshed(probe, root)} == {code}
    write(root, lines())
    assert refreshed(probe, root) == []
    write(root, made, counts={"documents": SOURCES, "chunks_emitted": len(made) - 1, "failures": 0})
    assert {finding.code for finding in refreshed(probe, root)} == {code, findings.MANIFEST_MISMATCH}
    assert whole == [KEY] * 4


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"counts": {"documents": 3, "chunks_emitted": 12, "failures": 0}}, findings.MANIFEST_MISMATCH),
        ({"counts": {"documents": 4, "chunks_emitted": 13, "failures": 0}}, findings.MANIFEST_MISMATCH),
        ({"checksums": {"chunks_file": "sha256:" + "0" * 64}}, findings.CHECKSUM_MISMATCH),
        ({"partition_key": "other"}, findings.MANIFEST_MISMATCH),
        ({"errors": []}, findings.WRONG_TYPE),
    ],
)
def test_changed_manifest_over_unchanged_lines_is_checked(
    changes: dict[str, Any], code: str, root: FolderRoot, probe: CatalogProbe
) -> None:
    write(root, lines())
    refreshed(probe, root)
    write(root, lines(), **changes)
    assert {finding.code for finding in refreshed(probe, root)} == {code}


def test_warning_is_reported_again_at_its_new_line(root: FolderRoot, probe: CatalogProbe) -> None:
    odd = chunk(99, "docs/3.md", span={"char_range": {"char_start": 9, "char_end": 5}})
    for number in range(3):
        write(root, [*(chunk(90 + each, "docs/3.md") for each in range(number)), odd, *lines()])
        assert places(refreshed(probe, root)) == [(findings.PLACE_IMPOSSIBLE, "warning", KEY, number + 1)]


def test_lines_valid_by_other_rules_are_read_again(
    root: FolderRoot, probe: CatalogProbe, whole: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lines()
    for record in made[-3:]:
        record["provenance"] = provenance(source_uri="docs/3.md", source_checksum=None)
    write(root, made)
    assert refreshed(probe, root) == []
    write(root, [edited(made[0], "edited"), *made[1:]])
    found = refreshed(probe, root, Rules(require_source_checksum=True))
    assert findings.SOURCE_CHECKSUM_MISSING in {finding.code for finding in found}
    write(root, made)
    refreshed(probe, root)
    monkeypatch.setattr(intake, "RULES_VERSION", intake.RULES_VERSION + 1)
    write(root, [edited(made[0], "edited"), *made[1:]])
    refreshed(probe, root)
    assert whole == [KEY] * 4


Step = tuple[str, int, int]
steps = st.lists(
    st.tuples(
        st.sampled_from(("drop", "copy", "move", "id", "count", "version", "hash", "text", "source", "keep")),
        st.integers(0, 14),
        st.integers(0, 14),
    ),
    max_size=4,
)


def carry_out(made: Lines, step: Step) -> None:
    what, at, other = step[0], step[1] % len(made), step[2] % len(made)
    if what == "drop":
        del made[at]
        made[at:at] = [] if made else [chunk(0)]
    elif what in ("copy", "move"):
        made.insert(other, made.pop(at) if what == "move" else made[at])
    elif what == "text":
        made[at] = edited(made[at], f"other text {other}")
    else:
        made[at] = (
            made[at]
            | {
                "id": {"chunk_id": made[other]["chunk_id"]},
                "count": {"chunk_count": other % 5},
                "version": version(made[at], "abc"[other % 3]),
                "hash": {"hashes": {"text_hash": "sha256:" + "0" * 64}},
                "source": {"provenance": made[other]["provenance"]},
                "keep": {},
            }[what]
        )


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rewrites=st.lists(st.tuples(steps, st.integers(-1, 1), st.integers(-1, 1), st.booleans()), min_size=1, max_size=4),
    waiting=st.sampled_from((3, catalog_rows._WAITING)),
)
def test_every_rewrite_is_judged_as_by_a_full_validation(
    tmp_path: Path, rewrites: list[tuple[list[Step], int, int, bool]], waiting: int
) -> None:
    shutil.rmtree(tmp_path)
    root = FolderRoot(tmp_path / "chunks")
    probe = CatalogProbe(tmp_path / "home", root)
    made = lines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog_rows, "_WAITING", waiting)
        write(root, made)
        refreshed(probe, root)
        for changes, chunks, documents, is_damaged in rewrites:
            for step in changes:
                carry_out(made, step)
            counts = {"documents": SOURCES + documents, "chunks_emitted": len(made) + chunks // 2, "failures": 0}
            write(root, made, counts=counts)
            if is_damaged:
                root.chunks_file(KEY).write_bytes(lines_of(made) + line_of(made[0])[:-3])
            refreshed(probe, root)
    probe.state.db.close()


def test_places_of_other_partitions_stay(root: FolderRoot, probe: CatalogProbe) -> None:
    def records(key: str, text: str) -> list[Record]:
        texts = ["same", text, "same", "same"]
        return [record for n in range(4) for record in source(f"{key}/{n}.md", texts[n], f"more {n}")]

    for key in ("p1", "p2"):
        commit(root, key, records(key, "short"))
    probe.refresh()
    commit(root, "p1", records("p1", "a much longer text than before"))
    probe.refresh()
    select = "select offset, length from chunk join chunk_line using (id) where partition = ? order by offset"
    for key in ("p1", "p2"):
        with root.chunks_file(key).open("rb") as file:
            expected = [tuple(place) for place, _ in read_lines(file)]
        assert probe.state.db.execute(select, [key]).fetchall() == expected
