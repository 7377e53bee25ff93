"""IR: canonical documents 1.0, which extractors write as JSON records. A record becomes one chunk under its own id.

Read `format` first. `reindex` lists the records that an older extractor made.
"""

from chunksink.ingest.formats.ir.format import IrFormat as IrFormat
