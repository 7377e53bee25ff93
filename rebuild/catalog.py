"""The catalog: the chunks as they were last read, in `state.db`.

`family_versions.decide` chooses the version of each family that counts. This module queries the result.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from chunksink.chunkbus.findings import CHECKSUM_MISMATCH, FIELD_VALUE, MEANINGS, Finding, Severity
from chunksink.chunkbus.layout import BusRoot
from chunksink.chunkbus.reader import Place
from chunksink.chunkbus.store import write_transaction
from chunksink.rebuild.catalog_rows import KEY, drop_chunks
from chunksink.rebuild.errors import InvalidBus, NotMissing
from chunksink.rebuild.family_versions import decide
from chunksink.rebuild.intake import MISSING, VALID, drop_partition, mark_withdrawn_undecided
from chunksink.rebuild.schema import exists, marks, number
from chunksink.rebuild.state import State

_PAGE = 1000
# Texts in several families. `first` and `last` are each a family key followed by the id of a chunk of that family.
_REPEATED = """
select count(*) as chunks, min(family || chunk_id) as first, max(family || chunk_id) as last
from current_chunk group by text_hash having min(family) <> max(family)
"""
_KEY_DIGITS = 64
"""Length of a family key."""

HashedFamily = tuple[str, int, str]
"""A family, the id of its partition's last valid reading, and its family hash."""


class TextPlace(NamedTuple):
    """The place of a chunk, and the hashes of its text and of its context. Some models read the context before the
    text."""

    partition: str
    place: Place
    text_hash: str
    context: bytes

    @property
    def key(self) -> str:
        """The name of its vector in the cache."""
        return self.text_hash + self.context.hex()


class FamilyChunk(NamedTuple):
    """A chunk of a family: its place in the file, and the hash of its line."""

    place: Place
    line: bytes


@dataclass(frozen=True)
class RetireReport:
    """How retiring a partition affects families."""

    removed: int
    """Families that were only in this partition and that a build still has: they will be removed."""
    returning: int
    """Families retired by tombstones of this partition alone. Other partitions have them, so they come back."""


@dataclass(frozen=True)
class CurrentFamily:
    """A family that the index must have, and where its chunks are."""

    family: str
    partition: str
    reading_id: int
    chunks: tuple[FamilyChunk, ...]


@dataclass(frozen=True)
class CurrentChunk:
    """A chunk that the index must have. `key` names its vector in the cache."""

    partition: str
    chunk_id: str
    text_hash: str
    key: str


@dataclass(frozen=True)
class RepeatedTexts:
    """How many texts occur in more than one source, and how many chunks have one of them."""

    texts: int
    chunks: int
    examples: tuple[tuple[str, str], ...]
    """For the most frequent texts, two chunk ids of different sources."""
    sources: tuple[tuple[str, str], ...]
    """The families or names of these sources."""


@dataclass(frozen=True)
class CatalogCounts:
    families: int
    chunks: int
    superseded: int


@dataclass(frozen=True)
class HeldFamily:
    """A family that stays in the index unchanged, and why."""

    family: str
    reason: str
    detail: str
    source: str = ""
    """The name of the source; empty if it is unknown. Only `held_families` fills it."""


