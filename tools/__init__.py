"""Tools of the repository itself: they are run by make and never shipped."""
