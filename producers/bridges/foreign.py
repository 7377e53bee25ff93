"""What the adapters of all foreign forms share: where a source's name may stand, and the draft that they end in."""

from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from chunksink.chunkbus.canonical import canonical_text
from chunksink.chunkbus.chunk import Record
from chunksink.producers.errors import SOURCE_EMPTY
from chunksink.producers.produced import Making
from chunksink.producers.records.drafts import Draft, id_for_tenant, says_something
from chunksink.producers.records.keeping import keep, keep_original, make_provenance

NAMES = (
    "provenance.source_uri",
    "provenance.source_ref",
    "source.source_uri",
    "source.source_ref",
    "source.path",
    "source_uri",
    "source_ref",
    "source",
)
CHECKSUMS = ("provenance.source_checksum", "source.source_checksum", "source_checksum", "source.checksum")

Count = Annotated[int, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class Context:
    """What an adapter knows beside the record."""

    uri: str
    making: Making
    parser: tuple[str, str]
    canonicalizer: tuple[str, str]


def foreign_draft(
    record: Record,
    context: Context,
    *,
    placed: set[str],
    text: str,
    source: tuple[str, str],
    parent: str,
    own_tenant: str | None,
    document_id: str,
    given_id: str | None,
    id_knows: str | None,
    index: int | None,
    version: tuple[Any, ...],
    order: tuple[Any, ...],
    checksum: str | None,
) -> Draft:
    """What all foreign forms share. `id_knows` is the tenant that the formula of the given id holds already."""
    tenant = own_tenant or context.making.tenant
    rest = {name: value for name, value in record.items() if name not in placed | {"provenance", "tenant_id"}}
    fields = keep(rest)
    provenance, displaced = make_provenance(
        record.get("provenance"),
        source=source,
        checksum=checksum,
        parser=context.parser,
        canonicalizer=context.canonicalizer,
        uri=context.uri,
    )
    if displaced is not None:
        keep_original(fields, "provenance", displaced)
    if canonical_text(text) != text:
        keep_original(fields, "raw_text", text)
    chunk_id = given_id
    if given_id is not None and tenant != id_knows:
        chunk_id = id_for_tenant(given_id, tenant)
        keep_original(fields, "chunk_id", given_id)
    return Draft(
        name=source[1],
        parent=parent,
        tenant=tenant,
        version=version,
        document_id=document_id,
        text=text,
        provenance=provenance,
        fields=fields,
        chunk_id=chunk_id,
        index=index,
        order=order,
        excuse=None if says_something(text) else (SOURCE_EMPTY, f"{source[1]}: its text is empty", False),
    )
