"""Named roots: a source has one name, regardless of the path to its folder."""

import json
from pathlib import Path

import pytest

from chunksink.ingest.errors import IngestRefused
from tests.ingest.bench import Bench


@pytest.fixture
def project(bench: Bench) -> Bench:
    bench.write("README.md", "# Project\n")
    bench.write("sheets/one.md", "# One\n")
    bench.write("sheets/deep/two.md", "# Two\n")
    return bench


def test_a_parent_folder_keeps_the_names_of_a_registered_subfolder(project: Bench) -> None:
    project.ingest("sheets")
    report = project.ingest()
    assert project.names() == {"sheets/one.md", "sheets/deep/two.md", "docs/README.md"}
    assert (report.processed, report.unchanged, report.missing) == (1, 2, 0)
    roots = json.loads((project.bus.path / "roots.json").read_text())["roots"]
    assert [root["label"] for root in roots] == ["docs", "sheets"]
    before = project.files()
    for file in project.home.glob("*.db*"):
        file.unlink()
    assert project.ingest().written is False
    assert project.files() == before, "names do not depend on the home"
    project.remove("sheets/one.md")
    assert project.ingest().missing_from == ("sheets/one.md",)
    assert project.ingest(prune=True).pruned == 1
    assert project.names() == {"sheets/deep/two.md", "docs/README.md"}


@pytest.mark.parametrize("part", ["sheets", "sheets/deep", "sheets/deep/two.md", "README.md"])
def test_a_part_of_a_registered_folder_keeps_its_names(project: Bench, part: str) -> None:
    project.ingest()
    before = project.files()
    report = project.ingest(part)
    assert (report.written, report.missing) == (False, 0)
    assert project.files() == before


def test_a_file_is_named_like_in_its_folder(project: Bench) -> None:
    project.ingest("sheets/one.md")
    assert project.names() == {"sheets/one.md"}
    report = project.ingest("sheets")
    assert (report.unchanged, report.processed) == (1, 1)


def test_pruning_a_subfolder_leaves_the_rest_of_the_root(project: Bench) -> None:
    project.ingest()
    project.remove("sheets/one.md")
    project.remove("README.md")
    assert project.ingest("sheets", prune=True).pruned == 1
    assert project.names() == {"docs/sheets/deep/two.md", "docs/README.md"}


def test_another_folder_with_the_same_label_is_refused_with_the_remedy(project: Bench) -> None:
    project.write("../elsewhere/sheets/one.md", "# Another\n")
    project.ingest("sheets")
    before = project.files()
    with pytest.raises(IngestRefused, match="--base"):
        project.ingest("../elsewhere/sheets")
    assert project.files() == before
    project.ingest("../elsewhere/sheets", base=project.folder)
    assert "elsewhere/sheets/one.md" in project.names()
    assert project.ingest("../elsewhere/sheets").written is False, "it is registered now"


def test_a_folder_keeps_the_label_of_its_single_files_beside_another_of_its_name(project: Bench) -> None:
    project.write("../elsewhere/sheets/one.md", "# Another\n")
    project.ingest("sheets/one.md", base=project.folder)
    project.ingest("../elsewhere/sheets")
    project.ingest("sheets")
    assert project.names() == {"docs/sheets/one.md", "docs/sheets/deep/two.md", "sheets/one.md"}


def test_a_folder_that_was_moved_keeps_its_names(project: Bench) -> None:
    project.ingest("sheets")
    moved = project.folder / "elsewhere" / "sheets"
    moved.parent.mkdir()
    (project.docs / "sheets").rename(moved)
    with pytest.raises(IngestRefused, match=f"--base {moved.parent}$") as refused:
        project.ingest("../elsewhere/sheets")
    assert str(refused.value).count("--base") == 1
    report = project.ingest("../elsewhere/sheets", base=moved.parent)
    assert (report.written, report.missing) == (False, 0)
    assert project.ingest("../elsewhere/sheets").written is False


def test_base_names_sources_by_their_path_below_it(project: Bench) -> None:
    project.ingest("sheets", base=project.folder)
    assert project.names() == {"docs/sheets/one.md", "docs/sheets/deep/two.md"}
    with pytest.raises(IngestRefused):
        project.ingest("sheets", base=project.docs / "sheets" / "deep")


def test_the_base_itself_has_names_without_a_folder(project: Bench) -> None:
    project.ingest(base=project.docs)
    assert project.names() == {"README.md", "sheets/one.md", "sheets/deep/two.md"}
    assert project.ingest("sheets").written is False


def test_a_link_to_a_folder_that_is_named_is_called_by_the_link(project: Bench) -> None:
    (project.folder / "link").symlink_to(project.docs / "sheets")
    project.ingest("../link")
    assert project.names() == {"link/one.md", "link/deep/two.md"}
    assert project.ingest("sheets").written is False


def test_a_list_of_roots_that_cannot_be_read_is_refused(project: Bench) -> None:
    project.ingest()
    (project.bus.path / "roots.json").write_text("{")
    with pytest.raises(IngestRefused):
        project.ingest()


def chunking_of_roots(project: Bench) -> dict[str, str]:
    roots = json.loads((project.bus.path / "roots.json").read_text())["roots"]
    return {root["label"]: root["chunking"] for root in roots}


