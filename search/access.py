"""Who asks, and what they may see. Every text, hit, neighbour, facet and count that leaves `search` passes here."""

from dataclasses import dataclass

from chunksink.chunkbus.identity import tenant_key
from chunksink.search.errors import InvalidQuestion
from chunksink.sinks.document import Document
from chunksink.sinks.reader import Filter


@dataclass(frozen=True)
class Access:
    """`tenant` is whom the question is asked for. Where the index requires one, a question without gets nothing, and
    documents without a tenant are served to nobody."""

    tenant: str | None = None
    required: bool = False

    def __post_init__(self) -> None:
        if self.tenant is None:
            return
        if not isinstance(self.tenant, str):
            raise InvalidQuestion(f"the tenant is a name, not {self.tenant!r:.100}")
        if not self.tenant.strip():  # who lost its name on the way must not see what belongs to all
            raise InvalidQuestion("an empty tenant is nobody: name the tenant, or leave it out")

    @property
    def denied(self) -> bool:
        return self.required and self.tenant is None

    def filters(self) -> tuple[Filter, ...]:
        """What is added to every question; only ever narrows it."""
        if self.tenant is None:
            return ()
        return (Filter("tenant_key", any_of=(_key(self.tenant),)),)

    def admits(self, document: Document) -> bool:
        """The same for a document that was fetched by its id."""
        if self.denied:
            return False
        return self.tenant is None or document.tenant_key == _key(self.tenant)


EVERYTHING = Access()


def _key(tenant: str) -> str:
    return tenant_key(tenant) or ""
