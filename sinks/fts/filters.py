"""Filters as SQL conditions."""

from collections.abc import Sequence

from chunksink.sinks.document import LISTS
from chunksink.sinks.reader import Filter, Value


def as_sql(filters: Sequence[Filter]) -> tuple[str, list[Value]]:
    """A condition on `documents` as d, and its values."""
    conditions: list[str] = ["1"]
    values: list[Value] = []
    for condition in filters:
        column = f"d.{condition.field}"  # Filter takes projected fields only
        if condition.any_of is not None:
            marks = ", ".join("?" * len(condition.any_of))  # not as JSON, which would end a value at U+0000
            if condition.field in LISTS:
                conditions.append(f"EXISTS (SELECT 1 FROM json_each({column}) WHERE value IN ({marks}))")
            else:
                conditions.append(f"{column} IN ({marks})")
            values += condition.any_of
            continue
        for bound, operator in ((condition.at_least, ">="), (condition.at_most, "<=")):
            if bound is not None:
                conditions.append(f"{column} {operator} ?")
                values.append(bound)
    return " AND ".join(conditions), values
