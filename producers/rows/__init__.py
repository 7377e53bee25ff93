"""Rows, one document each, become chunks as the Markdown, the page or the text that theirs is.

names, row -> markup (what its text is) -> (the cutter of the Markdown producer) -> records -> reader. Whoever only asks
whether something is a row imports no more than that.
"""
