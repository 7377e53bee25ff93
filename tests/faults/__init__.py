"""Network faults between a sink and its real engine."""

import pytest

pytest.register_assert_rewrite("sinks.conformance")
