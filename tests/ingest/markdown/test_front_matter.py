"""Front matter becomes a separate chunk and metadata; similar text stays text."""

from collections.abc import Mapping
from typing import Any

import pytest

from chunksink.ingest.formats.markdown.document import Kind
from chunksink.ingest.formats.markdown.front_matter import RESERVED
from chunksink.ingest.formats.markdown.policy import POLICIES, Policy
from chunksink.ingest.formats.markdown.structure import parse
from chunksink.sinks.fields import PROJECTION
from tests.ingest.markdown.support import chunks_of


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("body", ["# Chapter\n", "Words without a heading."])
def test_front_matter_is_a_chunk_and_gives_metadata(policy: Policy, body: str) -> None:
    text = f"---\ntitle: 'The Book'\nauthor: Ada\ndate: 2024-05-01\nlang: en\n---\n\n{body}"
    front, chapter = chunks_of(text, policy=policy)
    assert front["text"].startswith("---\ntitle") and front["metadata"]["kind"] == "front_matter"
    assert chapter["text"] == body.strip()
    assert chapter["metadata"]["title"] == "The Book"
    assert chapter["metadata"]["authors"] == ["Ada"]
    assert chapter["metadata"]["year"] == 2024
    assert chapter["metadata"]["language"] == "en"


def front_matter_of(head: str) -> Mapping[str, Any] | None:
    """The metadata if the head is read as front matter. The text below is always a chunk."""
    document = parse(f"{head}\nBelow it.\n")
    assert document.text[document.blocks[-1].start :].strip().endswith("Below it.")
    assert not any(block.is_heading for block in document.blocks)
    return document.metadata if document.blocks[0].kind is Kind.FRONT_MATTER else None


@pytest.mark.parametrize(
    ("head", "metadata"),
    [
        ("---\n# made by hand\ntitle: Backup guide\n---\n", {"title": "Backup guide"}),
        ("\ufeff---\n\ntitle: Backup\n...\n", {"title": "Backup"}),
        ("---\ntitle: Backup   # of disks\n---\n", {"title": "Backup"}),
        ("---\ntitle: Backup in C# and #hash\n---\n", {"title": "Backup in C# and"}),
        (
            "---\ntitle: >-\n  Backup\n  guide\n\n  for disks # 1\nlang: en\n---\n",
            {"title": "Backup guide for disks # 1"},
        ),
        ("---\ntitle: Backup\n  guide # no\nlang: en\n---\n", {"title": "Backup guide"}),
        ("---\ntitle: |\n    Backup\nlang: en\n---\n", {"title": "Backup"}),
        ("---\ntitle: 'It''s # a guide'  # no\n---\n", {"title": "It's # a guide"}),
        ("---\ntitle: Tea: a guide # no\nauthor: @ada\n---\n", {"title": "Tea: a guide"}),
        ('---\ntitle: "A \\"guide\\"\\nf\\u00fcr: \\u0000 disks" # no\n---\n', {"title": 'A "guide" für: disks'}),
        ('---\ntitle: "an\\x20escape\n  \\ud800"\n---\n', {"title": "an escape"}),
        ('---\n"title": Backup\nog:title: No\n---\n', {"title": "Backup"}),
        ("---\ntitle: *x\nauthor: [Ada, Bob]\ndate:\n- 1\nlanguage: # none\n---\n", {}),
        ("---\ntags:  # many\n- a\n\n- b\nextra: [\n  a,\n]\ntitle: Backup\n---\n", {"title": "Backup"}),
        ("---\ntitle: " + "x" * 5000 + "\n---\n", {}),
        ("+++\ntitle = 'Backup'  # of disks\ndate = 2024-05-01\n[extra]\ntitle = 'No'\n+++\n", {"title": "Backup"}),
        ('+++\ntitle = """\nBackup\\u0000\nguide"""\nauthor = [\'Ada\']\n+++\n', {"title": "Backup guide"}),
    ],
)
def test_front_matter_of_every_style(head: str, metadata: dict[str, str]) -> None:
    found = front_matter_of(head)
    assert found is not None
    assert {name: value for name, value in found.items() if name == "title"} == metadata
    assert ("language" in found) is ("lang:" in head)
    assert found.get("date") == ("2024-05-01" if "date = " in head else None)


