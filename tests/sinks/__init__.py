"""The projection, and what each sink promises beyond the suite in tests/conformance."""

import pytest

pytest.register_assert_rewrite("sinks.conformance")
