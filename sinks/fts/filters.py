"""Filters as conditions of SQL."""

from collections.abc import Sequence

from chunksink.sinks.document import LISTS
from chunksink.sinks.fts.schema import BOOLEANS, COLUMN_TYPES
from chunksink.sinks.reader import Filter

Value = str | int | float


def as_sql(filters: Sequence[Filter]) -> tuple[str, list[Value]]:
    """Conditions on `documents` as d, all of which must hold, and their values."""
    conditions: list[str] = ["1"]
    values: list[Value] = []
    for condition in filters:
        column = f"d.{condition.field}"  # Filter takes projected fields only
        if condition.any_of is not None:
            type_ = bool if condition.field in BOOLEANS else COLUMN_TYPES[condition.field]
            fitting = [value for value in condition.any_of if type(value) is type_]  # SQLite would take 1 for "1"
            marks = ", ".join("?" * len(fitting))  # JSON would make numbers of booleans, and lose what follows a NUL
            if condition.field in LISTS:
                conditions.append(f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value IN ({marks}))")
            else:
                conditions.append(f"{column} IN ({marks})")
            values += fitting
            continue
        for bound, operator in ((condition.at_least, ">="), (condition.at_most, "<=")):
            if bound is not None:
                conditions.append(f"{column} {operator} ?")
                values.append(bound)
    return " AND ".join(conditions), values
