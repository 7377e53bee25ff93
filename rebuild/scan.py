"""Reads a build through the engine's own interface and compares it with the catalog.

Receipts are never proof. A scan finds documents that are missing, extra or changed, and can recreate the receipts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby, islice
from typing import TYPE_CHECKING

import numpy as np

from chunksink.chunkbus.store import write_transaction
from chunksink.chunkbus.validation import Progress
from chunksink.rebuild.embedder import Lookup
from chunksink.rebuild.families import FamilyDocuments, FamilyReader, label_of, passage_of
from chunksink.rebuild.plan import unhashed
from chunksink.rebuild.removals import REMOVABLE
from chunksink.rebuild.schema import exists, marks
from chunksink.sinks.contract import Build, Stored
from chunksink.sinks.document import Vectors, family_hash

if TYPE_CHECKING:
    from sqlite_utils import Database

MISSING, EXTRA, CHANGED = "missing", "extra", "changed"
_PAGE = 5000
_FAMILIES = 50
"""Families read together; their texts are in memory."""
_VECTORS = 1000

_TABLES = """
drop table if exists temp.stored;
drop table if exists temp.stored_family;
drop table if exists temp.drift;
drop table if exists temp.wrong_vector;
create temp table stored (family text, id text, hash text, label text);
create index temp.stored_family_of on stored (family, id);
create temp table stored_family (family text primary key, hash text, documents int, label text) without rowid;
create temp table drift (kind text, id text, family text, label text);
create index temp.drift_id on drift (id);
create temp table wrong_vector (id text, family text);
"""
# Families that may differ. Those with refused documents are always compared document by document.
_SUSPECTS = """
select family from current left join stored_family f using (family)
where family not in (select family from held) {condition}
and (f.hash is not current.family_hash or family in (select family from dead_letter where build = ?))
"""
_COMPARED = "family in (select family from current) and family not in (select family from held)"
# Sources that have lost documents or were altered, compared with the receipts from before the scan.
_LOSSES = """
select coalesce(nullif(r.label, ''), r.family) as name, r.documents > coalesce(f.documents, 0) as lost,
    r.family_hash is c.family_hash and r.family in (select family from drift) as altered
from receipt r left join stored_family f using (family) left join current c using (family)
where r.build = :build and (lost or altered)
"""
# Refused documents of current versions. They do not count as missing, even if they wait to be sent again.
_REFUSED = """
select d.id from dead_letter d join receipt r using (build, family) join current c using (family)
where d.build = ? and r.family_hash is c.family_hash
"""
_UP_TO_DATE = """
select family from receipt r join current c using (family)
where r.build = :build and r.family_hash is c.family_hash
"""
# Outdated records of the build.
_FORGET = (
    "delete from changed where build = :build",
    "delete from dead_letter where build = :build and (family in (select family from drift) "
    f"or family not in (select family from held) and family not in ({_UP_TO_DATE}))",
    # Keeps receipts of families whose documents were all refused: a scan cannot find them.
    "delete from receipt where build = :build and family not in (select family from stored_family) "
    f"and not (documents = 0 and family in ({_UP_TO_DATE}) and family not in (select family from drift))",
    # Intents of held families are deleted, because no run would close them. Others stay only if refused documents of
    # their family will be sent again.
    "delete from intent where build = :build and (family in (select family from held) "
    "or family not in (select family from dead_letter where build = :build))",
)
# Documents to send again. Held families were not compared: only documents without a valid hash are known to be wrong.
_NOTE_CHANGED = """
insert or ignore into changed
select :build, family, id from drift where kind = 'changed'
union select :build, family, id from stored where hash = '' and family in (select family from held)
"""
_DRIFTED_SOURCES = """
select coalesce(nullif(max(d.label), ''), nullif(r.label, ''), d.family) as name, d.family,
    sum(kind = 'missing'), sum(kind = 'extra'), sum(kind = 'changed'),
    d.family not in (select family from wrong_vector) and d.family not in (select family from held)
    and (d.family in (select family from intent where build = :build)
        or r.family_hash is not c.family_hash and (f.hash is r.family_hash or f.documents is r.documents
            and d.family in (select family from dead_letter where build = :build)))
from drift d left join receipt r on r.build = :build and r.family = d.family
left join stored_family f on f.family = d.family left join current c on c.family = d.family
group by d.family order by name, d.family
"""
# A receipt has a hash if the family matches its current version. The documents of a held family were not compared, so
# only the hash of the stored family decides.
# If a receipt loses its hash, `confirmed` keeps, for the brake, its former number of documents. If the build had no
# receipts, `confirmed` is the number of stored documents.
_MAKE_RECEIPTS = """
insert into receipt (build, family, family_hash, documents, label, confirmed)
select :build, f.family, case
    when f.family in (select family from drift) then ''
    when f.family in (select family from held) and f.hash is not c.family_hash then ''
    else coalesce(c.family_hash, '') end, f.documents, f.label, iif(:has_receipts, null, f.documents)
