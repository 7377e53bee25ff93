"""The tables of the sink, in a schema of their own that any SQL program can read.

    build_ID     one row per document: one column per field, `words` (the search index) and `embedding`
    documents    a view of the live build, for other programs

The comment of a table has the marker of its build as JSON, so that dumps and renamed tables keep it.
"""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args, get_type_hints

import orjson
import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from chunksink.sinks.contract import Marker
from chunksink.sinks.document import FIELDS, Document, Vectors
from chunksink.sinks.errors import BuildMissing, Refused
from chunksink.sinks.postgres import PostgresOptions, words
from chunksink.sinks.postgres.connection import Connection, Statement, prepare_vectors, rows
from chunksink.sinks.postgres.errors import hidden_extension, missing_extension, missing_permission

PREFIX = "build_"
VIEW = "documents"
PROTECTION = "row_security"
_TYPES: dict[type, str] = {str: "text", int: "bigint", float: "float8", bool: "bool", tuple: "text[]", dict: "jsonb"}
_MAX_DIMENSIONS = {"vector": 2000, "halfvec": 4000}  # of pgvector's HNSW
WEIGHTED = {weight: f"words_{weight.lower()}" for weight in words.SEARCHED}


def _column_types() -> dict[str, str]:
    """PostgreSQL's type for each field of a document."""
    types: dict[str, str] = {}
    for name, hint in get_type_hints(Document).items():
        kinds = [getattr(part, "__origin__", part) for part in (*get_args(hint), hint)]
        types[name] = next(_TYPES[kind] for kind in kinds[::-1] if kind in _TYPES)
    return types


COLUMN_TYPES = _column_types()
COLUMNS = sql.SQL(", ").join(map(sql.Identifier, FIELDS))
STAGED = [*COLUMN_TYPES, "embedding", *WEIGHTED.values()]
STAGED_TYPES = [*COLUMN_TYPES.values(), "vector", *("text" for _ in WEIGHTED)]


@dataclass(frozen=True)
class BuildTable:
    """The schema of a sink, and a build in it."""

    schema: str
    build_id: str

    @property
    def name(self) -> str:
        return PREFIX + self.build_id

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.name)

    def index(self, kind: str) -> sql.Identifier:
        return sql.Identifier(f"{self.name}_{kind}")


@dataclass(frozen=True)
class TableComment:
    """The comment of a build's table. A table without a marker was not created by a sink."""

    marker: Marker | None = None
    language: str = "simple"

    @classmethod
    def read(cls, connection: Connection, build: BuildTable) -> "TableComment":
        """Raises `BuildMissing` if there is no such build."""
        statement = sql.SQL("SELECT c.oid, obj_description(c.oid, 'pg_class') {} AND c.relname = %s").format(_BUILDS)
        found = rows(connection, statement, [build.schema, build.name])
        if not found:
            raise BuildMissing(f"PostgreSQL has no build {build.build_id} in the schema {build.schema}")
        try:
            content = orjson.loads(found[0][1] or "{}")
            return cls(Marker(**content["marker"]), content["language"])
        except (ValueError, KeyError, TypeError):
            return cls()

    def write(self, connection: Connection, build: BuildTable) -> None:
        assert self.marker is not None
        content = orjson.dumps({"marker": asdict(self.marker), "language": self.language}).decode()
        connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(build.table, sql.Literal(content)))


_BUILDS = sql.SQL(
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind IN ('r', 'p')"
)


def build_ids(connection: Connection, schema: str) -> list[str]:
    names = rows(connection, sql.SQL("SELECT c.relname {}").format(_BUILDS), [schema])
    return sorted(name.removeprefix(PREFIX) for (name,) in names if name.startswith(PREFIX))


def live(connection: Connection, schema: str) -> str | None:
    """The table that the public view shows; None without a view."""
    found = rows(
        connection,
        sql.SQL(
            "SELECT DISTINCT t.relname FROM pg_class v JOIN pg_namespace n ON n.oid = v.relnamespace "
            "JOIN pg_rewrite r ON r.ev_class = v.oid JOIN pg_depend d ON d.objid = r.oid "
            "AND d.classid = 'pg_rewrite'::regclass JOIN pg_class t ON t.oid = d.refobjid AND t.relkind = 'r' "
            "AND d.refclassid = 'pg_class'::regclass WHERE n.nspname = %s AND v.relname = %s"
        ),
        [schema, VIEW],
    )
    return found[0][0] if found else None


