"""IR records: the canonical document 1.0 of extractors. `IrReader` makes chunks of them.

identity, schema -> reader; `write_ir` keeps them as they are, `outdated` tells which to extract again.
"""

from chunksink.producers.ir.file_sink import IrLine, read_ir, write_ir
from chunksink.producers.ir.identity import canonical_path, content_hash, parent_id, record_id, source_folder_token
from chunksink.producers.ir.reader import IrReader
from chunksink.producers.ir.reindex import Current, Outdated, newest, outdated
from chunksink.producers.ir.schema import IR_VERSION, ir_schema

__all__ = [
    "IR_VERSION",
    "Current",
    "IrLine",
    "IrReader",
    "Outdated",
    "canonical_path",
    "content_hash",
    "ir_schema",
    "newest",
    "outdated",
    "parent_id",
    "read_ir",
    "record_id",
    "source_folder_token",
    "write_ir",
]
