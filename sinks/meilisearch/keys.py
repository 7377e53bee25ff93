"""Search-only keys, and tokens that limit such a key to one tenant."""

from dataclasses import dataclass

from chunksink.sinks.meilisearch.connection import Connection
from chunksink.sinks.meilisearch.rows import quoted


@dataclass(frozen=True)
class SearchKey:
    """A key that may only search one index, and its id for tokens."""

    uid: str
    key: str


def make_search_key(url: str, master_key: str, index: str) -> SearchKey:
    connection = Connection(url, master_key)
    try:
        with connection.translate_errors():
            made = connection.control.create_key(
                {
                    "description": f"searches {index}, made by chunksink",
                    "actions": ["search"],
                    "indexes": [index],
                    "expiresAt": None,
                }
            )
        return SearchKey(str(made.uid), str(made.key))
    finally:
        connection.close()


def tenant_token(url: str, key: SearchKey, index: str, tenant_key: str) -> str:
    """A token whose searches find only documents of this tenant. It is signed locally with the key."""
    import meilisearch

    rules = {index: {"filter": f"tenant_key = {quoted(tenant_key)}"}}
    return meilisearch.Client(url, key.key).generate_tenant_token(key.uid, rules, api_key=key.key)