def show(connection: Connection, build: BuildTable, row_security: bool) -> None:
    """Make the public view show this build, in the caller's transaction. The view keeps its permissions.

    Its column of vectors has no fixed length, because builds may have different lengths.
    """
    connection.execute(
        sql.SQL(
            "CREATE OR REPLACE VIEW {} WITH (security_invoker = {}) AS "
            "SELECT {}, embedding::vector AS embedding FROM {}"
        ).format(sql.Identifier(build.schema, VIEW), sql.Literal(row_security), COLUMNS, build.table)
    )


def _protection(build: BuildTable) -> Statement:
    """The statement that limits other roles to the tenant in their setting `chunksink.tenant_key`."""
    return sql.SQL(
        "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; DROP POLICY IF EXISTS tenant ON {0}; "
        "CREATE POLICY tenant ON {0} FOR SELECT USING (tenant_key = current_setting('chunksink.tenant_key', true)); "
        "ALTER VIEW IF EXISTS {1} SET (security_invoker = true)"
    ).format(build.table, sql.Identifier(build.schema, VIEW))


def configuration(schema: str, language: str) -> sql.Identifier:
    return sql.Identifier(schema, f"words_{language}")


def ensure_schema(connection: Connection, where: str, schema: str, language: str) -> None:
    """Create the extension, the schema and the search configuration, in the caller's transaction."""
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('chunksink schema'))")
    try:
        with connection.transaction():
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.DatabaseError as error:
        if error.sqlstate in ("42501", "0A000", "58P01"):
            raise missing_extension(where) from error
        raise
    prepare_vectors(connection)
    # IF NOT EXISTS needs the permission to create schemas even if the schema exists.
    if not _require_permissions(connection, where, schema):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    config = configuration(schema, language)
    if rows(
        connection,
        sql.SQL(
            "SELECT EXISTS (SELECT 1 FROM pg_ts_config g "
            "JOIN pg_namespace n ON n.oid = g.cfgnamespace WHERE n.nspname = %s AND g.cfgname = %s)"
        ),
        [schema, f"words_{language}"],
    )[0][0]:
        return
    simple = sql.SQL("pg_catalog.simple")
    stems: sql.Composable = simple
    if language != "simple":
        stems = sql.Identifier(schema, f"stems_{language}")
        create = sql.SQL("CREATE TEXT SEARCH DICTIONARY {} (TEMPLATE = pg_catalog.snowball, LANGUAGE = {})")
        try:  # without stop words: a query may consist of them
            connection.execute(create.format(stems, sql.Literal(language)))
        except psycopg.errors.UndefinedObject as error:
            raise Refused(
                f"PostgreSQL has no stemmer for the language {language!r}. Correct the option `language` of the sink "
                "postgres, such as english, german or simple"
            ) from error
    connection.execute(sql.SQL("CREATE TEXT SEARCH CONFIGURATION {} (PARSER = pg_catalog.default)").format(config))
    mapping = sql.SQL("ALTER TEXT SEARCH CONFIGURATION {} ADD MAPPING FOR {} WITH {}")
    connection.execute(mapping.format(config, sql.SQL("asciiword, word"), stems))
    others = sql.SQL("numword, asciihword, hword, numhword, hword_asciipart, hword_part, hword_numpart, int, uint, ")
    connection.execute(
        mapping.format(config, others + sql.SQL("float, sfloat, version, email, host, url, url_path, file"), simple)
    )


