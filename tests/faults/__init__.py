"""Network faults between a sink and its real engine."""
