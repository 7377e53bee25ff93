"""Meilisearch's default index settings."""

from typing import Any

EMBEDDERS = "embedders"
"""This setting depends on the model; the file must not contain it."""

DEFAULTS: dict[str, Any] = {
    "displayedAttributes": ["*"],
    "searchableAttributes": ["*"],
    "filterableAttributes": [],
    "sortableAttributes": [],
    "rankingRules": ["words", "typo", "proximity", "attribute", "sort", "exactness"],
    "stopWords": [],
    "nonSeparatorTokens": [],
    "separatorTokens": [],
    "dictionary": [],
    "synonyms": {},
    "distinctAttribute": None,
    "proximityPrecision": "byWord",
    "typoTolerance": {
        "enabled": True,
        "minWordSizeForTypos": {"oneTypo": 5, "twoTypos": 9},
        "disableOnWords": [],
        "disableOnAttributes": [],
        "disableOnNumbers": False,
    },
    "faceting": {"maxValuesPerFacet": 100, "sortFacetValuesBy": {"*": "alpha"}},
    "pagination": {"maxTotalHits": 1000},
    "searchCutoffMs": None,
    "localizedAttributes": None,
    "facetSearch": True,
    "prefixSearch": "indexingTime",
}

WHOLE = frozenset(("synonyms", "sortFacetValuesBy"))
"""Objects that a patch replaces instead of merging into them."""


def completed(default: Any, desired: Any) -> Any:
    """`desired`, with defaults for missing and null values."""
    if desired is None:
        return default
    if not (isinstance(default, dict) and isinstance(desired, dict)):
        return desired
    return {**desired, **{name: completed(value, desired.get(name)) for name, value in default.items()}}