def _require_permissions(connection: Connection, where: str, schema: str) -> bool:
    """Whether the schema exists. Raises an error with the remedy if the role cannot use the extension, or cannot create
    or replace builds in the schema."""
    [(exists, is_visible, in_schema, in_database, temporary, role, name, database, path, of_vector)] = rows(
        connection,
        sql.SQL(
            "SELECT n.oid IS NOT NULL, to_regtype('vector') IS NOT NULL, "
            "has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE'), "
            "has_database_privilege(current_database(), 'CREATE'), "
            "has_database_privilege(current_database(), 'TEMPORARY'), quote_ident(current_user), quote_ident(%s), "
            "quote_ident(current_database()), current_setting('search_path'), e.extnamespace::regnamespace::text "
            "FROM pg_extension e LEFT JOIN pg_namespace n ON n.nspname = %s WHERE e.extname = 'vector'"
        ),
        [schema, schema],
    )
    if not is_visible:
        raise hidden_extension(where, role, of_vector, path)
    if not exists and not in_database:
        raise missing_permission(where, f"create the schema {name}", f"CREATE SCHEMA {name} AUTHORIZATION {role}")
    if exists and not in_schema:
        grant = f"GRANT USAGE, CREATE ON SCHEMA {name} TO {role}"
        raise missing_permission(where, f"create tables in the schema {name}", grant)
    if not temporary:
        grant = f"GRANT TEMPORARY ON DATABASE {database} TO {role}"
        raise missing_permission(where, "create temporary tables", grant)
    of_others = sql.SQL(  # the view, builds with their marker, and the vocabularies of these builds
        "SELECT quote_ident(c.relname), quote_ident(pg_get_userbyid(c.relowner)) FROM pg_class c JOIN pg_class b "
        "ON b.relnamespace = c.relnamespace AND b.relname = regexp_replace(c.relname, '^vocabulary_', 'build_') "
        "WHERE c.relnamespace = to_regnamespace(%s) AND NOT pg_has_role(c.relowner, 'USAGE') "
        "AND (c.relkind = 'v' AND c.relname = %s OR c.relkind IN ('r', 'p') AND starts_with(b.relname, %s) "
        "AND starts_with(obj_description(b.oid, 'pg_class'), '{\"marker\":')) ORDER BY 1 LIMIT 20"
    )
    if found := rows(connection, of_others, [name, VIEW, PREFIX]):
        owners = ", ".join(sorted({owner for _, owner in found}))
        statements = "; ".join(f"ALTER TABLE {name}.{table} OWNER TO {role}" for table, _ in found)
        raise missing_permission(where, f"change tables of {owners} in the schema {name}", statements)
    return bool(exists)


def create_table(connection: Connection, build: BuildTable, dimensions: int | None) -> None:
    """Create an empty build without its search indexes."""
    columns = [
        sql.SQL("{} {}{}").format(sql.Identifier(name), sql.SQL(kind), sql.SQL(_COLLATE.get(kind, "")))
        for name, kind in COLUMN_TYPES.items()
    ]
    of_vector = sql.SQL(f"embedding vector({int(dimensions)})" if dimensions else "embedding vector")
    connection.execute(
        sql.SQL("CREATE TABLE {} ({}, {}, words tsvector, PRIMARY KEY (id)) WITH ({})").format(
            build.table, sql.SQL(", ").join(columns), of_vector, sql.SQL(_IN_ONE_PIECE)
        )
    )
    for column in _PLAIN_INDEXES:
        connection.execute(_create_plain_index(build, column))


def _create_plain_index(build: BuildTable, column: str) -> Statement:
    statement = sql.SQL("CREATE INDEX {} ON {} USING {} ({})")
    return statement.format(build.index(column), build.table, sql.SQL(_PLAIN_INDEXES[column]), sql.Identifier(column))


_IN_ONE_PIECE = "toast_tuple_target = 8160"
"""Only rows larger than a page are split and compressed. Ranking reads `words` of many rows, and unpacking it takes
longer than reading it."""
_PLAIN_INDEXES = {"parent_id": "btree", "tenant_key": "btree", "filename": "hash"}
"""The kind of index for each column. A btree has no room for long file names."""
_GIN_INDEXES = {"words": "words", "filters": "fields jsonb_path_ops, tags, authors"}
_COLLATE = {"text": ' COLLATE "C"', "text[]": ' COLLATE "C"'}


