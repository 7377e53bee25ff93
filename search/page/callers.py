"""Who asks: tokens and the tenants that they stand for, and the sessions of people who signed in with one."""

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
_MOST_SESSIONS = 1000


class NotYours(SearchError):
    """The token stands for another tenant than the one that was named."""


@dataclass(frozen=True)
class Caller:
    """`tenant` is the only one whose documents are served; None may see all, and may name one."""

    tenant: str | None = None

    @property
    def sees_all(self) -> bool:
        return self.tenant is None

    def access(self, named: str | None, *, required: bool) -> Access:
        asked = Access(named, required=required)  # refuses an empty one
        if self.tenant is None:
            return asked
        if named not in (None, self.tenant):
            raise NotYours("your token stands for another tenant: leave the tenant out, or sign in with its own token")
        return Access(self.tenant, required=required)


class Tokens:
    """sha256 of each token, and its tenant or `*`. Without any, everybody may ask everything."""

    def __init__(self, tenants: Mapping[str, str]) -> None:
        self._callers = {hashed: Caller(None if tenant == ALL else tenant) for hashed, tenant in tenants.items()}

    @property
    def wanted(self) -> bool:
        return bool(self._callers)

    def caller(self, token: str) -> Caller | None:
        """How long it takes does not tell how much of a token was right. Nobody's token is empty."""
        if not token.strip():
            return None
        given = sha256(token.strip().encode("utf-8", "replace")).hexdigest()
        found = None
        for hashed, caller in self._callers.items():
            if hmac.compare_digest(hashed, given):
                found = caller
        return found


class Sessions:
    """Random ids in place of tokens, so that no cookie holds one. They end with the server. One thread uses them."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[float, Caller]] = {}

    def begin(self, caller: Caller) -> str:
        if len(self._open) >= _MOST_SESSIONS:
            del self._open[next(iter(self._open))]
        id = token_urlsafe(32)
        self._open[id] = (monotonic() + SESSION_SECONDS, caller)
        return id

    def caller(self, id: str) -> Caller | None:
        until, caller = self._open.get(id, (0.0, None))
        return caller if monotonic() < until else None

    def end(self, id: str) -> None:
        self._open.pop(id, None)
