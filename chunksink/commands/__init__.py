"""One file a command; each has `command`, loaded when it is called."""
