"""One module per command. Each defines `command` and is imported when that command is called."""
