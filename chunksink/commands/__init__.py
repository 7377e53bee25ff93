"""One file a command; each has `command`, and imports what is heavy when it runs."""
