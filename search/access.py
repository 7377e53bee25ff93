"""Access control by tenant. It applies to every text, hit, neighbour, facet and count that `search` returns."""

from dataclasses import dataclass

from chunksink.chunkbus.identity import tenant_key
from chunksink.search.errors import InvalidQuestion
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Filter


@dataclass(frozen=True)
class Access:
    """The tenant whose documents may be shown; None means all documents. If the index requires tenants, a question
    without one finds nothing, and documents without a tenant are never shown."""

    tenant: str | None = None
    required: bool = False

    def __post_init__(self) -> None:
        if self.tenant is None:
            return
        if not isinstance(self.tenant, str):
            raise InvalidQuestion(f"the tenant must be a name, not {self.tenant!r:.100}")
        if not self.tenant.strip():  # a caller that lost its tenant name must not see all documents
            raise InvalidQuestion("the tenant is empty: name a tenant, or leave it out")

    @property
    def denied(self) -> bool:
        return self.required and self.tenant is None

    def filters(self) -> tuple[Filter, ...]:
        """Filters to add to every question."""
        if self.tenant is None:
            return ()
        return (Filter("tenant_key", any_of=(_key(self.tenant),)),)

    def admits(self, document: Document) -> bool:
        """Whether a document that was fetched by its id may be shown."""
        if self.denied:
            return False
        return self.tenant is None or document.tenant_key == _key(self.tenant)


EVERYTHING = Access()


def _key(tenant: str) -> str:
    return tenant_key(tenant) or ""