def test_policy_of_a_folder_holds_for_folders_within_it_and_for_single_files(project: Bench) -> None:
    project.ingest("sheets")
    project.ingest()
    assert chunking_of_roots(project) == {"docs": "v1", "sheets": "v1"}
    assert project.ingest("sheets", chunking="v2").processed == 2
    assert chunking_of_roots(project) == {"docs": "v1", "sheets": "v2"}
    assert project.ingest().written is False
    project.ingest(chunking="v1")
    assert chunking_of_roots(project) == {"docs": "v1", "sheets": "v1"}
    project.ingest("sheets/one.md", chunking="v2")
    assert chunking_of_roots(project) == {"docs": "v1", "sheets": "v2"}


def test_policy_of_a_moved_folder_stays(project: Bench) -> None:
    project.ingest("sheets", chunking="v2")
    moved = project.folder / "elsewhere" / "sheets"
    moved.parent.mkdir()
    (project.docs / "sheets").rename(moved)
    assert project.ingest("../elsewhere/sheets", base=moved.parent).written is False
    assert chunking_of_roots(project) == {"sheets": "v2"}


@pytest.mark.parametrize("policy", ['"files_only": false', '"chunking": "v3"'], ids=["missing", "unknown"])
def test_root_whose_policy_is_missing_or_unknown_is_refused(policy: str, project: Bench) -> None:
    project.ingest()
    file = project.bus.path / "roots.json"
    file.write_text(file.read_text().replace('"chunking": "v1"', policy))
    with pytest.raises(IngestRefused):
        project.ingest()


def test_refused_run_does_not_change_the_policy(project: Bench) -> None:
    project.ingest()
    with pytest.raises(IngestRefused):
        project.ingest(chunking="v2", base=project.docs)
    assert chunking_of_roots(project) == {"docs": "v1"}


def test_sources_of_a_gone_folder_without_label_are_reported(project: Bench) -> None:
    project.write("../other/c.md", "# C\n")
    project.ingest("../other", base=project.folder / "other")
    project.remove("../other")
    assert project.ingest().gone == {str(Path(project.folder.resolve(), "other")): 1}


def test_sources_of_a_folder_that_is_gone_are_reported_and_can_be_removed(project: Bench) -> None:
    project.write("../other/c.md", "# C\n")
    project.ingest("../other")
    project.remove("../other")
    assert project.ingest().gone == {str(Path(project.folder.resolve(), "other")): 1}
    with pytest.raises(IngestRefused, match="no longer exists"):
        project.ingest("../other")
    with pytest.raises(IngestRefused, match="does not exist; "):
        project.ingest("never")
    with pytest.raises(IngestRefused, match="--allow-deletions 1"):
        project.ingest("../other", prune=True)
    assert project.ingest("../other", prune=True, allow_deletions=1).pruned == 1
    assert not any(name.startswith("other/") for name in project.names())


def test_pruning_a_root_without_a_label_leaves_other_roots_alone(project: Bench) -> None:
    project.write("../other/c.md", "# C\n")
    project.ingest("../other")
    project.ingest(base=project.docs)
    project.remove("README.md")
    assert project.ingest(prune=True).pruned == 1
    assert project.names() == {"other/c.md", "sheets/one.md", "sheets/deep/two.md"}


def test_files_that_would_have_the_names_of_another_root_are_refused(project: Bench) -> None:
    project.write("../elsewhere/sheets/one.md", "# Another\n")
    project.ingest("../elsewhere/sheets")
    with pytest.raises(IngestRefused, match="--base"):
        project.ingest(base=project.docs)


@pytest.mark.parametrize("order", [("README.md", "sheets"), ("sheets", "README.md")])
def test_a_file_that_is_named_does_not_rename_the_folders_beside_it(project: Bench, order: tuple[str, ...]) -> None:
    project.ingest(*order)
    assert project.names() == {"docs/README.md", "sheets/one.md", "sheets/deep/two.md"}
    assert project.ingest(prune=True).pruned == 0
    assert project.names() == {"docs/README.md", "sheets/one.md", "sheets/deep/two.md"}


def test_base_that_would_rename_a_registered_folder_is_refused(project: Bench) -> None:
    project.ingest("sheets")
    before = project.files()
    for part in ("sheets", "sheets/deep", "sheets/one.md"):
        assert project.ingest(part, base=project.docs).written is False, "these are the names it has"
        for base in (project.folder, project.docs / "sheets"):
            with pytest.raises(IngestRefused, match="--base"):
                project.ingest(part, base=base)
    assert project.files() == before
    assert project.names() == {"sheets/one.md", "sheets/deep/two.md"}


def test_a_single_file_that_is_gone_can_be_pruned_by_its_name(project: Bench) -> None:
    project.write("sheets/one.mdx", "# Another\n")
    project.ingest()
    project.remove("sheets/one.md")
    with pytest.raises(IngestRefused, match="no longer exists"):
        project.ingest("sheets/one.md")
    assert project.ingest("sheets/one.md", prune=True, allow_deletions=1).pruned == 1
    assert "docs/sheets/one.mdx" in project.names()


def test_links_lead_from_one_nested_root_to_the_other(project: Bench) -> None:
    project.write("README.md", "# Project\n\n[one](sheets/one.md)\n")
    project.write("sheets/one.md", "# One\n\n[project](../README.md)\n")
    project.ingest("sheets")
    project.ingest(checksum=True)
    targets = {link["source_uri"]: link["target_uri"] for link in project.links() if link["target_document_id"]}
    assert targets == {"docs/README.md": "sheets/one.md", "sheets/one.md": "docs/README.md"}
