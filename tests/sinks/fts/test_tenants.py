"""BM25 for a tenant equals FTS5's scores in an index without other tenants."""

import random

import pytest

from chunksink.sinks.conformance.samples import family
from chunksink.sinks.document import Family
from chunksink.sinks.fts import FtsBuild, FtsReader
from chunksink.sinks.reader import Filter

WORDS = (
    "boat",
    "ship",
    "harbour",
    "dry-run",
    "E-417",
    "C++",
    "install",
    "installation",
    "東京都庁の展望台",
    "京都の寺",
)
QUERIES = (
    *WORDS,
    "boat ship",
    "instal",
    "dry-run boat harbour ship",
    "東京 boat",
    "寺",
    '"boat ship" install',
    "C++ boat",
)


def drawn(tenant: str, number: int) -> list[Family]:
    """Families of different lengths and word frequencies, so that every frequency is read back exactly."""
    words = random.Random(f"{tenant} {number}")
    return [
        family(
            f"{tenant}/{place}.md",
            [" ".join(words.choices(WORDS, weights=range(1, 11), k=words.choice((3, 30, 300))))],
            tenant_id=tenant,
            metadata={"title": " ".join(words.choices(WORDS, k=2))},
        )
        for place in range(number)
    ]


def of(tenant: Family) -> list[Filter]:
    return [Filter("tenant_key", any_of=(str(tenant.documents[0].tenant_key),))]


@pytest.mark.promise(11)
@pytest.mark.parametrize("typed", QUERIES)
def test_only_tenant_has_the_scores_of_fts5(build: FtsBuild, reader: FtsReader, typed: str) -> None:
    own = drawn("acme", 40)
    build.replace(own)
    plain = {hit.id: hit.score for hit in reader.search(typed, 100)}
    assert plain
    assert {hit.id: hit.score for hit in reader.search(typed, 100, of(own[0]))} == pytest.approx(plain, rel=1e-9)


@pytest.mark.promise(11)
def test_only_tenant_has_the_scale_of_all(build: FtsBuild, reader: FtsReader) -> None:
    own = drawn("acme", 40)
    build.replace(own)
    for typed in ("boat mosquito ", "install zeppelin ship "):
        assert reader.max_score(typed, of(own[0])) == pytest.approx(reader.max_score(typed) or 0)
    assert reader.max_score("boat ", of(own[0])) is reader.max_score("boat ") is None


@pytest.mark.promise(11)
def test_similar_words_of_others_do_not_displace_a_tenants_own(build: FtsBuild, reader: FtsReader) -> None:
    own = family("own.md", ["the calibration of it"], tenant_id="acme")
    near = " ".join(f"calbiratio{letter}" for letter in "abcdefghijklm")  # nearer than the tenant's own word
    build.replace([own, family("near.md", [near], tenant_id="globex")])
    assert reader.corrections("calbiration ", of(own)) == {"calbiration": "calibration"}
