"""Who asks, and what they may see. Every text, hit, neighbour, facet and count that leaves `search` passes here."""

from dataclasses import dataclass

from chunkbus.identity import tenant_key
from sinks.document import Document
from sinks.reader import Filter


@dataclass(frozen=True)
class Access:
    """`tenant` is whom the question is asked for. Where the index requires one, a question without gets nothing, and
    documents without a tenant are served to nobody."""

    tenant: str | None = None
    required: bool = False

    @property
    def denied(self) -> bool:
        return self.required and not self.tenant

    def filters(self) -> tuple[Filter, ...]:
        """What is added to every question; only ever narrows it."""
        if not self.tenant:
            return ()
        return (Filter("tenant_key", any_of=(_key(self.tenant),)),)

    def admits(self, document: Document) -> bool:
        """The same for a document that was fetched by its id."""
        if self.denied:
            return False
        return not self.tenant or document.tenant_key == _key(self.tenant)


EVERYTHING = Access()


def _key(tenant: str) -> str:
    return tenant_key(tenant) or ""
