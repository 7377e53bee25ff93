"""Filters, orders and facets as SQL on a build."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson
from psycopg import sql

from chunksink.sinks.document import CUSTOM
from chunksink.sinks.postgres.schema import COLUMN_TYPES, is_storable
from chunksink.sinks.reader import Filter, Sort, Value

_IN_LIKE = {"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"}


class Condition(NamedTuple):
    """An SQL condition and its values."""

    text: sql.Composable
    values: list[Any]

    def and_(self, other: "Condition") -> "Condition":
        return Condition(sql.SQL("{} AND {}").format(self.text, other.text), [*self.values, *other.values])


EVERYTHING = Condition(sql.SQL("true"), [])
NOTHING = Condition(sql.SQL("false"), [])


def condition(filters: Sequence[Filter]) -> Condition:
    """All filters must pass."""
    found = EVERYTHING
    for one in filters:
        found = found.and_(_of_custom(one) if one.custom else _of_column(one))
    return found


def order(sort: Sort) -> sql.Composable:
    """The terms of an ORDER BY, which ignores case. Missing values are last."""
    direction = sql.SQL("DESC NULLS LAST" if sort.descending else "ASC NULLS LAST")
    if not sort.field.startswith(CUSTOM):
        column = sql.Identifier(sort.field)
        value: sql.Composable = sql.SQL("lower({})").format(column) if COLUMN_TYPES[sort.field] == "text" else column
        return sql.SQL("{} {}").format(value, direction)
    field, name = _custom(sort.field), sql.Literal(sort.field.removeprefix(CUSTOM))
    return sql.SQL("{} {direction}, lower(fields->>{}) {direction}").format(_number(field), name, direction=direction)


def members(field: str) -> sql.Composable:
    """A table expression with the values of a field in its column `value`."""
    if field.startswith(CUSTOM):
        # A value that is not a list counts as a list of one.
        return sql.SQL(
            "jsonb_array_elements(CASE jsonb_typeof({0}) WHEN 'array' THEN {0} ELSE jsonb_build_array({0}) END)"
        ).format(_custom(field))
    column = sql.Identifier(field)
    listed = column if COLUMN_TYPES[field] == "text[]" else sql.SQL("ARRAY[{}]").format(column)
    return sql.SQL("unnest({})").format(listed)


def _of_column(one: Filter) -> Condition:
    column, kind = sql.Identifier(one.field), COLUMN_TYPES[one.field]
    if one.any_of is not None:
        values = [value for value in one.any_of if _is_possible(value)]
        test = "{} && %s::text[]" if kind == "text[]" else f"{{}} = ANY(%s::{kind}[])"
        return Condition(sql.SQL(test).format(column), [values])
    if one.like is not None:
        return _like(column, one.like)
    return _bounds(one, column)


def _of_custom(one: Filter) -> Condition:
    if one.any_of is not None:
        name = one.field.removeprefix(CUSTOM)
        possible = [value for value in one.any_of if _is_possible(value)]
        contained = [orjson.dumps({name: form}).decode() for value in possible for form in (value, [value])]
        either = " OR ".join(["fields @> %s::jsonb"] * len(contained))
        return Condition(sql.SQL(f"({either})"), [*contained]) if contained else NOTHING
    return _bounds(one, _number(_custom(one.field)))


def _like(column: sql.Identifier, patterns: Sequence[str]) -> Condition:
    """Whether the value matches one of the patterns."""
    possible = ["".join(_IN_LIKE.get(char, char) for char in pattern) for pattern in patterns if is_storable(pattern)]
    return Condition(sql.SQL("{} LIKE ANY(%s::text[])").format(column), [possible])


def _bounds(one: Filter, value: sql.Composable) -> Condition:
    found = EVERYTHING
    for bound, operator in ((one.at_least, ">="), (one.at_most, "<=")):
        if bound is not None:
            found = found.and_(Condition(sql.SQL(f"{{}} {operator} %s::float8").format(value), [float(bound)]))
    return found


def _custom(field: str) -> sql.Composable:
    return sql.SQL("(fields->{})").format(sql.Literal(field.removeprefix(CUSTOM)))


def _number(field: sql.Composable) -> sql.Composable:
    """The value of a custom field as a number; null for any other value."""
    return sql.SQL("CASE WHEN jsonb_typeof({0}) = 'number' THEN ({0})::float8 END").format(field)


def _is_possible(value: Value) -> bool:
    return not isinstance(value, str) or is_storable(value)
