"""rebuild: makes the index a pure function of the chunks. Knows protocols of sinks and encoders, never an engine."""
