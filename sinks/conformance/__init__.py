"""What every sink must do, as tests that a sink's own test module inherits:

    pytest.register_assert_rewrite("chunksink.sinks.conformance")  # before the import, for detailed failures

    class TestMine(SinkConformance, VectorConformance):
        @pytest.fixture
        def connect(self, tmp_path):
            return lambda: MySink(tmp_path)  # every call opens the same storage, as another process would

`SinkConformance` is for all sinks; `KeywordConformance` and `VectorConformance` are for those whose `reader(build_id)`
returns such a reader. Only this package imports pytest, and no product code imports it.
"""

from chunksink.sinks.conformance.reading import KeywordConformance, VectorConformance
from chunksink.sinks.conformance.samples import DIMENSIONS, family, marker, vector
from chunksink.sinks.conformance.writing import SinkConformance

__all__ = ["DIMENSIONS", "KeywordConformance", "SinkConformance", "VectorConformance", "family", "marker", "vector"]
