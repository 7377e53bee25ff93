"""Callers: tokens with their tenants, and the sessions of people who signed in with a token."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from time import monotonic

from chunksink.search.access import Access
from chunksink.search.errors import SearchError

ALL = "*"
SESSION_SECONDS = 12 * 3600.0
_MAX_SESSIONS = 1000


class NotYours(SearchError):
    """The token does not belong to the requested tenant."""


@dataclass(frozen=True)
class Caller:
    """A caller with a tenant sees only its documents. A caller without one sees all, and may name a tenant."""

    tenant: str | None = None

    @property
    def sees_all(self) -> bool:
        return self.tenant is None

    def access(self, named: str | None, *, required: bool) -> Access:
        requested = Access(named, required=required)  # refuses an empty name
        if self.tenant is None:
            return requested
        if named not in (None, self.tenant):
            raise NotYours(
                "Your token is not for the tenant that you named: leave the tenant out, or use a token for it."
            )
        return Access(self.tenant, required=required)


class Tokens:
    """Maps the sha256 of each token to its tenant or `*`. Without tokens everybody may see everything."""

    def __init__(self, tenants: Mapping[str, str]) -> None:
        self._callers = {hashed: Caller(None if tenant == ALL else tenant) for hashed, tenant in tenants.items()}

    @property
    def required(self) -> bool:
        return bool(self._callers)

    def caller(self, token: str) -> Caller | None:
        """The caller of a token, compared in constant time. An empty token has none."""
        if not token.strip():
            return None
        digest = sha256(token.strip().encode("utf-8", "replace")).hexdigest()
        found = None
        for hashed, caller in self._callers.items():
            if hmac.compare_digest(hashed, digest):
                found = caller
        return found


class Sessions:
    """Sessions have random ids, so that no cookie contains a token. They end when the server stops. Not thread-safe."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[float, Caller]] = {}

    def begin(self, caller: Caller) -> str:
        if len(self._open) >= _MAX_SESSIONS:
            del self._open[next(iter(self._open))]
        id = token_urlsafe(32)
        self._open[id] = (monotonic() + SESSION_SECONDS, caller)
        return id

    def caller(self, id: str) -> Caller | None:
        until, caller = self._open.get(id, (0.0, None))
        return caller if monotonic() < until else None

    def end(self, id: str) -> None:
        self._open.pop(id, None)
