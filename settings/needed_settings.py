"""What chunksink itself needs of an index: it is in force whatever the settings file says."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from chunksink.settings.engine_settings import completed

DISTINCT = "distinctAttribute"
_FILTERABLE = "filterableAttributes"
_DISPLAYED = "displayedAttributes"
_FEATURES = {"filter": {"equality": True, "comparison": False}}
"""Of a rule that does not say."""
_SHOWN = ("id", "parent_id")
"""A hit that does not say them is nobody's."""


class _Filter(msgspec.Struct):
    equality: bool
    comparison: bool


class _Features(msgspec.Struct):
    filter: _Filter


class _Rule(msgspec.Struct):
    """Of fields, whose names may begin or end with a star."""

    attributePatterns: list[str]  # noqa: N815 (Meilisearch's name)
    features: _Features

    def fits(self, field: str) -> bool:
        return any(re.fullmatch(_expression(pattern), field) for pattern in self.attributePatterns)


def with_needed(settings: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and what they lack of `ours`, those of the file that came with chunksink.

    What a sync selects by and a filter may ask for is filterable, as it is in our file; sources are told apart.
    """
    found = {DISTINCT: ours[DISTINCT], _FILTERABLE: [], **settings}
    found[_FILTERABLE] = _filterable(found[_FILTERABLE], ours[_FILTERABLE])
    shown = settings.get(_DISPLAYED)
    if isinstance(shown, list) and "*" not in shown:
        found[_DISPLAYED] = [*shown, *(name for name in _SHOWN if name not in shown)]
    return found


def _filterable(own: Any, ours: Sequence[Mapping[str, Any]]) -> Any:
    """Our rules for what the own ones do not allow; before them, for the first rule that fits a field counts."""
    try:
        rules = msgspec.convert(_with_features(own), list[str | _Rule])
    except msgspec.ValidationError:  # the server says what is wrong with it
        return own
    added = []
    for rule in ours:
        compared = rule["features"]["filter"]["comparison"]
        lacking = [name for name in rule["attributePatterns"] if not _allows(rules, name, compared=compared)]
        if lacking:
            added.append({**rule, "attributePatterns": lacking})
    return [*added, *own]


def _with_features(own: Any) -> Any:
    return [completed({"features": _FEATURES}, rule) for rule in own] if isinstance(own, list) else own


def _allows(rules: Sequence[str | _Rule], field: str, *, compared: bool) -> bool:
    for rule in rules:
        if isinstance(rule, str):
            if rule == field:
                return True
        elif rule.fits(field):
            allowed = rule.features.filter
            return allowed.equality and (allowed.comparison or not compared)
    return False


def _expression(pattern: str) -> str:
    before, after = (".*" if is_open else "" for is_open in (pattern.startswith("*"), pattern.endswith("*")))
    return before + re.escape(pattern.removeprefix("*").removesuffix("*")) + after