@pytest.mark.parametrize(
    ("head", "tags", "authors"),
    [
        ("---\ntags: [a, 'b c', \"d\"]\nauthor: [Ada, Bob]\n---\n", ["a", "b c", "d"], ["Ada", "Bob"]),
        (
            "---\ntags:  # many\n- a\n\n- '#b'\nauthors:\n  - name: Ada\n    url: x\n  - Bob\n---\n",
            ["a", "b"],
            ["Ada", "Bob"],
        ),
        ("---\ntags:\n  - on\n  - 2024-05-01\n  - 08\n---\n", ["on", "2024-05-01", "08"], None),
        ("---\nTags: a, b ,a\nkeywords: [c,\n  d]\nauthor: Ada\n---\n", ["a", "b", "c", "d"], ["Ada"]),
        ("---\ntags: [a, {b: c}, [d], '', e]\n---\n", ["a", "e"], None),
        ("---\ntags: &t [a, *t]\n---\n", None, None),
        ("---\ntags: {{ site.tags }}\n---\n", None, None),
        ("---\ntags: " + "[" * 3000 + "\n---\n", None, None),
        ("---\ntags: [" + "x, " * 9000 + "]\n---\n", None, None),
        ("---\nnested:\n  tags: [a]\n---\n", None, None),
        ("+++\ntags = ['a', 1, 'b']\nauthors = ['Ada']\n[taxonomies]\ncategories = ['c']\n+++\n", ["a", "b"], ["Ada"]),
        ("+++\ntitle = 'x'\n[taxonomies]\ntags = ['a']\n+++\n", ["a"], None),
    ],
)
def test_tags_and_authors_are_lists(head: str, tags: list[str] | None, authors: list[str] | None) -> None:
    metadata = chunks_of(f"{head}\nBelow it.\n")[-1]["metadata"]
    assert (metadata.get("tags"), metadata.get("authors")) == (tags, authors)


@pytest.mark.parametrize(
    ("head", "own"),
    [
        ("---\nproject: apollo\ndue: 2026-12-01\n'Cost center': 7 # EUR\n---\n", ["apollo", "2026-12-01", "7"]),
        ("---\naliases: [a, b]\nlabels:\n- c\n---\n", [["a", "b"], ["c"]]),
        ("---\nempty:\nnothing: null\nnested:\n  a: b\nog:url: x\nlong: " + "x" * 1001 + "\n---\n", []),
        ("---\nparent_id: [x, y]\nchunk_count: 7\nDocument_ID: z\n---\n", []),
        ("+++\nbig = 99999999999999999999999\nn = nan\nm = inf\n'' = 1\n\"\\u0000x\" = 2\n+++\n", [2]),
        ("---\n" + "".join(f"k{n}: {n}\n" for n in range(70)) + "---\n", [str(n) for n in range(50)]),
        ("---\n" + "".join(f"k{n}: {'x' * 990}\n" for n in range(20)) + "---\n", ["x" * 990] * 8),
        ("---\ntenant_id: b\nPath: x\nsource_uri: y\nordinal: 3\nlinks: [z]\n---\n", []),
        ("+++\nweight = 3\ndraft = false\nday = 2026-12-01\n[params]\nx = 1\n+++\n", [3, False, "2026-12-01"]),
    ],
)
def test_other_keys_are_metadata(head: str, own: list[object]) -> None:
    chunk = chunks_of(f"{head}\nBelow it.\n")[-1]
    metadata = {name: value for name, value in chunk["metadata"].items() if name not in RESERVED}
    assert list(metadata.values()) == own
    assert "tenant_id" not in chunk


def test_keys_with_a_meaning_in_chunks_are_reserved() -> None:
    paths = [path.split(".") for rule in PROJECTION for path in rule.paths]
    assert {path[1] for path in paths if path[0] == "metadata"} <= RESERVED
    assert chunks_of("Words.")[0]["metadata"].keys() <= RESERVED


@pytest.mark.parametrize(
    "head",
    [
        "---\nplain words\n\nmore\n\n---\n",
        "---\n\nNote: all of it.\n\n- disks\n\n---\n",
        "---\n\ntitle: Backup\n\nSome words.\n\n---\n",
        "---\n\n---\n",
        "---\n\nhttps://example.org/\n\n---\n",
        "----\ntitle: Backup\n\n---\n",
        "---\ntitle: Backup\n",
        "+++\ntitle = 'Backup'\n",
        "+++\na = " + "9" * 5000 + "\n+++\n",
        "+++\na = " + "[" * 5000 + "\n+++\n",
    ],
)
def test_rule_at_the_top_is_not_front_matter(head: str) -> None:
    assert front_matter_of(head) is None
