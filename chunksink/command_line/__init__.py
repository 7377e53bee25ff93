"""The command line.

In: arguments. Out: what people and pipelines read, and an exit code. Read `cli` first, then `options` and one of the
`commands`. Only this package prints.
"""