class Catalog:
    """The catalog in `state.db`. `intake` updates it."""

    def __init__(self, state: State) -> None:
        self._db = state.db

    def counts(self) -> CatalogCounts:
        families, chunks = self._db.execute("select count(*), coalesce(sum(chunks), 0) from current").fetchone()
        decided = "family in (select family from current) and family not in (select family from held)"
        older = "select coalesce(sum(versions), 0) - count(distinct family) from last_version"
        return CatalogCounts(families, chunks, number(self._db, f"{older} where {decided}"))

    def require_valid(self) -> None:
        """Raises InvalidBus, with the first reasons, if a partition is missing or invalid or a family is held."""
        errors = [finding for finding in self.findings(3) if finding.is_error]
        invalid = list(map(str, errors))
        absent = self.missing_partitions()
        missing = [f"partition {key} is missing" for key in absent[:3]]
        held = [each.detail if each.reason in each.detail else f"{each.reason}: {each.detail}" for each in self.held(3)]
        if not (invalid or missing or held):
            return
        shown = "\n".join(f"  {line}" for line in list(dict.fromkeys([*invalid, *missing, *held]))[:3])
        remedy = f"To fix the first: {MEANINGS[errors[0].code][1]}.\n" if errors else ""
        remedies = []
        if errors:
            remedies.append("`chunksink validate` lists every error.")
        if absent:
            remedies.append(f"Bring partition {absent[0]} back, or run `chunksink retire-partition {absent[0]}`.")
        if not remedies:
            remedies.append("`chunksink status --all` names every held source.")
        held_sources = number(self._db, "select count(*) from held")
        raise InvalidBus(
            f"the chunks are invalid or incomplete; the index is unchanged. Errors: {self.errors():,}, missing "
            f"partitions: {len(absent):,}, held sources: {held_sources:,}. The first reasons:\n"
            f"{shown}\n{remedy}{' '.join(remedies)}"
        )

    def known_partitions(self) -> list[str]:
        """Partitions that were valid at least once and have not been retired. They may be missing now."""
        return _keys(self._db, "checksum is not null")

    def without_tenant(self) -> int:
        """How many sources have no tenant."""
        known = "current join last_version using (family, partition)"
        return number(self._db, f"select count(*) from {known} where family = family_key(parent_id, null)")

    def missing_partitions(self) -> list[str]:
        return _keys(self._db, "state = ?", MISSING)

    def unread_partitions(self) -> list[str]:
        """Partitions that are missing or invalid."""
        return _keys(self._db, "state <> ?", VALID)

    def findings(self, limit: int = -1, partition: str | None = None) -> list[Finding]:
        """The findings of all partitions or of one, as they were last read. Errors come before warnings. Among errors
        wrong checksums come first, since damage causes other findings."""
        rows = self._db.execute(
            "select code, severity, partition, line, detail from finding where partition = coalesce(?, partition) "
            "order by severity <> 'error', code <> ?, partition, line limit ?",
            [partition, CHECKSUM_MISMATCH, limit],
        )
        return [Finding(code, Severity(severity), key, line, detail) for code, severity, key, line, detail in rows]

    def errors(self) -> int:
        """The number of errors in partitions as they were last read."""
        return number(self._db, "select count(*) from finding where severity = 'error'")

    def wrong_field_values(self) -> int:
        """The number of values in valid partitions that do not have the type of their custom field."""
        found = "finding join partition on key = partition where code = ? and state = ?"
        return number(self._db, f"select count(*) from {found}", [FIELD_VALUE, VALID])

    def held(self, limit: int = -1) -> list[HeldFamily]:
        rows = self._db.execute("select family, reason, detail from held order by family limit ?", [limit])
        return [HeldFamily(*row) for row in rows]

    def retire(self, root: BusRoot, key: str) -> RetireReport:
        """Forget a missing partition and its tombstones. Raises NotMissing if it still exists or is unknown."""
        if key in root.partition_keys():
            raise NotMissing(
                f"partition {key} is still in {root.address}: to empty it, write it again without chunks; "
                "to retire it, remove its chunks file and its manifest first"
            )
        if not exists(self._db, "partition where key = ?", [key]):
            missing = ", ".join(self.missing_partitions())
            others = f"the missing partitions are: {missing}" if missing else "no partition is missing"
            raise NotMissing(f"partition {key} is unknown or was already retired; {others}")
        with write_transaction(self._db):
            self._db.execute("create temp table if not exists current_before (family text primary key) without rowid")
            self._db.execute("delete from current_before")
            self._db.execute("insert into current_before select family from current")
            mark_withdrawn_undecided(self._db, key)
            drop_partition(self._db, key)
            drop_chunks(self._db, key)
        decide(self._db)
        row = self._db.execute(
            "select (select count(*) from current_before where family not in (select family from current) "
            "and family in (select family from receipt where documents > 0)), "
            "(select count(*) from current where family not in (select family from current_before) "
            "and family not in (select family from held))"
        ).fetchone()
        return RetireReport(*row)

    def families(self, keys: Sequence[str] | None = None) -> Iterator[CurrentFamily]:
        """These families (default: all) as the index must have them, nearly in the order of the files."""
        rows_of, values = "current_chunk", []
        if keys is not None:
            rows_of, values = f"family_chunk where family in ({marks(keys)})", list(keys)
        rows: Iterable[Any] = self._db.execute(
            f"select family, partition, reading_id, offset, length, line from {rows_of} "
            "order by partition, first, offset",
            values,
        )
        if keys is not None:  # while a query is open, SQLite rejects writes if another connection has written since
            rows = list(rows)
        for (family, partition, reading_id), members in groupby(rows, key=lambda row: row[:3]):
            chunks = tuple(FamilyChunk(Place(offset, length), line) for *_, offset, length, line in members)
            yield CurrentFamily(family, partition, reading_id, chunks)

    def chunks(self) -> Iterator[CurrentChunk]:
        """The chunks of the current families, in their order on disk."""
        columns = f"partition, chunk_id, text_hash, {KEY}"
        rows = self._db.execute(f"select {columns} from current_chunk order by partition, offset")
        return (CurrentChunk(*row) for row in rows)

    def readable_texts(self) -> Iterator[list[TextPlace]]:
        """The texts of the current chunks in valid partitions, in pages. Each page is in the order on disk."""
        last = 0
        select = (
            "select id, partition, offset, length, text_hash, context from current_chunk where id > ? "
            f"and +partition in (select key from partition where state = ?) order by id limit {_PAGE}"
        )
        while rows := self._db.execute(select, [last, VALID]).fetchall():
            last = rows[-1][0]
            rows.sort(key=lambda row: row[1:3])
            yield [TextPlace(row[1], Place(*row[2:4]), *row[4:]) for row in rows]

    def sample_of_keys(self, limit: int) -> list[str]:
        """The cache keys of some texts. The choice is as good as random, but always the same for the same chunks. It
        covers as many families as possible, so that one large source does not outweigh the others."""
        select = f"""
            select distinct key from (
                select {KEY} as key, row_number() over (partition by family order by {KEY}) as place from family_chunk
                where family in (select family from current order by family limit 2 * :limit))
            order by place, key limit :limit"""
        return [key for (key,) in self._db.execute(select, {"limit": limit})]

    def repeated_texts(self) -> RepeatedTexts:
        """Texts that occur in several sources. The field `sources` has family keys, not names."""
        count = f"select count(*), coalesce(sum(chunks), 0) from ({_REPEATED})"
        texts, chunks = self._db.execute(count).fetchone()
        rows = self._db.execute(f"select first, last from ({_REPEATED}) order by chunks desc, 1 limit 5").fetchall()
        examples = tuple((first[_KEY_DIGITS:], last[_KEY_DIGITS:]) for first, last in rows)
        sources = tuple((first[:_KEY_DIGITS], last[:_KEY_DIGITS]) for first, last in rows)
        return RepeatedTexts(texts, chunks, examples, sources)

    def note_hashes(self, rows: Sequence[HashedFamily]) -> None:
        """Record the hashes of families, unless they were read again meanwhile."""
        with write_transaction(self._db):
            self._db.conn.executemany("update current set family_hash = ?3 where family = ?1 and reading_id = ?2", rows)

    def mark_outdated(self, key: str) -> None:
        """Make the next refresh read the whole partition, because it differs from the catalog."""
        with write_transaction(self._db):
            self._db.execute("update partition set signature = null, manifest = null where key = ?", [key])


def _keys(db: Any, condition: str, *values: str) -> list[str]:
    return [key for (key,) in db.execute(f"select key from partition where {condition} order by key", values)]
