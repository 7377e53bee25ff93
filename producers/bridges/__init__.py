"""Chunks that others have made: in the forms of the specifications 001, 003 and 004, as frameworks save them, and
`chunks.v1` itself.

`BridgeReader` is the way in: `detect` tells the form of a record, the form's file says where its fields go.
"""

from chunksink.producers.bridges.detect import Form, detect
from chunksink.producers.bridges.reader import BridgeReader

__all__ = ["BridgeReader", "Form", "detect"]
