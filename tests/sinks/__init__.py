"""The projection, and what each sink promises beyond the suite in tests/conformance."""