from stored_family f left join current c using (family) where true
on conflict (build, family) do update set
    family_hash = excluded.family_hash, documents = excluded.documents, label = excluded.label,
    confirmed = iif(excluded.family_hash <> '', null, iif(family_hash <> '', documents, confirmed))
"""


@dataclass(frozen=True)
class DriftedSource:
    """A source whose documents differ from its chunks, with the number of each kind of difference."""

    source: str
    """Its name, or its family if the name is unknown."""
    family: str
    missing: int
    extra: int
    changed: int
    pending: bool
    """Whether the chunks have changed since the last run and the engine has not: the next sync applies the change."""


@dataclass(eq=False)
class Scan:
    """One scan of one build. Its results stay in temporary tables of the connection until the next scan."""

    db: Database
    build: Build | None
    """None if the build is missing, so it has no documents."""
    build_id: str
    reader: FamilyReader
    damage: str = ""
    """Why the engine's searches may miss some of its documents; "" if they find all."""
    unjudged: int = 0
    """Vectors that could not be compared, because their texts have no cached vector."""

    def run(self, on_chunks: Progress, cached: Lookup | None = None) -> None:
        """Scan the whole build; with `cached` also compare every vector. Held families are not compared, since
        their chunks are missing, invalid or contradictory. While partitions are missing or invalid, documents of
        families that are not in the catalog do not count as extra."""
        for page in unhashed(self.db):
            self.reader.hash_families(page)
        self._read(self.build.scan(content=True) if self.build else (), on_chunks)
        self._compare()
        self.db.execute(f"insert into drift select 'extra', id, family, label from stored where {REMOVABLE}")
        if cached is not None and self.build is not None:
            self.db.execute("create index temp.stored_id on stored (id)")
            self._insert(
                "insert into wrong_vector select id, family from stored where id = ? "
                "and family not in (select family from held)",
                ((id,) for id in self._wrong_vectors(self.build, cached)),
            )
            self.db.execute(
                "insert into drift select 'changed', id, family, label from stored "
                "where id in (select id from wrong_vector) and id not in (select id from drift)"
            )

    def finds_drift_in(self, families: Sequence[str]) -> bool:
        """Whether documents of these families differ from the catalog. Reads only these families."""
        if self.build is not None:
            self._read(self.build.of_families(families, content=True))
        self._compare(f"and family in ({marks(families)})", families)
        return not self.is_clean()

    def losses(self) -> tuple[int, int, list[str]]:
        """How many sources have lost confirmed documents, how many others have changed, and some names."""
        of_build = {"build": self.build_id}
        count = f"select coalesce(sum(lost), 0), coalesce(sum(not lost), 0) from ({_LOSSES})"
        lost, altered = self.db.execute(count, of_build).fetchone()
        names = self.db.execute(f"{_LOSSES} order by name limit 3", of_build)
        return lost, altered, [name for name, *_ in names]

    def totals(self, model_fingerprint: str | None) -> tuple[int, int, str]:
        """Families, documents, and a digest of the content, with the model if vectors are stored."""
        digest = sha256((model_fingerprint or "").encode())
        families = chunks = 0
        for family, hash, documents in self.db.execute(
            "select family, hash, documents from stored_family order by family"
        ):
            digest.update(f"{family} {hash}\n".encode())
            families, chunks = families + 1, chunks + documents
        return families, chunks, digest.hexdigest()

    def drift(self, kind: str) -> list[str]:
        rows = self.db.execute("select id from drift where kind = ? order by family, id", [kind])
        return [id for (id,) in rows]

    def drifted_sources(self) -> list[DriftedSource]:
        rows = self.db.execute(_DRIFTED_SOURCES, {"build": self.build_id})
        return [
            DriftedSource(name, family, missing, extra, changed, bool(is_pending))
            for name, family, missing, extra, changed, is_pending in rows
        ]

    def examples(self) -> str:
        """Some of the drift, in words."""
        rows = self.db.execute("select kind, id, family from drift order by family, id limit 3")
        examples = ", ".join(f"{kind} {id} of family {family}" for kind, id, family in rows)
        return f"{examples} ({self.damage})" if self.damage else examples

    def is_clean(self) -> bool:
        return not (self.damage or exists(self.db, "drift"))

    def make_receipts(self) -> None:
        """Replace the receipts of the build by the result. A family with drift gets a receipt without a hash, so that
        the next plan writes it."""
        with write_transaction(self.db):
            has_receipts = exists(self.db, "receipt where build = ?", [self.build_id])
            for statement in (*_FORGET, _NOTE_CHANGED, _MAKE_RECEIPTS):
                self.db.execute(statement, {"build": self.build_id, "has_receipts": has_receipts})

    def _read(self, documents: Iterable[Stored], on_chunks: Progress = lambda _rows: None) -> None:
        self.db.executescript(_TABLES)
        self._insert("insert into stored values (?, ?, ?, ?)", self._stored_rows(documents), on_chunks)
        self._insert("insert into stored_family values (?, ?, ?, ?)", self._stored_families())

    def _compare(self, condition: str = "", families: Sequence[str] = ()) -> None:
        """Compare the documents of families that may differ: of all, or of those that `condition` selects."""
        rows = self.db.execute(_SUSPECTS.format(condition=condition), [*families, self.build_id])
        suspects = [family for (family,) in rows]
        for start in range(0, len(suspects), _FAMILIES):
            self._insert("insert into drift values (?, ?, ?, ?)", self._drift(suspects[start : start + _FAMILIES]))

    def _stored_rows(self, documents: Iterable[Stored]) -> Iterator[tuple[object, ...]]:
        for stored in documents:
            self.damage = self.damage or stored.damage
            yield stored.parent_id, stored.id, _hash(stored), label_of(stored.document) if stored.document else ""

    def _insert(
        self, statement: str, rows: Iterator[tuple[object, ...]], on_rows: Progress = lambda _rows: None
    ) -> None:
        """Insert in pages. Each page is read before its transaction begins, because making the rows may write to the
        catalog."""
        while page := list(islice(rows, _PAGE)):
            with self.db.atomic():
                self.db.conn.executemany(statement, page)
            on_rows(len(page))

    def _stored_families(self) -> Iterator[tuple[str, str, int, str]]:
        rows = self.db.execute("select family, hash, label from stored order by family")
        for family, rows_of_family in groupby(rows, key=lambda row: row[0]):
            members = list(rows_of_family)
            yield family, family_hash(hash for _, hash, _ in members), len(members), members[0][2]

    def _drift(self, families: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
        """Rows of `drift` for these families, whose documents are compared one by one."""
        these = f"family in ({marks(families)})"
        stored: dict[str, dict[str, str]] = {family: {} for family in families}
        rows = self.db.execute(f"select family, id, hash from stored where {these}", list(families))
        for family, id, hash in rows:
            if id in stored[family]:
                yield EXTRA, id, family, ""  # the engine returned it twice
            stored[family][id] = hash
        rows = self.db.execute(f"{_REFUSED} and d.{these}", [self.build_id, *families])
        refused = {id for (id,) in rows}
        for expected in self.reader.families(families):
            yield from _differences(expected, stored[expected.family], refused)

    def _wrong_vectors(self, build: Build, cached: Lookup) -> Iterator[str]:
        """Ids of documents whose vector is missing or differs from the cached one."""
        documents = build.scan(content=True, vectors=True)
        while page := list(islice(documents, _VECTORS)):
            keys = [passage_of(stored.document).key if stored.document else "" for stored in page]
            expected = cached([key for key in keys if key])
            for stored, key in zip(page, keys, strict=True):
                if stored.vector is None:
                    yield stored.id
                elif key not in expected:
                    compared = f"stored where id = ? and {_COMPARED}"  # not extra documents, nor those of held families
                    self.unjudged += stored.document is not None and exists(self.db, compared, [stored.id])
                elif not _same(stored.vector, *expected[key]):
                    yield stored.id


def _differences(
    expected: FamilyDocuments, stored: dict[str, str], refused: set[str]
) -> Iterator[tuple[str, str, str, str]]:
    """Rows of `drift` for a family or a part of it. Removes compared documents from `stored`, which has the hashes of
    the whole family by id. After the last part, the remaining ones are extra."""
    family, name = expected.family, expected.label
    for document in expected.documents:
        hash = stored.pop(document.id, None)
        if hash is None:
            if document.id not in refused:
                yield MISSING, document.id, family, name
        elif hash != document.document_hash:
            yield CHANGED, document.id, family, name
    if expected.last:
        yield from ((EXTRA, id, family, name) for id in stored)


def _hash(stored: Stored) -> str:
    """The document hash; "" if the document is foreign, its hash is wrong, or searches may miss it."""
    document = stored.document
    if document is None or stored.damage:
        return ""
    is_valid = (document.document_hash, document.text_hash) == (stored.document_hash, stored.text_hash)
    return stored.document_hash if is_valid else ""


def _same(one: Vectors, other: Vectors, least_cosine: float) -> bool:
    if one.shape != other.shape:
        return False
    wide, other_wide = one.astype(np.float64), other.astype(np.float64)
    length = float(np.linalg.norm(wide) * np.linalg.norm(other_wide))
    return bool(length) and float(wide @ other_wide) / length >= least_cosine
