"""The conformance suite on every sink, with the real engines."""

import pytest

pytest.register_assert_rewrite("sinks.conformance")
