"""The contract of the chunk bus: what it accepts, what it refuses, and what survives a kill."""