def missing(connection: Connection, build: BuildTable, options: PostgresOptions) -> dict[str, Statement]:
    """By name: the statements that create the indexes and the row security that the build lacks. Raises `Refused` if
    the vectors have too many dimensions for an index."""
    of_table = sql.SQL(
        "SELECT atttypmod, relrowsecurity FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid "
        "WHERE attrelid = %s::regclass AND attname = 'embedding'"
    )
    [(dimensions, is_protected)] = rows(connection, of_table, [build.table.as_string(connection)])
    listed = sql.SQL("SELECT indexname FROM pg_indexes WHERE schemaname = %s AND tablename = %s")
    defined = {name for (name,) in rows(connection, listed, [build.schema, build.name])}
    kind, other = ("halfvec", "vector") if options.halfvec else ("vector", "halfvec")
    found = {
        column: _create_plain_index(build, column)
        for column in _PLAIN_INDEXES
        if f"{build.name}_{column}" not in defined
    }
    for name, columns in _GIN_INDEXES.items():
        if f"{build.name}_{name}" not in defined:
            found[name] = sql.SQL("CREATE INDEX {} ON {} USING gin ({}) WITH (fastupdate = off)").format(
                build.index(name), build.table, sql.SQL(columns)
            )
    if options.row_security and not is_protected:
        found[PROTECTION] = _protection(build)
    if dimensions > 0 and f"{build.name}_{kind}" not in defined:
        if dimensions > _MAX_DIMENSIONS[kind]:
            raise Refused(
                f"the vectors have {dimensions} dimensions, but pgvector can index at most {_MAX_DIMENSIONS[kind]} "
                f"for the type {kind}. Use another model" + ("" if options.halfvec else ", or set the option `halfvec`")
            )
        expression = f"(embedding::halfvec({dimensions}))" if options.halfvec else "embedding"
        # The other index is dropped at the end: a drop blocks readers.
        found[kind] = sql.SQL(
            "CREATE INDEX {} ON {} USING hnsw ({} {}) WHERE text <> ''; DROP INDEX IF EXISTS {}"
        ).format(
            build.index(kind),
            build.table,
            sql.SQL(expression),
            sql.SQL(f"{kind}_cosine_ops"),
            sql.Identifier(build.schema, f"{build.name}_{other}"),
        )
    return found


def create_staging_table(connection: Connection, build: BuildTable, language: str) -> None:
    """Create or empty the temporary table that receives documents. It computes their `words`."""
    config = sql.Literal(configuration(build.schema, language).as_string())
    weighted = [
        sql.SQL("setweight(to_tsvector({}::regconfig, {}), {})").format(
            config, sql.Identifier(column), sql.Literal(weight)
        )
        for weight, column in WEIGHTED.items()
    ]
    columns = [sql.SQL(f'"{name}" {kind}') for name, kind in zip(STAGED, STAGED_TYPES, strict=True)]
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE IF NOT EXISTS staged ({}, words tsvector GENERATED ALWAYS AS ({}) STORED) "
            "WITH ({}) ON COMMIT DELETE ROWS"
        ).format(sql.SQL(", ").join(columns), sql.SQL(" || ").join(weighted), sql.SQL(_IN_ONE_PIECE))
    )
    connection.execute("TRUNCATE staged")


def upsert(build: BuildTable) -> Statement:
    """The statement that copies the staged documents into the build."""
    changed = [name for name in (*FIELDS, "embedding", "words") if name != "id"]
    update = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in changed]
    return sql.SQL(
        "INSERT INTO {} ({fields}, embedding, words) SELECT {fields}, embedding, words FROM staged "
        "ON CONFLICT (id) DO UPDATE SET {}"
    ).format(build.table, sql.SQL(", ").join(update), fields=COLUMNS)


def staged_row(document: Document, vector: Vectors | None, indexed: Sequence[str]) -> list[Any]:
    values = [getattr(document, name) for name in FIELDS]
    plain = [
        Jsonb(value, dumps=orjson.dumps) if isinstance(value, dict) else list(value) if type(value) is tuple else value
        for value in values
    ]
    return [*plain, vector, *indexed]


def fields_of(row: Sequence[Any]) -> dict[str, Any]:
    """The fields of a document, from a row with these `COLUMNS`."""
    fields = dict(zip(FIELDS, row, strict=True))
    return {name: value for name, value in fields.items() if value not in (None, [], {})}


def halfvec_dimensions(connection: Connection, build: BuildTable) -> int:
    """The length of the vectors if the vector index has the type halfvec, else 0."""
    statement = sql.SQL(
        "SELECT (regexp_match(indexdef, 'halfvec\\((\\d+)\\)'))[1]::int FROM pg_indexes "
        "WHERE schemaname = %s AND indexname = %s"
    )
    found = rows(connection, statement, [build.schema, f"{build.name}_halfvec"])
    return (found[0][0] if found else 0) or 0


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store this text: it cannot store U+0000 or half of a surrogate pair."""
    return not _IMPOSSIBLE.search(text)


_IMPOSSIBLE = re.compile("[\0\ud800-\udfff]")
