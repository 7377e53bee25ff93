"""settings: what a user may choose, read once, passed on as values."""
