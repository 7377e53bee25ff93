"""Filters as SQL conditions."""

from collections.abc import Sequence

from chunksink.sinks.document import CUSTOM
from chunksink.sinks.reader import Filter, Value


def column_of(field: str) -> str:
    """An SQL expression for the value of a field in a row `d` of `documents`. The name needs no quoting: `Filter` and
    `Sort` accept only known fields and valid custom names."""
    if field.startswith(CUSTOM):
        return f"json_extract(d.fields, '$.{field.removeprefix(CUSTOM)}')"
    return f"d.{field}"


def _members_of(field: str) -> str:
    """A table expression: one row per member of a list, in the column `value`. A single custom value gives one row."""
    if field.startswith(CUSTOM):
        return f"json_each(d.fields, '$.{field.removeprefix(CUSTOM)}')"
    return f"json_each(d.{field})"


def as_sql(filters: Sequence[Filter]) -> tuple[str, list[Value]]:
    """A condition on a row `d` of `documents`, and its values."""
    conditions: list[str] = ["1"]
    values: list[Value] = []
    for condition in filters:
        column = column_of(condition.field)
        if condition.any_of is not None:
            marks = ", ".join("?" * len(condition.any_of))  # not as JSON: see schema.JSON_MEMBERS
            if condition.is_list:
                conditions.append(f"EXISTS (SELECT 1 FROM {_members_of(condition.field)} WHERE value IN ({marks}))")
            else:
                conditions.append(f"{column} IN ({marks})")
            values += condition.any_of
            continue
        if condition.like is not None:
            conditions.append(f"({' OR '.join([f'{column} GLOB ?'] * len(condition.like)) or '0'})")
            values += [pattern.replace("[", "[[]") for pattern in condition.like]
            continue
        for bound, operator in ((condition.at_least, ">="), (condition.at_most, "<=")):
            if bound is not None:
                conditions.append(f"{column} {operator} ?")
                values.append(bound)
    return " AND ".join(conditions), values
